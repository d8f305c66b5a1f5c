"""Rows and episodes drawn in arrays; one after the other, they are `rspmn.infer.sample`."""

from collections.abc import Collection

import numpy as np

from rspmn.circuit import Network
from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.draws import Decides, ManyDraws, Sampler
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints
from rspmn.values import Value


def simulate_rows(
    network: Network,
    schema: Schema,
    rows: int,
    rng: np.random.Generator,
    policy: Decides = None,
    made: Collection[str] = (),
) -> dict[str, list[Value]]:
    """Draw rows of a network with one root as columns; decisions are as `Decides` says.

    Decisions in `made` are known: the network offers one value of them.
    """
    sampler = Sampler(network, schema)
    draws = ManyDraws(sampler, np.zeros(rows, dtype=np.int64), rng)
    lost = np.flatnonzero(~draws.finish(policy, made=made))[:1]
    if len(lost):
        names = schema.information_sets[0]
        state = {name: sampler.decoded(name, draws.drawn[name][lost])[0] for name in names}
        raise EvidenceError(f"cannot sample: no decision is known in the state {state}")
    found = {name: sampler.decoded(name, draws.drawn[name]) for name in sampler.variables}
    found[schema.utility] = list(draws.utility.tolist())
    return {name: found[name] for name in schema.variables}


def simulate_episodes(
    model: RSPMN, episodes: int, horizon: int, rng: np.random.Generator, policy: Decides
) -> Episodes:
    """Draw episodes from the start, each until END or for `horizon` steps.

    Decisions are as `Decides` says. An episode also ends, with its last state, where no decision
    is known, or where the one that the policy makes is not offered.
    """
    sampler = Sampler(model.template, model.schema)
    log = _Log(sampler, episodes)
    which = np.arange(episodes)
    starts = np.array(model.starts)
    at = rng.choice(len(starts), episodes, p=starts / starts.sum())
    stops = [i for i in (model.end, model.unknown) if i is not None]
    for t in range(horizon + 1):
        log.endings[which[at == model.end]] = Followed.END
        runs = ~np.isin(at, stops)
        at, which = at[runs], which[runs]
        if t == horizon or not len(which):
            break
        draws = ManyDraws(sampler, at, rng)
        goes_on = draws.finish(policy, t)
        log.add(which, draws, goes_on)
        at, which = draws.interface[goes_on], which[goes_on]
    return log.assembled()


class _Log:
    """The steps of episodes drawn so far."""

    def __init__(self, sampler: Sampler, episodes: int) -> None:
        self.s = sampler
        self.steps: list[tuple[Ints, ManyDraws, Ints]] = []  # episodes, draws, rows of them
        self.finals: list[tuple[Ints, ManyDraws, Ints]] = []
        self.endings = np.full(episodes, Followed.UNKNOWN, dtype=np.int8)

    def add(self, which: Ints, draws: ManyDraws, goes_on: Bools) -> None:
        """Keep a step of some episodes; where no decision is known it is their final state."""
        made, stuck = np.flatnonzero(goes_on), np.flatnonzero(~goes_on)
        self.steps.append((which[made], draws, made))
        if len(stuck):
            self.finals.append((which[stuck], draws, stuck))
            self.endings[which[stuck]] = Followed.STATE

    def assembled(self) -> Episodes:
        """Return the episodes, their steps in order."""
        schema = self.s.schema
        none = np.arange(0)  # no step, if all episodes start in END
        which = np.concatenate([none, *(which for which, _, _ in self.steps)])
        order = np.argsort(which, kind="stable")
        lengths = np.bincount(which, minlength=len(self.endings))
        columns, finals = {}, {}
        for name in self.s.variables:
            columns[name], finals[name] = self._columns(name, order)
        earned = (draws.utility[rows] for _, draws, rows in self.steps)
        utility = np.concatenate([none.astype(np.float64), *earned])
        columns[schema.utility] = Column(Kind.CONTINUOUS, utility[order])
        return Episodes(
            schema.with_kinds({name: column.kind for name, column in columns.items()}),
            {name: columns[name] for name in schema.variables},
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            self.endings,
            {name: finals[name] for name in schema.information_sets[0]},
            np.arange(len(self.endings)),
        )

    def _columns(self, name: str, order: Ints) -> tuple[Column, Column]:
        """Return a variable's column in the steps, and in the final states [episodes]."""
        ends = self.finals if name in self.s.schema.information_sets[0] else []
        steps, last = (
            np.concatenate([self.s.empty(name, 0), *(d.drawn[name][rows] for _, d, rows in parts)])
            for parts in (self.steps, ends)
        )
        whole = self.s.column(name, np.concatenate([steps[order], last]))
        finals = whole.without_values(len(self.endings))
        for_episodes = np.concatenate([order[:0], *(which for which, _, _ in ends)])
        finals.data[for_episodes] = whole.data[len(order) :]
        return whole.take(np.arange(len(order))), finals
