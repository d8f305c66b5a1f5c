"""The distribution of states under each interface node as a mixture of products of leaves.

A state is first placed in a cell of each variable. Few products are possible in a joint cell: only
their leaves are evaluated, whatever the number of interface nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rspmn.circuit import Distribution, Network
from rspmn.data.columns import Column
from rspmn.data.distinct import distinct_integers
from rspmn.data.keys import Keys, join
from rspmn.infer.compiled.beliefs import NONE, SEVERAL, Beliefs, Pairs, Routes
from rspmn.infer.compiled.layers import log_sums
from rspmn.infer.compiled.leaf_cells import LeafCells, Pieces
from rspmn.infer.compiled.relations import Relation, common, ranges
from rspmn.infer.compiled.state_part import LeafProducts
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value

#: At most so many numbers are kept: pairs of a cell and a product, or of a cell and leaves.
MOST_KEPT = 2_000_000


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
        self, names: Sequence[str], network: Network, nodes: Ints, parts: LeafProducts, prior: Array
    ) -> None:  # fmt: skip
        """Index the products of some interface nodes, whose log-visits are the prior."""
        self.names = tuple(names)
        self.node = np.repeat(nodes, np.diff(parts.starts))  # [products]
        self.log_share = np.log(parts.weight)  # [products]
        self.log_weight = self.log_share + prior[self.node]  # [products]
        self.leaf: dict[str, Ints] = {}  # [products], by variable
        self.cells: dict[str, LeafCells] = {}
        self._offset: dict[str, int] = {}  # of the leaves of each variable among all
        leaves: list[Distribution] = []
        for name, used in zip(self.names, parts.leaf.T, strict=True):
            distinct, self.leaf[name] = np.unique(used, return_inverse=True)
            mine = [network.nodes[i].distribution for i in distinct.tolist()]
            self.cells[name] = LeafCells(mine)
            self._offset[name] = len(leaves)
            leaves += mine
        self._pieces = Pieces(leaves)
        self._has_others = any(cells.others for cells in self.cells.values())
        varies = [~self.cells[n].is_listed[self.leaf[n]] for n in self.names]
        size = len(self.node)
        self._varies = np.array(varies, dtype=bool).reshape(len(varies), size)  # [names, products]
        solid = [self.cells[n].is_solid[self.leaf[n]] for n in self.names]
        self._is_solid = np.all(solid, axis=0) if solid else np.ones(size, bool)
        self._kept: dict[tuple[int, ...], Cell] = {}
        self._room = MOST_KEPT
        self._leaves: dict[tuple[str, int], tuple[Ints, int, Bools]] = {}
        self._of_leaf: dict[str, Relation] = {}  # the products that have each leaf

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
            self._leaves.clear()
            self._room = MOST_KEPT
        self._kept[key] = cell
        return cell

    def _cell(self, key: tuple[int, ...]) -> Cell:
        given = [(name, cell) for name, cell in zip(self.names, key, strict=True) if cell >= 0]
        here = self._products_in(given)
        nodes, logs = self.node[here], self.log_weight[here]
        if len(here) == 1 and self._is_solid[here[0]]:
            return Cell(nodes, logs, here - here, here[None][:0], (), Beliefs.certain(nodes))
        first = np.flatnonzero(np.append(nodes[:1] >= 0, nodes[1:] != nodes[:-1]))
        if len(first) == 1 and self._is_solid[here].any():
            return Cell(nodes, logs, first, here[None][:0], (), Beliefs.certain(nodes[:1]))
        varying, rows = [], []
        for name, cell in given:
            cells, leaf = self.cells[name], self.leaf[name][here]
            if cells.atoms:
                logs = logs + cells.logs_of_atoms(leaf, cell)
            if not cells.is_listed[leaf].all():
                varying.append(name)
                rows.append(leaf + self._offset[name])
        leaf = np.array(rows, dtype=np.int64).reshape(len(varying), len(here))
        found = Cell(nodes, logs, first, leaf, tuple(varying), None)
        return found if varying else replace(found, belief=self._belief(found, logs))

    def _products_in(self, given: Sequence[tuple[str, int]]) -> Ints:
        """Return the products that are possible in cells of some variables, in their order.

        The variable that leaves the fewest is looked up, the others are compared.
        """
        if not given:
            return np.arange(len(self.node))
        leaves = [self._leaves_in(name, cell) for name, cell in given]
        best = min(range(len(given)), key=lambda k: leaves[k][1])
        of, leaf = self._products_of(given[best][0]), leaves[best][0]
        if len(leaf) == 1:
            found = of.items[of.starts[leaf[0]] : of.starts[leaf[0] + 1]]
        else:
            found = np.sort(of.items[ranges(of.starts[leaf], of.starts[leaf + 1])[0]])
        for k, (name, _) in enumerate(given):
            if k != best:
                found = found[leaves[k][2][self.leaf[name][found]]]
        return found

    def _leaves_in(self, name: str, cell: int) -> tuple[Ints, int, Bools]:
        """Return the leaves of a variable that are possible in a cell.

        Also the number of products that have one of them, and as many truths as there are leaves.
        """
        found = self._leaves.get((name, cell))  # other threads may empty the table at any time
        if found is None:
            cells = self.cells[name]
            self._room -= len(cells.is_listed) // 8
            leaves = cells.leaves_in(cell)
            is_here = np.zeros(len(cells.is_listed), dtype=bool)
            is_here[leaves] = True
            count = int(self._products_of(name).counts[leaves].sum())
            found = self._leaves[name, cell] = leaves, count, is_here
        return found

    def _products_of(self, name: str) -> Relation:
        """Return the products that have each leaf of a variable."""
        if name not in self._of_leaf:
            products = np.arange(len(self.node) + 1)
            leaf = Relation(products, self.leaf[name], len(self.cells[name].is_listed))
            self._of_leaf[name] = leaf.transposed()[0]
        return self._of_leaf[name]

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
        placed = self._placed(columns, rows)
        starts, product = self._possible(placed)
        cell, row = placed.cell, placed.row
        node, varies = self._nodes(starts, product, placed)
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
            logs = self.log_weight[which] + self._leaf_logs(columns, placed, which, of_row)
            return Beliefs.of_logs(counts[part], self.node[which], logs)

        return Routes(columns, state, row, node, counts, beliefs_of)

    def pairs(self, columns: Mapping[str, Column], rows: int) -> Pairs:
        """Return which nodes rows may be in, and the log-likelihood of each row there."""
        placed = self._placed(columns, rows)
        starts, product = self._possible(placed)
        pairs, first = ranges(starts[placed.cell], starts[placed.cell + 1])
        which, row = product[pairs], np.repeat(np.arange(rows), np.diff(first))
        logs = self.log_share[which] + self._leaf_logs(columns, placed, which, row)
        node = self.node[which]
        new = np.append(True, (row[1:] != row[:-1]) | (node[1:] != node[:-1]))[: len(row)]
        first = np.flatnonzero(new)
        if len(first) < len(row):
            row, node, logs = row[first], node[first], log_sums(logs, first)
        return Pairs(row, node, logs).where(logs > -np.inf)

    def _leaf_logs(
        self, columns: Mapping[str, Column], placed: "Placed", product: Ints, row: Ints
    ) -> Array:  # [pairs]
        """Return the log-likelihood of rows under products, without the weights of these."""
        logs = np.zeros(len(product))
        for name in self.names:
            column = columns[name]
            numbers = column.data if column.kind is Kind.CONTINUOUS else _numbers(column)
            leaf = self.leaf[name][product]
            logs += self.cells[name].logs(leaf, placed.cells[name][row], numbers[row])
        return logs

    def _placed(self, columns: Mapping[str, Column], rows: int) -> "Placed":
        placed = {name: self.cells[name].cells(columns[name]) for name in self.names}
        keys = [Keys(placed[name] + 1, self.cells[name].size + 1) for name in self.names]
        joint = join(keys).dense() if keys and rows else Keys(np.zeros(rows, int), min(1, rows))
        return Placed(placed, joint.codes.astype(np.int64), joint.members())

    def _possible(self, placed: "Placed") -> tuple[Ints, Ints]:
        """Return the products that are possible in each joint cell: [cells + 1] starts, products.

        They are joined variable by variable. Pairs of a product and the beginning of some joint
        cells go on to the longer beginnings that the product's leaf allows.
        """
        cells = len(placed.row)
        if not cells:
            return np.zeros(1, np.int64), np.zeros(0, np.int64)
        begun = np.zeros(cells, dtype=np.int64)  # [cells], the number of its beginning
        at, product = np.zeros(len(self.node), dtype=np.int64), np.arange(len(self.node))
        count = 1
        for here in sorted((self._here(placed, n) for n in self.names), key=lambda h: h.share):
            keys, longer = distinct_integers(begun * here.size + here.code)
            further = Relation.of_keys(keys, count, here.size)
            pair, entry = here.goes_on(at, self.leaf[here.name][product], further)
            at, product, begun, count = entry, product[pair], longer, len(keys)
        number = np.empty(count, dtype=np.int64)  # of the joint cell of each beginning
        number[begun] = np.arange(cells)
        keys = np.sort(number[at] * len(self.node) + product)
        found = Relation.of_keys(keys, cells, len(self.node))
        return found.starts, found.items

    def _here(self, placed: "Placed", name: str) -> "CellsHere":
        return CellsHere(name, self.cells[name], self.leaf[name], placed.cells[name][placed.row])

    def _nodes(
        self, starts: Ints, product: Ints, placed: "Placed"
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
            varies[some] |= differ & ~sure & (placed.cells[name][placed.row[some]] >= 0)
        return node, varies


@dataclass(frozen=True, eq=False)
class Placed:
    """The cells of some rows."""

    cells: Mapping[str, Ints]  # [rows], by variable; -1 where it is missing
    cell: Ints  # [rows], the number of the joint cell
    row: Ints  # [joint cells], a row of each


class CellsHere:
    """Those cells of a variable that occur, coded by their place on the line.

    Then a leaf that is possible in a range of numbers is possible in a range of codes. The last
    code is that of a missing value, where all leaves are possible.
    """

    def __init__(self, name: str, cells: LeafCells, leaf: Ints, found: Ints) -> None:
        """Code the cells that were found [n], of a variable with leaf[p] in product p."""
        self.name, self.cells = name, cells
        known = found >= 0
        atom, place = np.divmod(found, cells.places)
        turned = place * (len(cells.atoms) + 1) + atom  # cells by place, then by atom
        distinct, code = np.unique(turned[known], return_inverse=True)
        self.size = len(distinct) + 1
        self.code = np.full(len(found), len(distinct))  # [n]
        self.code[known] = code
        self.place, self.atom = np.divmod(distinct, len(cells.atoms) + 1)  # [size - 1] each
        self.low = np.searchsorted(self.place, cells.first)  # [leaves]
        self.high = np.searchsorted(self.place, cells.last, side="right") - 1  # [leaves]
        listed = np.where(cells.is_closed, cells.listed.counts, self.high - self.low + 1)
        #: The share of these cells that a product is possible in, about.
        self.share = float(np.minimum(listed, len(distinct))[leaf].sum()) / max(1, len(distinct))

    @cached_property
    def _listed(self) -> Relation:
        """The codes of the values that each leaf lists, as far as they occur."""
        listed = self.cells.listed
        code_of = np.full(listed.size, -1)
        code_of[self.atom] = np.arange(self.size - 1)  # no leaf lists the last atom, for none
        code, row = code_of[listed.items], np.repeat(np.arange(len(listed)), listed.counts)
        occurs = (code >= 0) & (self.cells.values.logs > -np.inf)
        return Relation.of_keys(
            np.sort(row[occurs] * self.size + code[occurs]), len(listed), self.size
        )

    def goes_on(self, at: Ints, leaf: Ints, further: Relation) -> tuple[Ints, Ints]:
        """Return in which of the codes that follow leaves are possible.

        Leaf leaf[p] is at the row at[p] of `further`, which has codes. Returned are p and the
        entry of `further`.
        """
        closed = self.cells.is_closed[leaf]
        listing, ranging = np.flatnonzero(closed), np.flatnonzero(~closed)
        pair, _, entry = common(self._listed, leaf[listing], further, at[listing])
        found = [(listing[pair], entry)]
        where, of = at[ranging], leaf[ranging]
        entry, first = ranges(*further.between(where, self.low[of], self.high[of]))
        pair = np.repeat(ranging, np.diff(first))
        code = further.items[entry]
        cell = self.atom[code] * self.cells.places + self.place[code]
        keep = self.cells.possible(leaf[pair], cell)
        found.append((pair[keep], entry[keep]))
        entry = further.find(at, np.full(len(at), self.size - 1))
        missing = np.flatnonzero(entry >= 0)
        found.append((missing, entry[missing]))
        pair, entry = (np.concatenate(part) for part in zip(*found, strict=True))
        return pair, entry


def _numbers(column: Column) -> Array:  # [n]
    """Return the values of a discrete column as numbers, 0 for those that are none."""
    found = [0.0 if isinstance(v, str | Mark) else v for v in column.domain]
    return np.asarray(np.array([*found, 0.0], dtype=np.float64)[column.data])
