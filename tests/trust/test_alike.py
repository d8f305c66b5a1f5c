"""States that differ from an expected one in one component, against the definition."""

import numpy as np
import pytest

import rspmn
from rspmn.circuit import Leaf
from rspmn.envs.inventory import inventory
from rspmn.envs.lessons import lessons
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN
from rspmn.trust import Posterior
from rspmn.trust.alike import Alike
from rspmn.types import Array
from rspmn.values import Value


def states_of(model: RSPMN) -> list[dict[str, Value]]:
    """Return the state that each interface node is; nothing for those that are none."""
    found = []
    for root in model.template.roots:
        leaves = [model.template.nodes[k] for k in model.template.nodes[root].children]
        values = {
            leaf.variable: leaf.distribution.support()[0]
            for leaf in leaves
            if isinstance(leaf, Leaf) and len(leaf.distribution.support()) == 1
        }
        found.append(values)
    return found


@pytest.fixture(scope="module")
def learned() -> tuple[Alike, Array, Posterior]:
    """Return what is alike in a log of lessons, as found and as an enumeration: from, to."""
    model, info = learn_rspmn(lessons(2, 2).generate(60, 6, 0, "final"))
    posterior = Posterior(model)
    alike, states = posterior.novelty.alike, states_of(model)
    assert alike is not None
    assert len(info.future.components) > 1
    counted = posterior.evidence.counted
    size = posterior.evidence.bellman.interfaces
    arrived = np.bincount(counted.to, counted.steps, minlength=size)
    expected = np.zeros((size, size))
    for names in info.future.components:
        for one, here in enumerate(states):
            often = np.zeros(size)
            for other, there in enumerate(states):
                if here and there and all(here[v] == there[v] for v in here if v not in names):
                    same = [k for k, s in enumerate(states)
                            if s and all(s[v] == there[v] for v in names)]  # fmt: skip
                    often[other] = arrived[same].sum() + 1e-9
            often[one] += not here  # what is no state is like itself only
            expected[one] += often / often.sum() / len(info.future.components)
    return alike, expected, posterior


def test_means_are_those_of_states_that_differ_in_one_component(
    learned: tuple[Alike, Array, Posterior],
) -> None:
    alike, expected, _ = learned
    assert (expected > 0).sum() > 2 * len(expected)
    assert alike.means(np.eye(len(expected))) == pytest.approx(expected)


def test_draws_have_these_chances(learned: tuple[Alike, Array, Posterior]) -> None:
    alike, expected, _ = learned
    draws, size = 3000, len(expected)
    start = np.repeat(np.arange(size), draws)
    found = alike.draw(start, np.random.default_rng(0))
    often = np.bincount(start * size + found, minlength=size * size).reshape(size, size) / draws
    assert (np.abs(often - expected) <= 6 * np.sqrt(expected * (1 - expected) / draws)).all()


def test_the_chance_of_a_pair_leaves_out_what_leads_there_itself(
    learned: tuple[Alike, Array, Posterior],
) -> None:
    alike, expected, posterior = learned
    counted, core = posterior.evidence.counted, posterior.mean_core.toarray()
    found = alike.chances(posterior.novelty._edges, counted.branch, counted.to)
    for branch, to, chance in zip(counted.branch, counted.to, found, strict=True):
        others = [k for k in range(len(expected)) if k != to]
        assert chance == pytest.approx(core[branch, others] @ expected[others, to])


def test_what_is_new_in_a_shop_is_like_what_was_expected() -> None:
    """Of a stock that may be any number, what is new is another number on the right day."""
    world = inventory(most=30)
    model, _ = learn_rspmn(world.generate(200, 14, 0, "final"))
    posterior = Posterior(model)
    node, anywhere, alike = posterior.novelty.shares @ posterior.evidence.steps
    assert alike > 10 * (node + anywhere)
    policy = model.policy(14)
    honest = policy.honest_value()
    assert honest.low < rspmn.true_value(world, policy, 14) < honest.high
    assert honest.caveats == ()
