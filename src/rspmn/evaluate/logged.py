"""A log as policies are evaluated on it: states, decisions and rewards of steps, as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column, same_domain
from rspmn.data.episodes import Episodes, Followed, check_episodes
from rspmn.data.keys import joint_groups
from rspmn.data.single_decisions import single_decisions
from rspmn.data.windows import time_limit_of
from rspmn.errors import DataError, EvidenceError
from rspmn.infer.compiled.draws import ManyDraws, Sampler
from rspmn.infer.compiled.node_membership import Places, knots, places_of
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.types import Array, Ints
from rspmn.values import Value

#: The values of all decisions of a step.
Joint = tuple[Value | None, ...]
#: So many states are drawn of an interface node that the log does not visit.
DRAWN = 20


@dataclass(frozen=True, eq=False)
class Situations:
    """Distinct states, and the decisions between which a policy chooses in them."""

    schema: Schema
    columns: Mapping[str, Column]  # of what is known before the first decision, [S]
    count: int  # S
    places: Places  # the interface nodes that each belongs to
    steps: Array  # [S], logged steps in each
    #: How much each says of what is done in its interface nodes. [S]
    weight: Array
    decisions: tuple[Joint, ...]  # [J], values of the schema's decisions

    @cached_property
    def number(self) -> Mapping[Joint, int]:
        """The number of each joint decision."""
        return {made: k for k, made in enumerate(self.decisions)}

    @cached_property
    def known(self) -> list[dict[str, Value | None]]:  # [S]
        """The states as mappings from variables to values, None where they are missing."""
        decoded = {name: column.decode() for name, column in self.columns.items()}
        return [{name: decoded[name][row] for name in decoded} for row in range(self.count)]


@dataclass(frozen=True, eq=False)
class LoggedSteps:
    """The steps of a log, one episode after the other."""

    situations: Situations
    state: Ints  # [steps]
    made: Ints  # [steps], the number of the joint decision
    reward: Array  # [steps]
    time: Ints  # [steps], from 0
    episode: Ints  # [steps], from 0
    offsets: Ints  # [episodes + 1]
    endings: NDArray[np.int8]  # [episodes], a Followed
    final: Ints  # [episodes], the state after the last step, -1 where it is not known

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.endings)

    @property
    def longest(self) -> int:
        """The steps of the longest episode."""
        return int(np.diff(self.offsets).max())

    @cached_property
    def counts(self) -> Array:  # [S, J]
        """How often each decision was made in each state."""
        shape = self.situations.count, len(self.situations.decisions)
        key = self.state * shape[1] + self.made
        return np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    @cached_property
    def after(self) -> Ints:  # [steps]
        """The state after each step: -1 at an end, -2 where it is not known.

        Where episodes were cut at a time limit, those that ended just then do not count as ends:
        the others would be left out.
        """
        found, lengths = np.append(self.state[1:], -2), np.diff(self.offsets)
        late = lengths == time_limit_of(lengths, self.endings)
        unknown = np.where((self.endings == Followed.END) & ~late, -1, -2)
        found[self.offsets[1:] - 1] = np.where(self.final >= 0, self.final, unknown)
        return found


def episodes_of(model: RSPMN | SPMN, log: Episodes | object) -> tuple[RSPMN, Episodes]:
    """Return a recurrent model and episodes, also of single decisions and their table."""
    if isinstance(model, SPMN):
        episodes = log if isinstance(log, Episodes) else single_decisions(log, model.schema)
        return model.as_recurrent, episodes
    check_episodes(log)
    assert isinstance(log, Episodes), "checked"
    return model, log


def logged_steps(model: RSPMN, log: Episodes) -> LoggedSteps:
    """Return the steps of a log, in terms of a model."""
    schema = model.schema
    if schema.state_variables != schema.information_sets[0]:
        later = [n for n in schema.state_variables if n not in schema.information_sets[0]]
        raise EvidenceError(
            f"{later[0]!r} is observed between decisions: only policies that depend on variables "
            "observed before the first decision can be evaluated"
        )
    if schema.variables != log.schema.variables:
        raise DataError(
            f"the model's variables are {list(schema.variables)}, the log's "
            f"{list(log.schema.variables)}"
        )
    final = np.flatnonzero(log.endings == Followed.STATE)
    columns = {n: log.columns[n].append(log.finals[n].take(final))
               for n in schema.information_sets[0]}  # fmt: skip
    groups = joint_groups(columns.values(), log.num_steps + len(final))
    distinct = {name: column.take(groups.members()) for name, column in columns.items()}
    state = groups.codes.astype(np.int64)
    last = np.full(len(log), -1)
    last[final] = state[log.num_steps :]
    state = state[: log.num_steps]
    made, decisions = _decisions(model, log)
    situations = _situations(model, distinct, state, decisions)
    time = np.arange(log.num_steps) - np.repeat(log.offsets[:-1], log.lengths)
    reward = log.columns[schema.utility].numbers()
    episode = np.repeat(np.arange(len(log)), log.lengths)
    return LoggedSteps(
        situations, state, made, reward, time, episode, log.offsets, log.endings, last
    )


def _decisions(model: RSPMN, log: Episodes) -> tuple[Ints, tuple[Joint, ...]]:
    """Return the number of each step's joint decision, and all that log or model have."""
    columns = [log.columns[name] for name in model.schema.decisions]
    groups = joint_groups(columns, log.num_steps)
    decoded = [column.take(groups.members()).decode() for column in columns]
    found: dict[Joint, None] = dict.fromkeys(zip(*decoded, strict=True))
    found |= dict.fromkeys(_offered(model))
    return groups.codes.astype(np.int64), tuple(found)


def _offered(model: RSPMN) -> list[Joint]:
    """Return the joint decisions that a model offers anywhere."""
    offers, names = model.offers, model.schema.decisions
    found: dict[tuple[int, Joint], None] = dict.fromkeys(
        (number, ()) for number in offers.first.tolist() if number >= 0
    )
    for name in names:
        values, branches = offers.values(name), offers.branches(name)
        found = dict.fromkeys(
            (int(offers.next[branch]), (*made, value))
            for number, made in found
            for value, branch in zip(values, branches[number].tolist(), strict=True)
            if number >= 0 and branch >= 0
        )
    return [made for _, made in found]


def _situations(
    model: RSPMN, columns: dict[str, Column], state: Ints, decisions: tuple[Joint, ...]
) -> Situations:
    """Return logged states, and states that are drawn of interface nodes.

    What is done in a node is what is done in its logged states or, where there are none, in drawn
    ones. A soft box is worth what its knot is: there it is what is done at the knot.
    """
    count = int(state.max(initial=-1)) + 1 if not columns else len(next(iter(columns.values())))
    places = places_of(model, columns, count)
    soft = model.soft_counts is not None
    visited = places.in_groups(np.full(count, float(not soft)))[: places.nodes] > 0
    visited[[number for number in (model.end, model.unknown) if number is not None]] = True
    others = np.flatnonzero(~visited)
    if len(others) and columns:
        others = np.repeat(others, 1 if soft and not model.set_aside else DRAWN)
        for name, drawn in _drawn(model, others).items():
            one, other = same_domain(columns[name], drawn, name)
            columns[name] = one.append(other)
        places, count = places.with_states(others), count + len(others)
    steps = np.bincount(state, minlength=count).astype(np.float64)
    weight = np.where(steps > 0, steps, 1e-9)
    if soft:
        weight = np.where(np.arange(count) < count - len(others), 0.0, 1.0)
    return Situations(model.schema, columns, count, places, steps, weight, decisions)


def _drawn(model: RSPMN, nodes: Ints) -> dict[str, Column]:
    """Return states of interface nodes, the numbers of soft boxes at their knots."""
    sampler = Sampler(model.template, model.schema)
    draws = ManyDraws(sampler, nodes, np.random.default_rng(0))
    draws.finish()
    found = {name: draws.drawn[name] for name in model.schema.information_sets[0]}
    if model.soft_counts is not None:
        found |= {name: numbers[nodes] for name, numbers in knots(model).items()}
    return {name: sampler.column(name, values) for name, values in found.items()}
