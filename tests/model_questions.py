"""Every question that a model can be asked: each has an answer, or an error that says why not.

A question is a function of what is asked: a model, states, and a folder. It raises what the library
raises, and `AssertionError` if an answer cannot be one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rspmn import RSPMN, SPMN, load
from rspmn.display import table_html
from rspmn.errors import RspmnError
from rspmn.export import to_csv, to_json, to_python, to_sql, to_tree
from rspmn.infer.actions import ActionValue
from rspmn.infer.policy import Policy
from rspmn.report import report_data, report_page

HORIZON = 3


@dataclass
class Asked:
    """A model, the states that it is asked about, and a folder to write to."""

    model: RSPMN | SPMN
    folder: Path

    @cached_property
    def recurrent(self) -> RSPMN:
        """The model, or the recurrent form of one of single decisions."""
        return self.model if isinstance(self.model, RSPMN) else self.model.as_recurrent

    @cached_property
    def policy(self) -> Policy:
        """The policy over a few steps; of single decisions, over one."""
        return self.model.policy(HORIZON) if isinstance(self.model, RSPMN) else self.model.policy()

    @cached_property
    def log(self) -> Any:
        """Episodes drawn from the model."""
        return self.recurrent.sample(3, 2, 0)

    @cached_property
    def states(self) -> list[dict[str, Any] | None]:
        """The start, the most probable state, parts of it, and states that it never saw."""
        names = self.model.schema.information_sets[0]
        likely = (self.recurrent.mpe([{}]) or [{}])[0]
        seen = {name: likely[name] for name in names if name in likely}
        decision = self.model.schema.decisions[0]
        decided = {**seen, decision: self._offered(decision)}
        part = dict(list(seen.items())[:1])
        unseen = {name: _other(value) for name, value in seen.items()}
        return [None, seen, part, {}, unseen, decided, dict.fromkeys(names)]

    def _offered(self, decision: str) -> Any:
        return next(iter(self.recurrent.offers.values(decision)))

    @property
    def seen(self) -> dict[str, Any] | None:
        """The most probable state."""
        return self.states[1]


def _other(value: Any) -> Any:
    return f"{value} or not" if isinstance(value, str) else 1e9


Question = Callable[[Asked], object]


# ---- the questions -------------------------------------------------------------------


def facts(asked: Asked) -> None:
    model = asked.model
    assert model.facts
    assert repr(model)
    assert model._repr_html_()
    assert model.schema._repr_html_()
    for network in model.networks if isinstance(model, RSPMN) else [model.network]:
        assert network.dot()


def saved_again(asked: Asked) -> None:
    path = asked.folder / "again.json"
    asked.model.save(path)
    again = load(path)
    assert again == asked.model, "a model differs from its file"
    content = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == content, "a model is written in two ways"


def meu_of_steps(asked: Asked) -> None:
    for state in asked.states:
        model = asked.model
        _is_worth(model.meu(state, HORIZON) if isinstance(model, RSPMN) else model.meu(state))


def meu_for_ever(asked: Asked) -> None:
    for state in asked.states[:2]:
        _is_worth(asked.recurrent.meu(state))


def meu_discounted(asked: Asked) -> None:
    _is_worth(asked.recurrent.meu(None, discount=0.9))


def values(asked: Asked) -> None:
    for number in asked.recurrent.values(HORIZON):
        assert not math.isinf(number), number


def acts(asked: Asked) -> None:
    _acts(asked, asked.policy)


def acts_for_ever(asked: Asked) -> None:
    _acts(asked, asked.recurrent.policy())


def acts_untried(asked: Asked) -> None:
    _acts(asked, asked.recurrent.policy(HORIZON, offer="all"))


def acts_with_rules(asked: Asked) -> None:
    decision = asked.model.schema.decisions[0]
    forbidden = [asked._offered(decision)]
    rules = {decision: forbidden} if len(asked.model.schema.decisions) > 1 else forbidden
    _acts(asked, asked.recurrent.policy(2, min_support=1.0))
    _acts(asked, asked.recurrent.policy(2, forbid=rules))


def acts_plainly(asked: Asked) -> None:
    _acts(asked, asked.recurrent.policy(2, safe=False))


def single_decisions(asked: Asked) -> None:
    if isinstance(asked.model, SPMN):
        for state in asked.states:
            _are_worths(asked.model.action_values(state))
        assert asked.model.decide({name: [v, v] for name, v in (asked.seen or {}).items()})


def acts_of_many(asked: Asked) -> None:
    seen, unseen = asked.states[1] or {}, asked.states[4] or {}
    rows = {name: [value, unseen[name], None] for name, value in seen.items()}
    asked.policy.act_many(rows or {"row": [1]}, otherwise=_otherwise(asked))


def policy_table(asked: Asked) -> None:
    assert table_html(asked.policy.table())


def how_sure(asked: Asked) -> None:
    for state in asked.states[:2]:
        for each in asked.policy.how_sure(state).actions:
            assert math.isnan(each.low) or each.low <= each.high


def honest_value(asked: Asked) -> None:
    found = asked.recurrent.honest_value(HORIZON, draws=8)
    assert math.isnan(found.point) or found.low <= found.high


def explain(asked: Asked) -> None:
    for state in asked.states[:3]:
        assert str(asked.policy.explain(state))


def sensitivity(asked: Asked) -> None:
    asked.policy.sensitivity(asked.seen)


def information(asked: Asked) -> None:
    for name in list(asked.seen or ())[:1]:
        asked.policy.value_of_information(None, name)


def returns(asked: Asked) -> None:
    asked.policy.returns(episodes=20, rng=0)


def tail(asked: Asked) -> None:
    asked.policy.tail(0.2, points=50)


def likelihood(asked: Asked) -> None:
    for smoothed in (True, False):
        found = asked.recurrent.log_likelihood(asked.log, smoothed)
        assert not np.isnan(found).any()
    if isinstance(asked.model, SPMN):
        found = asked.model.log_likelihood(asked.model.sample(3, 0))
        assert not np.isnan(found).any()


def most_probable(asked: Asked) -> None:
    if isinstance(asked.model, SPMN):
        asked.model.mpe(asked.seen)
    asked.recurrent.mpe([asked.seen or {}, {}])


def sample_by_policy(asked: Asked) -> None:
    assert len(asked.recurrent.sample(3, 2, 0, asked.policy)) == 3


def unfold(asked: Asked) -> None:
    assert len(asked.recurrent.unfold(2))


def report(asked: Asked) -> None:
    horizon = HORIZON if isinstance(asked.model, RSPMN) else None
    assert report_page(report_data(asked.model, horizon=horizon))


def exports(asked: Asked) -> None:
    for form in (to_csv, to_json, to_python, to_sql, to_tree):
        try:
            assert form(asked.policy)
        except RspmnError as error:
            check_refusal(error)


QUESTIONS: tuple[Question, ...] = (
    facts, saved_again, meu_of_steps, meu_for_ever, meu_discounted, values, acts, acts_for_ever,
    acts_untried, acts_with_rules, acts_plainly, single_decisions, acts_of_many, policy_table,
    how_sure, honest_value, explain, sensitivity, information, returns, tail, likelihood,
    most_probable, sample_by_policy, unfold, report, exports,
)  # fmt: skip


# ---- what an answer is ---------------------------------------------------------------


def check_refusal(error: RspmnError) -> None:
    """Check that an error is one line of at most 300 characters."""
    text = str(error)
    assert text.strip(), "a refusal without words"
    assert "\n" not in text, repr(text)
    assert len(text) <= 300, f"a refusal of {len(text)} characters: {text[:400]}"


def _acts(asked: Asked, policy: Policy) -> None:
    for state in asked.states:
        try:
            policy.act(state)
        except RspmnError as error:
            check_refusal(error)
        try:
            _are_worths(policy.action_values(state))
            _is_worth(policy.value(state))
        except RspmnError as error:
            check_refusal(error)


def _are_worths(answers: list[ActionValue]) -> None:
    for answer in answers:
        assert not math.isinf(answer.utility), answer
        assert -1e-9 <= answer.available <= 1 + 1e-9, answer
        assert -1e-9 <= answer.supported <= 1 + 1e-9, answer


def _is_worth(found: Any) -> None:
    assert not math.isinf(found), found
    assert math.isnan(found) or found.supported >= 0, found


def _otherwise(asked: Asked) -> Any:
    names = asked.model.schema.decisions
    return "nothing" if len(names) == 1 else dict.fromkeys(names, "nothing")
