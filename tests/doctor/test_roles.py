"""Roles of columns by their names: a name alone does not make words a time."""

from rspmn.doctor import examine

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
