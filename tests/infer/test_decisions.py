"""MEU and decisions on networks small enough to work out by hand."""

import copy
import math
import pickle

import numpy as np
import pytest

from rspmn.circuit import Categorical, Network, NetworkBuilder
from rspmn.errors import EvidenceError
from rspmn.infer import action_values, best_decisions, log_likelihood, meu


def lacking() -> Network:
    """In state a, left earns 4 and right 10; in state b, left earns 2 and right was never tried."""
    b = NetworkBuilder()
    in_a = b.max("go", {"left": b.utility("u", 4.0, 30), "right": b.utility("u", 10.0, 10)})
    in_b = b.max("go", {"left": b.utility("u", 2.0, 60)})
    leaves = [b.leaf("x", Categorical.certain(x)) for x in "ab"]
    parts = [b.product([leaves[0], in_a]), b.product([leaves[1], in_b])]
    return b.build(b.sum(parts, [0.5, 0.5]))


def test_an_action_that_another_part_lacks() -> None:
    network = lacking()
    # x will be seen before the decision: .5 · max(4, 10) + .5 · 2
    assert meu(network) == 6.0
    left, right = action_values(network)
    # x will not be seen: left earns .5 · 4 + .5 · 2, from 30 + 60 logged steps
    assert (left.value, left.utility, left.available, left.steps) == ("left", 3.0, 1.0, 90.0)
    assert left.supported
    # right is worth 10 where it is offered, with probability .5. Choosing it does not make
    # the state a, so it says how much of it is known and does not compete.
    assert (right.value, right.utility, right.available, right.steps) == ("right", 10.0, 0.5, 10.0)
    assert (right.known, right.supported) == (0.5, 0.5)
    assert [best.value for best in best_decisions(network)] == ["left"]

    left, right = action_values(network, {"x": "a"})
    assert (left.utility, right.utility, right.available, right.steps) == (4.0, 10.0, 1.0, 10.0)
    assert [best.value for best in best_decisions(network, {"x": "a"})] == ["right"]

    left, right = action_values(network, {"x": "b"})
    assert (left.utility, left.steps) == (2.0, 60.0)
    assert math.isnan(right.utility)
    assert (right.available, right.steps, right.supported) == (0.0, 0.0, False)
    assert meu(network, {"x": "b"}) == 2.0

    # Right was taken, it is a fact now; then the state was a.
    taken = meu(network, {"go": "right"})
    assert (float(taken), taken.steps) == (10.0, 10.0)


def test_utilities_within_a_bound_tie() -> None:
    b = NetworkBuilder()
    network = b.build(b.max("go", {"left": b.utility("u", 4.0), "right": b.utility("u", 4.1)}))
    assert [action.best for action in action_values(network)] == [False, True]
    assert [action.best for action in action_values(network, within=0.2)] == [True, True]


def test_impossible_evidence_is_answered_and_flagged() -> None:
    network = lacking()
    for evidence in ({"x": "never seen"}, {"x": "b", "go": "right"}, {"go": "never tried"}):
        answer = meu(network, evidence)
        assert math.isnan(answer)
        assert (answer.supported, answer.steps) == (False, 0.0)
        assert log_likelihood(network, evidence) == -math.inf
    assert best_decisions(network, {"x": "never seen"}) == []
    assert all(a.available == 0 for a in action_values(network, {"x": "never seen"}))


def test_an_impossible_product_has_no_utility() -> None:
    b = NetworkBuilder()
    leaf, utility = b.leaf("x", Categorical.certain(1)), b.utility("u", 5.0, 3)
    answer = meu(b.build(b.product([leaf, utility])), {"x": 2})
    assert math.isnan(answer)
    assert (answer.supported, answer.steps) == (False, 0.0)


def oil() -> Network:
    """Test the ground or not, see the result, drill or not. All utilities are odd or negative.

    There is oil with probability .3; the test says so with probability .8 where there is, .1
    where there is none, and costs .7; drilling costs 9.9 and oil earns 29.9. Not testing gives
    the result "none". P(yes) = .3 · .8 + .7 · .1 = .31, P(oil | yes) = .24/.31, and
    P(oil | no) = .06/.69.
    """
    b = NetworkBuilder()

    def drill(oil: float, cost: float) -> int:
        strike, dry = b.utility("u", 20.0 - cost), b.utility("u", -9.9 - cost)
        leaf = {v: b.leaf("oil", Categorical.certain(v)) for v in (True, False)}
        yes = [b.product([leaf[True], strike]), b.product([leaf[False], dry])]
        idle = b.utility("u", -cost)
        no = [b.product([leaf[True], idle]), b.product([leaf[False], idle])]
        weights = [oil, 1 - oil]
        return b.max("drill", {"yes": b.sum(yes, weights), "no": b.sum(no, weights)})

    result = {v: b.leaf("result", Categorical.certain(v)) for v in ("yes", "no", "none")}
    tested = b.sum(
        [
            b.product([result["yes"], drill(0.24 / 0.31, 0.7)]),
            b.product([result["no"], drill(0.06 / 0.69, 0.7)]),
        ],
        [0.31, 0.69],
    )
    untested = b.product([result["none"], drill(0.3, 0.0)])
    return b.build(b.max("test", {"do": tested, "skip": untested}))


def test_two_decisions_by_hand() -> None:
    network = oil()
    # Skip: drill, .3 · 20 - .7 · 9.9 = -.93; do not, 0. So 0.
    # Test: yes (.31): drill, (.24 · 20 - .07 · 9.9)/.31 - .7; no (.69): not, -.7.
    # Together .24 · 20 - .07 · 9.9 - .7 = 3.407.
    assert meu(network) == pytest.approx(3.407, abs=1e-12)
    (test,) = best_decisions(network)
    assert (test.decision, test.value) == ("test", "do")
    assert test.utility == pytest.approx(3.407, abs=1e-12)
    assert [a.utility for a in action_values(network)] == pytest.approx([3.407, 0.0])

    # A decision already made in this step: the next one is asked for.
    made = {"test": "do", "result": "yes"}
    yes, no = action_values(network, made)
    assert (yes.decision, yes.value) == ("drill", "yes")
    assert yes.utility == pytest.approx((0.24 * 20 - 0.07 * 9.9) / 0.31 - 0.7, abs=1e-12)
    assert no.utility == pytest.approx(-0.7, abs=1e-12)
    # Tested, but the result is not known and will not be: drill on the prior.
    yes, no = action_values(network, {"test": "do"})
    assert yes.utility == pytest.approx(0.3 * 20 - 0.7 * 9.9 - 0.7, abs=1e-12)
    assert [a.value for a in best_decisions(network, {"test": "do"})] == ["no"]


def test_a_maximum_never_takes_an_impossible_branch() -> None:
    """All utilities negative: an impossible branch must not win with a 0."""
    network = oil()
    tested = meu(network, {"result": "no"})  # only testing has such a result
    assert tested == pytest.approx(-0.7, abs=1e-12)
    assert meu(network, {"result": "none"}) == 0.0
    assert math.isnan(meu(network, {"result": "none", "test": "do"}))


def test_all_the_best_are_found_when_they_tie() -> None:
    b = NetworkBuilder()
    # .1 + .2 is not .3 in floating point, but it is a tie
    branches = {"a": b.utility("u", 0.3), "b": b.utility("u", 0.1 + 0.2), "c": b.utility("u", 0.2)}
    network = b.build(b.max("d", branches))
    assert [a.value for a in best_decisions(network)] == ["a", "b"]
    zero = b.build(b.max("d", {"a": b.utility("u", 0.0), "b": b.utility("u", -1e-3)}))
    assert [a.value for a in best_decisions(zero)] == ["a"]


def test_evidence_is_checked() -> None:
    network = lacking()
    with pytest.raises(EvidenceError, match=r"unknown variable 'goo': did you mean 'go'\?"):
        meu(network, {"goo": 1})
    with pytest.raises(EvidenceError, match="'u' is the utility"):
        meu(network, {"u": 1})
    with pytest.raises(EvidenceError, match=r"expected a string, int, .* found \[1\]"):
        meu(network, {"x": [1]})
    with pytest.raises(EvidenceError, match="its values are text, found 3"):
        meu(network, {"x": 3})
    with pytest.raises(EvidenceError, match="expected values by variable, as in .*, found list"):
        meu(network, ["x"])  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="no decision is left to make"):
        action_values(network, {"x": "a", "go": "left"})
    with pytest.raises(EvidenceError, match=r"'drill' comes after \['test'\]"):
        action_values(oil(), {}, "drill")
    with pytest.raises(EvidenceError, match="'test' is already given in the evidence"):
        action_values(oil(), {"test": "do"}, "test")
    with pytest.raises(EvidenceError, match=r"'dril' is not a decision: did you mean 'drill'\?"):
        action_values(oil(), {}, "dril")


def test_what_is_not_known_may_be_written_in_three_ways() -> None:
    network = lacking()
    for missing in (None, math.nan, np.float32("nan"), np.float64("nan")):
        assert meu(network, {"x": missing}) == 6.0
    assert meu(network, {}) == 6.0
    assert meu(network, {"x": np.str_("a")}) == 10.0


def test_two_decisions_apart_from_each_other() -> None:
    b = NetworkBuilder()
    one = b.max("one", {0: b.utility("u", 1.0), 1: b.utility("u", 2.0)})
    two = b.max("two", {0: b.utility("v", 5.0), 1: b.utility("v", 3.0)})
    network = b.build(b.product([one, two]))
    assert meu(network) == 7.0
    with pytest.raises(EvidenceError, match=r"several decisions come next, \['one', 'two'\]"):
        best_decisions(network)
    (best,) = best_decisions(network, decision="two")
    assert (best.value, best.utility) == (0, 7.0)  # 5, and the best of the other decision


def test_ties_do_not_hang_on_the_order_of_branches() -> None:
    """In s=0 both choices earn 5, but what is seen later, y, is likelier after one of them."""

    def network(first: str, second: str) -> Network:
        b = NetworkBuilder()
        likely = {"a": 0.9, "b": 0.1}
        branches = {
            name: b.product(
                [
                    b.leaf("y", Categorical((0, 1), (1 - likely[name], likely[name]))),
                    b.utility("u", 5),
                ]
            )
            for name in (first, second)
        }
        even = b.product([b.leaf("y", Categorical((0, 1), (0.5, 0.5))), b.utility("u", 0)])
        parts = [
            b.product([b.leaf("s", Categorical.certain(0)), b.max("d", branches)]),
            b.product([b.leaf("s", Categorical.certain(1)), b.max("d", {"a": even})]),
        ]
        return b.build(b.sum(parts, [0.5, 0.5]))

    # the likelier of the two: 5 · .9 / (.9 + .5)
    for order in ("ab", "ba"):
        assert meu(network(*order), {"y": 1}) == pytest.approx(5 * 0.9 / 1.4)


def test_ties_are_broken_alike_in_all_parts() -> None:
    """Left and right earn 5 in both states, which list them in different orders.

    Left comes first in the first state, so it is taken in both: 10 and 20 steps are behind it.
    """
    b = NetworkBuilder()
    counts = ({"left": 10.0, "right": 1.0}, {"right": 2.0, "left": 20.0})
    states = [
        b.product(
            [
                b.leaf("s", Categorical.certain(s)),
                b.max("a", {value: b.utility("u", 5.0, n) for value, n in of.items()}),
            ]
        )
        for s, of in enumerate(counts)
    ]
    found = meu(b.build(b.sum(states, [0.5, 0.5])))
    assert (float(found), found.steps) == (5.0, 30.0)


def test_what_is_known_later_may_rule_out_a_choice() -> None:
    b = NetworkBuilder()
    branches = {
        "a": b.product([b.leaf("y", Categorical.certain(0)), b.utility("u", 5.0)]),
        "b": b.product([b.leaf("y", Categorical.certain(1)), b.utility("u", 1.0)]),
    }
    network = b.build(b.max("d", branches))
    a, other = action_values(network, {"y": 1})
    assert math.isnan(a.utility)
    assert (a.available, other.available) == (0.0, 1.0)
    assert [best.value for best in best_decisions(network, {"y": 1})] == ["b"]
    assert meu(network, {"y": 1}) == 1.0


def test_after_a_decision_that_was_never_tried() -> None:
    answers = action_values(oil(), {"test": "never tried"})
    assert {answer.decision for answer in answers} == {"drill"}
    assert all(answer.available == 0 and math.isnan(answer.utility) for answer in answers)
    assert best_decisions(oil(), {"test": "never tried"}) == []


def test_the_steps_behind_an_answer_are_those_it_uses() -> None:
    b = NetworkBuilder()
    poor, rich = b.utility("u", 1.0, 1000), b.utility("u", 2.0, 1)
    network = b.build(b.max("d", {"often": poor, "once": rich}))
    assert meu(network).steps == 1.0
    assert meu(network, {"d": "often"}).steps == 1000.0
    never = b.build(b.sum([poor, rich], [1.0, 0.0]))
    assert meu(never).steps == 1000.0


def test_numbers_may_be_tiny() -> None:
    b = NetworkBuilder()
    leaves = [b.leaf("x", Categorical.certain(x)) for x in "ab"]
    parts = [b.product([leaf, b.max("d", {0: b.utility("u", 1.0)})]) for leaf in leaves]
    network = b.build(b.sum(parts, [1e-310, 1.0]))
    (best,) = best_decisions(network, {"x": "a"})
    assert (best.utility, best.supported) == (1.0, True)


def test_answers_can_be_copied() -> None:
    answer = meu(lacking(), {"x": "a"})
    for again in (copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
        assert (float(again), again.supported, again.steps) == (10.0, True, 10.0)
    assert repr(answer) == "10.0 (from 10 logged steps)"
    assert repr(meu(lacking(), {"x": "zzz"})) == "nan (unsupported)"
