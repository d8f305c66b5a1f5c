"""Roles of columns by their names: a name alone does not make words a time."""

from typing import Any

import numpy as np
import pytest

from rspmn.data.sources.open import open_source
from rspmn.doctor import Proposal, examine, propose, survey_log

COPIES = 60
SHOP = {
    "branch": [f"{k // 3}" for k in range(6 * COPIES)],
    "week": [0, 1, 2] * 2 * COPIES,
    "stock": [*range(60)] * 6,
    "order": ["none", "large", "none", "large", "large", "none"] * COPIES,
    "profit": [1.0, 2.5, 0.5, 3.0, 1.5, 2.0] * COPIES,
    "closed": [False, False, True, False, False, False] * COPIES,
}


def test_words_are_no_times() -> None:
    schema = examine(SHOP).schema
    assert schema.order == (("stock",), ("order",))
    assert (schema.decisions, schema.utility) == (("order",), "profit")
    assert (schema.log.episode, schema.log.time) == ("branch", "week")
    assert schema.log.terminated == "closed"


def test_numbers_called_order_are_times() -> None:
    log = {**SHOP, "action": SHOP["order"], "order": SHOP["week"]}
    del log["week"]
    schema = examine(log).schema
    assert (schema.log.time, schema.decisions) == ("order", ("action",))


def test_integers_of_many_values_may_be_numbers() -> None:
    noted = [f for f in examine(SHOP).findings if f.about == "cardinality"]
    assert [(f.level, f.table, f.line) for f in noted] == [
        ("note", "kinds", '"stock" = "continuous"')
    ]
    few = {**SHOP, "stock": [k % 50 for k in range(360)]}
    assert all(f.about != "cardinality" for f in examine(few).findings)


def test_episodes_may_be_short() -> None:
    """Of 240 hands of cards, two in three have one step: 320 rows, fewer than two a hand."""
    hands = [*range(0, 240), *range(0, 240, 3)]
    hands.sort()
    log = {
        "hand_id": hands,
        "sum": [12 + k % 9 for k in range(320)],
        "action": ["hit", "stick"] * 160,
        "reward": [float(k % 3 - 1) for k in range(320)],
    }
    schema = examine(log).schema
    assert (schema.log.episode, schema.order) == ("hand_id", (("sum",), ("action",)))


def proposal(log: dict[str, Any]) -> Proposal:
    with open_source(log) as source:
        return propose(*survey_log(source))


@pytest.mark.parametrize("name", ["offer sent", "Offer Sent", "offer-sent", "offerSent", "OFFER"])
def test_names_are_spelled_in_several_ways(name: str) -> None:
    log = {**SHOP, name: SHOP["order"], "Time Step": SHOP["week"]}
    del log["order"], log["week"]
    found = proposal(log)
    assert (found.decisions, found.log.time) == ((name,), "Time Step")


def test_what_is_called_otherwise_than_it_is_used_is_said() -> None:
    """One of three decisions is found, and a result is among the state: both are said."""
    log = {
        **SHOP,
        "discount offer": SHOP["week"],
        "daily dose": SHOP["stock"],
        "sold": SHOP["week"],
    }
    found = proposal(log)
    assert found.decisions == ("order",)
    assert found.state == ("stock", "discount offer", "daily dose", "sold")
    lines = found.toml().splitlines()
    for name in ("discount offer", "daily dose"):
        assert f"# {name} is named as decisions are: if it was chosen, make it a decision" in lines
    assert sum(line.startswith("# sold is named as what follows a decision") for line in lines) == 1
    assert "stock is" not in found.toml()


@pytest.mark.parametrize("name", ["ventilate", "sold", "stock"])
def test_two_values_beside_a_decision_may_be_chosen(name: str) -> None:
    """Not if its name tells more, nor if it does not change in an episode."""
    values = {"stock": [k // 180 for k in range(360)]}.get(name, [0, 1] * 180)
    log = {"branch": SHOP["branch"], "week": SHOP["week"], name: values}
    found = proposal(log | {key: SHOP[key] for key in ("order", "profit", "closed")})
    said = f"# {name} has two values, and is beside order: if it was chosen, make it a decision"
    assert found.state == (name,)
    assert (said in found.toml().splitlines()) == (name == "ventilate")


def test_an_income_and_a_cost_are_both_in_the_utility() -> None:
    log = {**SHOP, "revenue": SHOP["profit"], "order cost (EUR)": [0.5] * 360}
    del log["profit"]
    assert proposal(log).utility == "revenue - `order cost (EUR)`"
    assert examine(log).schema.state_variables == ("stock",)
    log["cost of goods"] = log["order cost (EUR)"]
    assert proposal(log).utility == "revenue - `order cost (EUR)` - `cost of goods`"
    assert proposal(log | {"total cost": [1.0] * 180 + [2.0] * 180}).utility == (
        "revenue - `total cost`"
    )
    del log["order cost (EUR)"], log["cost of goods"]
    assert proposal(log).utility == "revenue"


def test_a_price_is_no_cost() -> None:
    """It is chosen, or the state's: which of them, a name does not tell."""
    log = {**SHOP, "sales": SHOP["profit"], "price": SHOP["week"], "late fee": SHOP["profit"]}
    del log["profit"], log["order"]
    found = proposal(log)
    assert (found.utility, found.state) == ("sales - `late fee`", ("stock", "price"))
    said = "# price is named as decisions are: if it was chosen, make it a decision"
    assert said in found.toml().splitlines()


def walks(jump: Any, names: Any) -> dict[str, Any]:
    """Return 400 episodes of 8 steps, each from another of 400 places, written by their `names`."""
    rng = np.random.default_rng(0)
    places = [np.arange(400)]
    for _ in range(7):
        places.append(jump(rng, places[-1]))
    log = {"episode": np.repeat(np.arange(400), 8), "time": np.tile(np.arange(8), 400)}
    log |= {"place": names[np.stack(places, axis=1).ravel()], "action": rng.integers(0, 2, 3200)}
    return log | {"reward": rng.integers(0, 2, 3200)}


CODES = np.random.default_rng(1).permutation(400)


@pytest.mark.parametrize(
    ("jump", "names", "kind", "said"),
    [
        # each place is followed by one of 9, close ones: a number, unless places have codes
        (lambda rng, x: (x + rng.integers(-4, 5, len(x))) % 400, np.arange(400), "continuous",
         "an amount, as neighbours are followed by similar values; if it is a code, write "),
        (lambda rng, x: (x + rng.integers(-4, 5, len(x))) % 400, CODES, "categorical",
         "codes, as neighbours are followed by different values; if it is an amount, write "),
        # nothing tells what follows: the log cannot show what the numbers mean
        (lambda rng, x: rng.integers(0, 400, len(x)), np.arange(400), "continuous",
         "an amount, but CHECK THIS; if it is a code, write "),
    ],
)  # fmt: skip
def test_codes_are_no_amounts(jump: Any, names: Any, kind: str, said: str) -> None:
    found = proposal(walks(jump, names))
    assert dict(found.kinds)["place"] == kind
    other = "categorical" if kind == "continuous" else "continuous"
    line = f'# place has 400 whole numbers, 0 to 399: {said}"place" = "{other}" under [kinds]'
    assert line in found.toml().splitlines()
    scarce = [f for f in examine(walks(jump, names)).findings if f.about == "cardinality"]
    assert not [f for f in scarce if "continuous" in f.line]
