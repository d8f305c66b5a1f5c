"""The roles of the columns of a log: found by their names, and by what episodes show."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rspmn.data.sources.column_stats import Survey, SurveyedColumn
from rspmn.data.sources.episode_stats import EpisodeStats
from rspmn.log_format import LogFormat
from rspmn.schema import Kind

#: Names, as `spelled` writes them, by which the role of a column is recognized; the first that the
#: table has is used.
EPISODES = [
    "episode", "episode_id", "trajectory", "traj", "trajectory_id", "patient", "patient_id",
    "subject", "stay", "admission", "encounter", "session", "session_id", "user_id", "machine_id",
    "run", "game", "trip", "case", "id",
]  # fmt: skip
TIMES = [
    "time", "t", "step", "timestep", "time_step", "date", "datetime", "timestamp", "day", "hour",
    "minute", "minutes", "week", "month", "visit", "seq", "order", "date_time", "time_stamp",
]  # fmt: skip
TERMINATED = ["terminated", "terminal", "done", "is_terminal", "end", "ended"]
#: Those of decisions, a group of words at a time: the first group that the table has is used.
DECISIONS = [
    *(
        (word,)
        for word in (
            "action", "decision", "act", "treatment", "treat", "choice", "dose", "control", "move",
            "intervention",
        )
    ),
    (
        "drug", "medication", "therapy", "antibiotic", "antibiotics", "vasopressor",
        "vasopressors", "fluid", "fluids", "insulin", "steroid", "steroids", "sedation",
        "ventilation", "dialysis", "transfusion", "surgery",
    ),
    ("order", "offer", "purchase", "bid"),
    ("a",),
    ("d",),
]  # fmt: skip
UTILITIES = [
    "reward", "utility", "payoff", "return", "outcome", "score", "profit", "r", "u",
]  # fmt: skip
#: Names of what is earned before costs; also as the last word of a name.
INCOMES = ["revenue", "revenues", "income", "earnings", "gain", "gains", "sales", "turnover"]
#: Words of what often follows a decision.
OUTCOMES = [
    "reward", "payoff", "profit", "outcome", "result", "response", "responded", "accepted",
    "bought", "purchased", "sold", "paid", "clicked", "converted", "conversion", "won", "lost",
    "recovered", "survived",
]  # fmt: skip
#: Names of what is the better the less it is; also as the last word of a name. The first two may be
#: What is called by one of these words last is no amount.
ATTRIBUTES = "center", "centre", "code", "id", "ratio", "type"
#: any word of it: cost_of_goods.
COSTS = ["cost", "costs", "price", "penalty", "loss", "expense", "expenses", "charge", "fee"]
#: Those that may as well be chosen, or be part of the state: no formula has them.
PRICES = ["price", "prices"]
#: Units of money, which may follow a name: cost_eur.
MONEY = ["eur", "euro", "euros", "usd", "dollar", "dollars", "gbp", "chf", "jpy", "cny", "inr"]


@dataclass(frozen=True)
class Roles:
    """The columns that are no state variables."""

    known: Any  # fields of the format of the log, with the columns that were found for them
    utility: tuple[str, ...]  # a reward; or an income, costs, or both
    decisions: tuple[str, ...]
    outcomes: Mapping[str, Sequence[Any]]  # what says how an episode ended besides the flag

    @property
    def taken(self) -> set[str | None]:
        """The columns that have a role."""
        return {*self.known.values(), *self.utility, *self.decisions, *self.outcomes}


def roles_of(found: Survey, stats: EpisodeStats | None, log: LogFormat) -> Roles:
    """Return which columns have a role, by their names and by what episodes show."""
    episode, time = keys_of(found, log)
    if stats is not None:
        episode = stats.episode
    taken = {episode, time, log.flag}
    utility = _utility([c for c in found.columns if c.name not in taken])
    taken |= set(utility)
    decisions = _decisions([c for c in found.columns if c.name not in taken])
    taken |= set(decisions)
    only_last = {} if stats is None else stats.only_last
    only_last = {name: values for name, values in only_last.items() if name not in taken}
    terminated = _end(found, only_last, log)
    only_last.pop(terminated or "", None)
    known = {"episode": episode, "time": time}
    known |= {"terminated": terminated} if log.ending is None else {}
    known = {what: name for what, name in known.items() if name is not None}
    return Roles(known, utility, tuple(decisions), only_last)


def keys_of(found: Survey, log: LogFormat) -> tuple[str | None, str | None]:
    """Return the columns of episodes and of times: those named, or those that look like it."""
    names = {spelled(column.name): column for column in found.columns}
    episode = log.episode if log.episode in found.names else _named(names, EPISODES)
    if episode is None:
        episode = next((c.name for c in found.columns if _repeats_an_id(c, found.rows)), None)
    if log.time is None or log.time in found.names:
        return episode, log.time
    words = [c.name for c in found.columns if c.kind is Kind.CATEGORICAL and not c.is_dates]
    time = _named(names, TIMES, [episode, *words])
    dates = [c.name for c in found.columns if c.is_dates and c.name != episode]
    return episode, time or next(iter(dates), None)


def _repeats_an_id(column: SurveyedColumn, rows: int) -> bool:
    """Return whether a column is called an identifier, and several rows have each of them."""
    is_id = spelled(column.name).endswith("_id") or column.name.endswith("ID")
    return is_id and 1 < column.distinct < rows and not column.is_unique(rows)


def _end(found: Survey, only_last: Mapping[str, Sequence[Any]], log: LogFormat) -> str | None:
    """Return the column or the rule that says that an episode ended."""
    names = {spelled(column.name): column for column in found.columns}
    if log.terminated in found.names or log.terminated not in (None, LogFormat.terminated):
        return log.terminated
    flags = [name for name in only_last if found[name].kind is not Kind.CATEGORICAL]
    rules = [end_rule(name, values) for name, values in only_last.items() if name not in flags]
    return next(iter([*filter(None, [_named(names, TERMINATED)]), *flags, *rules]), None)


def end_rule(name: str, values: Sequence[Any]) -> str:
    """Return the rule that a column has one of some values.

    >>> end_rule("status", ["died", "sent home"])
    "status in (died, 'sent home')"
    """
    words = [str(v) if str(v).isidentifier() else repr(str(v)) for v in values]
    if len(words) == 1:
        return f"{written(name)} == {words[0]}"
    return f"{written(name)} in ({', '.join(words)})"


def written(name: str) -> str:
    """Return a name as expressions have it."""
    return name if name.isidentifier() else f"`{name}`"


def spelled(name: str) -> str:
    """Return a column's name in lower case, its words joined by underscores.

    >>> spelled("offer sent"), spelled("OfferSent"), spelled("Offer-Sent (EUR)")
    ('offer_sent', 'offer_sent', 'offer_sent_eur')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", apart).strip("_").lower()


def without_unit(name: str) -> str:
    """Return a column's name as `spelled` writes it, without a unit of money at its end.

    >>> without_unit("Cost_EUR"), without_unit("net profit USD"), without_unit("euro")
    ('cost', 'net_profit', 'euro')
    """
    words = spelled(name).split("_")
    return "_".join(words[:-1] if len(words) > 1 and words[-1] in MONEY else words)


def is_cost(name: str) -> bool:
    """Return whether a column is called as costs are: the less, the better.

    >>> is_cost("Cost of goods"), is_cost("late_fee_EUR"), is_cost("fee_paid")
    (True, True, False)
    >>> is_cost("cost_center")
    False
    """
    words = without_unit(name).split("_")
    among = words[-1] not in ATTRIBUTES and not set(COSTS[:2]).isdisjoint(words)
    return words[-1] in COSTS or among


def is_income(name: str) -> bool:
    """Return whether a column is called as what is earned before costs."""
    return without_unit(name).split("_")[-1] in INCOMES


def is_called_decision(name: str) -> bool:
    """Return whether a word of a column's name is one of decisions.

    >>> is_called_decision("daily dose"), is_called_decision("daily mean")
    (True, False)
    """
    words = {word for group in (*DECISIONS, PRICES) for word in group if len(word) > 1}
    return not words.isdisjoint(spelled(name).split("_"))


def is_called_outcome(name: str) -> bool:
    """Return whether a column is called as what often follows a decision: rewards, costs, results.

    >>> is_called_outcome("revenue_eur"), is_called_outcome("test result"), is_called_outcome("age")
    (True, True, False)
    """
    is_money = is_cost(name) or is_income(name)
    return is_money or not set(OUTCOMES).isdisjoint(spelled(name).split("_"))


def _utility(columns: Iterable[SurveyedColumn]) -> tuple[str, ...]:
    """Return the columns that look like the utility: a reward, or else an income and all costs."""
    numbers = [c.name for c in columns if c.kind not in (Kind.CATEGORICAL, None)]
    names = {without_unit(name): name for name in numbers}
    rewards = [names[word] for word in UTILITIES if word in names]
    if rewards:
        return tuple(rewards[:1])
    incomes, costs = (list(filter(of, numbers)) for of in (is_income, is_cost))
    costs = [name for name in costs if without_unit(name).split("_")[-1] not in PRICES]
    totals = [name for name in costs if "total" in spelled(name).split("_")]
    return (*incomes[:1], *(totals[:1] or costs))


def _named(
    names: Mapping[str, SurveyedColumn], wanted: Iterable[str], taken: Iterable[str | None] = ()
) -> str | None:
    """Return the first column that has one of the names."""
    used = set(taken)
    return next((names[n].name for n in wanted if n in names and names[n].name not in used), None)


def _decisions(columns: Sequence[SurveyedColumn]) -> list[str]:
    """Return the columns that are named as decisions are, numbered ones too."""
    named = [column for column in columns if column.kind is not Kind.CONTINUOUS]
    several = ([c.name for c in named if _is_called(spelled(c.name), group)] for group in DECISIONS)
    return next(filter(None, several), [])


def _is_called(name: str, words: Sequence[str]) -> bool:
    """Return whether a name is one of some words, or begins with one of them and an underscore."""
    longer = tuple(f"{word}{end}" for word in words if len(word) > 1 for end in ("_", "s_"))
    return name in words or name.startswith(longer)
