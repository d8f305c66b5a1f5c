"""The distribution of states under each interface node as a mixture of products of leaves.

A state is first placed in a cell of each variable. Few products are possible in a joint cell: only
their leaves are evaluated, whatever the number of interface nodes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Distribution, Leaf, Network, Node, Product, Sum, fold_up
from rspmn.data.columns import Column
from rspmn.data.keys import Keys, join
from rspmn.infer.compiled.beliefs import NONE, SEVERAL, Beliefs, Routes
from rspmn.infer.compiled.layers import log_sums, ranges
from rspmn.infer.compiled.leaf_cells import LeafCells, Pieces
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value

#: Mixtures of more products than this are not expanded.
MOST_PRODUCTS = 200_000
#: At most so many pairs of a cell and a product are kept.
MOST_KEPT = 2_000_000
#: At most about so many bytes say which products are possible in the cells of single variables.
MOST_BYTES = 50_000_000
#: At most so many words of bits are held at a time.
WORDS = 4_000_000

#: A product of a mixture: its weight, and its leaf of each variable.
Part = tuple[float, dict[str, int]]


def products_below(network: Network, roots: Sequence[int]) -> list[list[Part]] | None:
    """Return the products that some roots are mixtures of; None if they are too many.

    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> x, y = (b.leaf("x", Categorical.certain(k)) for k in (0, 1))
    >>> network = b.build(b.sum([x, y], [0.25, 0.75]))
    >>> products_below(network, network.roots)
    [[(0.25, {'x': 0}), (0.75, {'x': 1})]]
    """
    counts = fold_up(network, _number_of_products)
    if sum(counts[root] for root in roots) > MOST_PRODUCTS:
        return None
    expanded: dict[int, list[Part]] = {}

    def expand(index: int) -> list[Part]:
        if index not in expanded:
            expanded[index] = made(index, network.nodes[index])
        return expanded[index]

    def made(index: int, node: Node) -> list[Part]:
        match node:
            case Leaf():
                return [(1.0, {node.variable: index})]
            case Sum():
                pairs = zip(node.weights, node.children, strict=True)
                return [
                    (weight * share, leaves)
                    for weight, child in pairs
                    if weight > 0
                    for share, leaves in expand(child)
                ]
            case _:
                found: list[Part] = [(1.0, {})]
                for child in node.children:
                    found = [(a * b, one | other) for a, one in found for b, other in expand(child)]
                return found

    return [expand(root) for root in roots]


def _number_of_products(node: Node, below: list[float]) -> float:
    match node:
        case Sum():
            return sum(below)
        case Product():
            return math.prod(below)
        case _:
            return 1.0


@dataclass(frozen=True, eq=False)
class Cell:
    """The products that are possible in a joint cell."""

    nodes: Ints  # [products], the interface node of each
    logs: Array  # [products], of the weights and of listed values
    first: Ints  # [nodes], the first product of each interface node
    leaf: Ints  # [variables, products], of numbers that vary within the cell
    variables: tuple[str, ...]  # of these
    belief: Beliefs | None  # where it is the same in all of the cell


class Products:
    """A mixture of products for each interface node that is a state."""

    def __init__(
        self, names: Sequence[str], network: Network, nodes: Ints, parts: list[list[Part]],
        prior: Array,
    ) -> None:  # fmt: skip
        """Index the products of some interface nodes, whose log-visits are the prior."""
        self.names = tuple(names)
        flat = [part for of_node in parts for part in of_node]
        self.node = np.repeat(nodes, [len(of_node) for of_node in parts])  # [products]
        self.log_weight = np.log([weight for weight, _ in flat]) + prior[self.node]  # [products]
        self.leaf: dict[str, Ints] = {}  # [products], by variable
        self.cells: dict[str, LeafCells] = {}
        self._offset: dict[str, int] = {}  # of the leaves of each variable among all
        leaves: list[Distribution] = []
        for name in self.names:
            used = [below[name] for _, below in flat]
            distinct, self.leaf[name] = np.unique(used, return_inverse=True)
            mine = [network.nodes[i].distribution for i in distinct.tolist()]
            self.cells[name] = LeafCells(mine)
            self._offset[name] = len(leaves)
            leaves += mine
        self._pieces = Pieces(leaves)
        self._has_others = any(cells.others for cells in self.cells.values())
        varies = [~self.cells[n].is_listed[self.leaf[n]] for n in self.names]
        self._varies = np.array(varies, dtype=bool).reshape(len(varies), len(flat))  # [names, flat]
        solid = [self.cells[n].is_solid[self.leaf[n]] for n in self.names]
        self._is_solid = np.all(solid, axis=0) if solid else np.ones(len(flat), bool)
        self._kept: dict[tuple[int, ...], Cell] = {}
        self._room = MOST_KEPT
        self._masks: dict[tuple[str, int], Bools] = {}

    # ---- one state -----------------------------------------------------------------

    def belief(self, known: Mapping[str, Value]) -> Beliefs:
        """Return which nodes a state, or part of one, may be in."""
        key = tuple([
            self.cells[name].cell(known[name]) if name in known else -1 for name in self.names
        ])  # fmt: skip
        cell = self._kept.get(key)
        if cell is None:
            cell = self._keep(key)
        if cell.belief is not None:
            return cell.belief
        return self._belief(cell, self._logs(cell, known))

    def _keep(self, key: tuple[int, ...]) -> Cell:
        cell = self._cell(key)
        self._room -= len(cell.nodes) + 1
        if self._room < 0:
            self._kept.clear()
            self._room = MOST_KEPT
        self._kept[key] = cell
        return cell

    def _cell(self, key: tuple[int, ...]) -> Cell:
        given = [(name, cell) for name, cell in zip(self.names, key, strict=True) if cell >= 0]
        possible = np.ones(len(self.node), dtype=bool)
        for name, cell in given:
            possible &= self._mask(name, cell)
        here = np.flatnonzero(possible)
        nodes, logs = self.node[here], self.log_weight[here]
        varying, rows = [], []
        for name, cell in given:
            cells, leaf = self.cells[name], self.leaf[name][here]
            if cells.atoms:
                logs = logs + cells.logs_of_atoms(leaf, cell)
            if not cells.is_listed[leaf].all():
                varying.append(name)
                rows.append(leaf + self._offset[name])
        leaf = np.array(rows, dtype=np.int64).reshape(len(varying), len(here))
        first = np.flatnonzero(np.append(nodes[:1] >= 0, nodes[1:] != nodes[:-1]))
        found = Cell(nodes, logs, first, leaf, tuple(varying), None)
        certain = len(first) == 1 and self._is_solid[here].any()
        if certain:
            return Cell(nodes, logs, first, leaf, (), Beliefs.certain(nodes[:1]))
        if not varying:
            return Cell(nodes, logs, first, leaf, (), self._belief(found, logs))
        return found

    def _mask(self, name: str, cell: int) -> Bools:  # [products]
        """Return which products are possible in a cell of one variable."""
        if (name, cell) not in self._masks:
            if len(self._masks) * len(self.node) > MOST_BYTES:
                self._masks.clear()
            found = self.cells[name].possible(np.array([cell]), self.leaf[name])
            self._masks[name, cell] = found[0]
        return self._masks[name, cell]

    def _logs(self, cell: Cell, known: Mapping[str, Value]) -> Array:  # [products]
        values = [known[name] for name in cell.variables]
        numbers = np.array([[0.0 if isinstance(v, str | Mark) else v] for v in values])
        densities = self._pieces.densities(cell.leaf, numbers)
        with np.errstate(divide="ignore"):
            logs = np.asarray(cell.logs + np.add.reduce(np.log(densities)))
        if not self._has_others:
            return logs
        for row, (name, value) in enumerate(zip(cell.variables, values, strict=True)):
            for leaf, distribution in self.cells[name].others.items():
                here = cell.leaf[row] == leaf + self._offset[name]
                if here.any():
                    logs[here] += distribution.log_prob(value)
        return logs

    def _belief(self, cell: Cell, logs: Array) -> Beliefs:
        if len(cell.first) < len(logs):
            logs = log_sums(logs, cell.first)
        return Beliefs.of_one(cell.nodes[cell.first], logs)

    # ---- many states ---------------------------------------------------------------

    def routes(self, columns: Mapping[str, Column], rows: int) -> Routes:
        """Return the distinct states of some columns."""
        placed = {name: self.cells[name].cells(columns[name]) for name in self.names}
        keys = [Keys(placed[name] + 1, self.cells[name].size + 1) for name in self.names]
        joint = join(keys).dense() if keys and rows else Keys(np.zeros(rows, int), min(1, rows))
        cell, row = joint.codes.astype(np.int64), joint.members()
        of_cells = {name: found[row] for name, found in placed.items()}
        starts, product = self._possible(of_cells, len(row))
        node, varies = self._nodes(starts, product, of_cells)
        alone = np.flatnonzero(varies[cell])  # rows that are a state of their own
        state = cell.copy()
        state[alone] = len(row) + np.arange(len(alone))
        node = np.concatenate([np.where(varies, NONE, node), np.full(len(alone), SEVERAL)])
        row = np.concatenate([row, alone])
        counts = np.diff(starts)[cell[row]]

        def beliefs_of(part: Ints) -> Beliefs:
            here = row[part]
            pairs, _ = ranges(starts[cell[here]], starts[cell[here] + 1])
            which, of_row = product[pairs], np.repeat(here, counts[part])
            logs = self.log_weight[which]
            for name, column in columns.items():
                numbers = column.data if column.kind is Kind.CONTINUOUS else _numbers(column)
                logs = logs + self.cells[name].logs(
                    self.leaf[name][which], placed[name][of_row], numbers[of_row]
                )
            return Beliefs.of_logs(counts[part], self.node[which], logs)

        return Routes(columns, state, row, node, counts, beliefs_of)

    def _possible(self, placed: Mapping[str, Ints], cells: int) -> tuple[Ints, Ints]:
        """Return the products that are possible in each joint cell: [cells + 1] starts, products.

        They are found by bits: one for each product, 64 in a word.
        """
        words = -(-len(self.node) // 64)
        within = np.arange(64 * words) < len(self.node)
        every = np.packbits(within, bitorder="little").view(np.uint64)
        tables = {}
        for name, found in placed.items():
            distinct, code = np.unique(found, return_inverse=True)
            bits = np.zeros((len(distinct), 64 * words), dtype=bool)
            bits[:, : len(self.node)] = self.cells[name].possible(distinct, self.leaf[name])
            bits[distinct < 0, : len(self.node)] = True
            tables[name] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64), code
        starts, products = [np.zeros(1, np.int64)], []
        step = max(1, WORDS // words)
        for start in range(0, cells, step):
            part = slice(start, min(cells, start + step))
            both = np.tile(every, (part.stop - start, 1))
            for table, code in tables.values():
                both &= table[code[part]]
            cell, word = np.nonzero(both)
            bytes_of = both[cell, word][:, None].view(np.uint8)
            which, bit = np.nonzero(np.unpackbits(bytes_of, axis=1, bitorder="little"))
            products.append(64 * word[which] + bit)
            counts = np.bincount(cell[which], minlength=part.stop - start)
            starts.append(starts[-1][-1] + np.cumsum(counts))
        return np.concatenate(starts), np.concatenate([*products, np.zeros(0, np.int64)])

    def _nodes(
        self, starts: Ints, product: Ints, placed: Mapping[str, Ints]
    ) -> tuple[Ints, Bools]:  # [cells] each
        """Return the node of each cell, SEVERAL or NONE, and whether states in it differ."""
        node = np.full(len(starts) - 1, NONE)
        varies = np.zeros(len(node), dtype=bool)
        some = np.flatnonzero(np.diff(starts))
        if not len(some):
            return node, varies
        first, of = starts[some], self.node[product]
        alike = np.minimum.reduceat(of, first) == np.maximum.reduceat(of, first)
        sure = alike & np.logical_or.reduceat(self._is_solid[product], first)
        node[some] = np.where(sure, of[first], SEVERAL)
        for k, name in enumerate(self.names):
            differ = np.logical_or.reduceat(self._varies[k][product], first)
            varies[some] |= differ & ~sure & (placed[name][some] >= 0)
        return node, varies


def _numbers(column: Column) -> Array:  # [n]
    """Return the values of a discrete column as numbers, 0 for those that are none."""
    found = [0.0 if isinstance(v, str | Mark) else v for v in column.domain]
    return np.asarray(np.array([*found, 0.0], dtype=np.float64)[column.data])
