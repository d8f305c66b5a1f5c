"""The questions that a served model answers, as JSON has them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rspmn.errors import EvidenceError, did_you_mean
from rspmn.infer.actions import ActionValue
from rspmn.infer.evidence import as_state
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.serve.answering import Loaded
from rspmn.values import UNKNOWN, plain

#: The most states of a batch, and the most steps of a simulation.
MOST_STATES, MOST_STEPS = 100_000, 100_000

Value = str | bool | int | float | None
State = Annotated[
    dict[str, Value] | None,
    Field(description="values of variables; null or omitted: unknown; null instead of the object: "
          "the start of an episode"),
]  # fmt: skip
Time = Annotated[int, Field(ge=0, description="the time step, for policies with a horizon")]


class Question(BaseModel):
    """What every question may have: nothing else is accepted."""

    model_config = ConfigDict(extra="forbid")


class AboutState(Question):
    """A question about a state."""

    state: State = None
    t: Time = 0


class AboutWorth(Question):
    """What a state is worth."""

    state: State = None
    horizon: Annotated[int | None, Field(ge=1, le=10_000)] = None


class Batch(Question):
    """What to do in many states: a column for each variable, or a list of states."""

    columns: dict[str, Annotated[list[Value], Field(max_length=MOST_STATES)]] | None = None
    states: Annotated[list[dict[str, Value]] | None, Field(max_length=MOST_STATES)] = None
    t: Time = 0

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.columns is not None and self.states is not None:
            raise ValueError("expected columns or states, found both")
        return self


class Simulation(Question):
    """Episodes drawn from the model."""

    episodes: Annotated[int, Field(ge=1, le=10_000)] = 10
    horizon: Annotated[int, Field(ge=1, le=10_000)] = 20
    seed: Annotated[int, Field(ge=0)] = 0
    policy: Literal["recommended", "practice", "uniform"] = "recommended"

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.episodes * self.horizon > MOST_STEPS:
            raise ValueError(f"expected at most {MOST_STEPS} steps, episodes times horizon")
        return self


def act(asked: AboutState, found: Loaded) -> dict[str, Any]:
    """Return what to do."""
    made = found.policy.act(asked.state, asked.t)
    decisions = found.model.schema.decisions
    return {"decided": plain(made if len(decisions) > 1 else {decisions[0]: made})}


def action_values(asked: AboutState, found: Loaded) -> dict[str, Any]:
    """Return what every value of the next decision is worth."""
    return {"actions": [_facts(each) for each in found.policy.action_values(asked.state, asked.t)]}


def explain(asked: AboutState, found: Loaded) -> dict[str, Any]:
    """Return why the policy decides as it does."""
    return found.policy.explain(asked.state, asked.t).to_dict()


def meu(asked: AboutWorth, found: Loaded) -> dict[str, Any]:
    """Return the maximum expected utility."""
    worth = found.over(asked.horizon).value(asked.state)
    facts = {"supported": worth.supported, "steps": worth.steps, "bound": worth.bound}
    return dict(plain({"meu": float(worth), **facts}))


def batch(asked: Batch, found: Loaded) -> dict[str, Any]:
    """Return what to do in many states, as columns; null where the model knows nothing to do."""
    if asked.columns is None:
        names = found.policy.index.names
        rows = [as_state(row, found.model.schema) for row in asked.states or []]
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in names:
                raise EvidenceError(f"unknown variable {name!r}: {did_you_mean(name, names)}")
        return _decided({name: [row.get(name) for row in rows] for name in names}, asked.t, found)
    return _decided(asked.columns, asked.t, found)


def _decided(table: Mapping[str, list[Any]], t: int, found: Loaded) -> dict[str, Any]:
    """Return what to do in the rows of a table, as columns."""
    decisions = found.model.schema.decisions
    several = len(decisions) > 1
    unknown: Any = dict.fromkeys(decisions, UNKNOWN) if several else UNKNOWN
    made = found.policy.act_many(table, t, unknown)
    columns = made if several else {decisions[0]: made}
    return {"decided": {name: _known(column.tolist()) for name, column in columns.items()}}


def simulate(asked: Simulation, found: Loaded) -> dict[str, Any]:
    """Return episodes as a long table, by column."""
    import numpy as np

    rng = np.random.default_rng(asked.seed)
    policy: Policy | Literal["practice"] | None = None
    if asked.policy == "practice":
        policy = "practice"
    elif asked.policy == "recommended":
        policy = found.over(asked.horizon) if isinstance(found.model, RSPMN) else found.policy
    if not isinstance(found.model, RSPMN):
        return {"columns": plain(found.model.sample(asked.episodes, rng, policy))}
    log = found.model.sample(asked.episodes, asked.horizon, rng, policy)
    return {"columns": plain(log.to_long())}


def _facts(answer: ActionValue) -> dict[str, Any]:
    facts: dict[str, Any] = plain({
        "decision": answer.decision, "value": answer.value, "utility": answer.utility,
        "best": answer.best, "available": answer.available, "known": answer.known,
        "supported": answer.supported, "steps": answer.steps,
        "averaged_over": answer.averaged_over, "never_taken": [*map(str, answer.never_taken)],
        "practice": answer.practice,
    })  # fmt: skip
    return facts


def _known(values: list[Any]) -> list[Any]:
    return [None if value is UNKNOWN else value for value in values]
