"""Step 1 (Alg. 2): windows as rows of two steps, and the two-step network.

Only windows whose successor is known are learned from. The successor's variables have names of
their own, with a prime. One more variable says whether there is a successor at all: where an
episode ended, the successor's variables are missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Network, NetworkBuilder
from rspmn.circuit.rewrite import graft, last_step
from rspmn.data.columns import Column
from rspmn.data.episodes import Followed
from rspmn.data.windows import Windows
from rspmn.end_nodes import end_root, unknown_root
from rspmn.errors import DataError
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.after_decision import RecurrentOutcome
from rspmn.learn.structure.each_state import grow_states, why_each_state
from rspmn.learn.structure.grow import grow_spmn
from rspmn.learn.structure.learn_spmn import SingleOutcome
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.leaves import on_number_lines
from rspmn.learn.structure.rows import Rows, RowTable, table_of
from rspmn.learn.structure.targets import law_columns
from rspmn.schema import Kind, Schema
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class TwoSteps:
    """Windows as rows: row i of the table is window i."""

    windows: Windows
    rows: Rows  # those whose successor is known
    schema: Schema  # with all kinds
    after: tuple[str, ...]  # the names of the successor's variables that vary
    primed: Mapping[str, str]  # the name of each variable of the successor

    @property
    def table(self) -> RowTable:
        """All windows."""
        return self.rows.table

    @property
    def second(self) -> Schema | None:
        """The schema of the second step, None if only its state is known."""
        schema = self.schema
        if schema.utility not in self.primed:
            return None
        order = [[self.primed[name] for name in group] for group in schema.order]
        decisions = [self.primed[name] for name in schema.decisions]
        return Schema(order, decisions, self.primed[schema.utility])

    def after_of(self, name: str) -> str | None:
        """Return the name of a variable of the successor, None if it does not vary there."""
        primed = self.primed.get(name)
        return primed if primed in self.after else None


def wrap(windows: Windows, config: LearnConfig) -> TwoSteps:
    """Return the windows as rows of two steps."""
    known = windows.followed != Followed.UNKNOWN
    went_on = windows.went_on
    nowhere = went_on.any() and not (windows.followed[~went_on] <= Followed.STATE).any()
    if nowhere or not known.any():
        state = windows.schema.state_variables
        why = "every episode has one step and was truncated; declare how episodes ended, or log"
        why += " longer ones"
        if nowhere:
            cut = int(windows.counts[went_on].sum())
            why = f"every episode has one step, and {cut} of them were truncated; log the state"
            why += " after these as a row without decisions, or leave them out"
        if state and all(windows.columns[name].missing.all() for name in state):
            why = f"all values of {', '.join(map(repr, state))} are missing"
        raise DataError(f"none of {len(windows)} distinct steps has a known successor: {why}")
    schema = windows.schema
    columns = {name: windows.columns[name] for name in schema.variables}
    _check_complete(columns, schema)
    ended = (windows.followed == Followed.END).astype(np.int32)
    *names, end = _names(schema, [*windows.next_columns])
    following = dict(zip(names, windows.next_columns.values(), strict=True))
    following[end] = Column(Kind.BOOLEAN, ended, (False, True))
    counts = windows.counts.astype(np.float64)
    weights = np.where(known, counts, 0.0)
    laws = law_columns(schema, columns, counts)
    table = table_of(columns | following | laws, weights, config.bins, schema.decisions)
    index = np.flatnonzero(known)
    rows = Rows(table, index, counts[index])
    rows = on_number_lines(rows, schema.state_variables, config.leaves)
    after = tuple(name for name in following if rows.varies(name))
    kinds = {name: column.kind for name, column in columns.items()}
    primed = dict(zip(windows.next_columns, names, strict=True))
    return TwoSteps(windows, rows, schema.with_kinds(kinds), after, primed)


@dataclass(frozen=True, eq=False)
class Grown:
    """The network of Step 1. Latent k is in the place of the second step, which is not learned."""

    network: Network
    sites: Sequence[Ints]  # the windows behind each latent
    #: Why each state is an interface node, so that nothing was tested; "" if that is not so.
    each_state: str = ""
    states: Ints | None = None  # [num_windows], if so: the state of each, -1 if none


def grow_two_steps(two: TwoSteps, learner: Learner) -> Grown:
    """Return the network of LearnSPMN."""
    outcome = RecurrentOutcome(two.schema.utility, two.after)
    each_state = why_each_state(two.rows, two.schema, learner.config)
    if each_state:
        network, states = grow_states(learner, two.schema, two.rows, outcome)
        return Grown(network, outcome.sites, each_state, states)
    root = grow_spmn(learner, two.schema, two.rows, outcome)
    return Grown(learner.builder.build(root), outcome.sites)


def _check_complete(columns: dict[str, Column], schema: Schema) -> None:
    for name in (*schema.decisions, schema.utility):
        if columns[name].missing.any():
            raise DataError(f"{name!r} is missing in a window; only state variables may be")


def _names(schema: Schema, names: list[str]) -> list[str]:
    """Return names, with primes, for the successor's variables and for whether there is none."""
    mark = "'"
    while any(name + mark in schema.variables for name in names):
        mark += "'"
    end = "END" + mark
    while end in schema.variables or end in [name + mark for name in names]:
        end += mark
    return [*(name + mark for name in names), end]


def two_step_network(two: TwoSteps, grown: Grown, learner: Learner) -> Network:
    """Return the two-step network of Step 1: the successor's variables in place of the latents.

    Learning needs the successor for its tests only; here it is learned too, for study. A whole
    tuple has max nodes and a utility, as that of the first step.
    """
    counts, sites, one_step = two.windows.counts.astype(np.float64), grown.sites, grown.network
    if not two.after:  # whatever is done leads to the same state
        roots = [learner.builder.product([]) for _ in sites]
    else:
        rows = [Rows(two.table, site, counts[site]) for site in sites]
        roots = [_second_step(two, part, learner) for part in rows]
    successors = learner.builder.build(*roots)
    builder = NetworkBuilder()
    placed = graft(builder, successors, rename=None, latent=lambda _: None)
    at = [placed[root] for root in successors.roots]
    root = graft(builder, one_step, rename=None, latent=at.__getitem__)[one_step.root]
    assert root is not None, "the step's own variables are never left out"
    return builder.build(root)


def _second_step(two: TwoSteps, rows: Rows, learner: Learner) -> int:
    """Add what follows some windows: the state alone or, if it is known, a whole step.

    Where an episode ended, all variables of that step are END. Windows that a state follows in
    which nothing was decided count only if there are no others: then all are UNKNOWN.
    """
    schema, followed = two.second, two.windows.followed[rows.origin]
    if schema is None:
        return grow_spn(learner, rows, two.after, 0)
    whole, over = (rows.where(followed == kind) for kind in (Followed.TUPLE, Followed.END))
    parts, children = [], []
    if len(whole):
        parts.append(whole)
        children.append(grow_spmn(learner, schema, whole, SingleOutcome(schema.utility)))
    if len(over) or not len(whole):
        parts.append(over)
        children.append(
            _marked_step(learner.builder, schema, end_root if len(over) else unknown_root)
        )
    return (
        children[0]
        if len(children) == 1
        else learner.mixture([part.total for part in parts], children)
    )


def _marked_step(
    builder: NetworkBuilder, schema: Schema, root: Callable[[NetworkBuilder, Schema, int], int]
) -> int:
    """Add the interface node of END or of UNKNOWN, without what follows it."""
    alone = NetworkBuilder()
    step = last_step(alone.build(root(alone, schema, 0)))
    placed = graft(builder, step, rename=None)[step.root]
    assert placed is not None, "nothing is left out"
    return placed
