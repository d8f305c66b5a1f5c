"""Variables that are set aside take no part in learning, and are in the model all the same."""

import numpy as np
import pytest

from rspmn import RSPMN, Episodes, Followed, Schema
from rspmn.circuit import Categorical, Leaf, soundness_violations
from rspmn.data.windows import Windows
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.set_aside import nodes_of_steps, put_back, without_variables
from rspmn.learn.two_step import wrap
from rspmn.values import END

SCHEMA = Schema([["x", "z"], ["a"]], ["a"], "u")


def log(tied: bool) -> Episodes:
    """Return episodes of three places, that end. z is ten times the place, or drawn."""
    rng = np.random.default_rng(0)
    episodes = [
        [
            {"x": x, "z": 10 * (x if tied else int(rng.integers(3))), "a": int(rng.integers(2)),
             "u": float(x)}
            for x in range(3)
        ]
        for _ in range(60)
    ]  # fmt: skip
    return Episodes.from_steps(episodes, SCHEMA, [Followed.END] * len(episodes))


@pytest.mark.parametrize("tied", [True, False])
def test_the_rest_is_learned_as_if_they_were_not_there(tied: bool) -> None:
    windows, config = Windows.from_episodes(log(tied)), LearnConfig()
    narrow = without_variables(windows, ["z"])
    assert narrow.schema.variables == ("x", "a", "u")
    assert narrow.counts.sum() == windows.counts.sum()
    assert len(narrow) < len(windows) or tied
    model, _ = learn_rspmn(narrow, config)
    here = nodes_of_steps(model, windows, ["z"])
    whole = put_back(model, wrap(windows, config), ["z"], here, {})
    assert soundness_violations(whole.template) == []
    assert whole.schema.variables == windows.schema.variables
    assert whole.values(4) == model.values(4)
    assert (whole.visits, whole.starts, whole.end) == (model.visits, model.starts, model.end)


def widened(tied: bool) -> tuple[RSPMN, list[Leaf]]:
    windows, config = Windows.from_episodes(log(tied)), LearnConfig()
    model, _ = learn_rspmn(without_variables(windows, ["z"]), config)
    here = nodes_of_steps(model, windows, ["z"])
    whole = put_back(model, wrap(windows, config), ["z"], here, {})
    leaves = {n for n in whole.template.nodes if isinstance(n, Leaf) and n.variable == "z"}
    return whole, [leaf for leaf in leaves if leaf.distribution != Categorical.certain(END)]


def test_leaves_are_those_of_the_node_where_they_differ() -> None:
    """Of three nodes with 60 steps each: (60 + 1/3)/61 for the node's own value of z.

    A share of 1/62² is for values that were never seen.
    """
    model, leaves = widened(tied=True)
    found = sorted(np.exp(leaf.distribution.log_prob(z)) for leaf in leaves for z in (0, 10, 20))
    assert found == pytest.approx([1 / 183] * 6 + [181 / 183] * 3, rel=1.1 / 62**2)
    answer = model.meu({"x": 1, "z": 0}, horizon=1)
    assert (answer, answer.supported) == (1.0, True)


def test_one_leaf_for_all_nodes_where_they_do_not() -> None:
    assert len(widened(tied=False)[1]) == 1
