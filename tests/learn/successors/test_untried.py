"""Decisions never tried in a state: valued by what they do elsewhere, flagged, not chosen."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from effort import SOAK, seeds
from rspmn import RSPMN, Episodes, NetworkBuilder, Schema
from rspmn.cli import main
from rspmn.envs.paper_grid import paper_grid
from rspmn.envs.sys_admin import sys_admin
from rspmn.errors import CircuitError, EvidenceError, ModelFileError
from rspmn.evaluate import true_value
from rspmn.infer.policy import Policy
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.learn.successors.predict import Predicted
from rspmn.model import Untried

SCHEMA = Schema([["m0", "m1", "m2"], ["reboot"]], ["reboot"], "u")
DOWN = {"m0": 0, "m1": 0, "m2": 0}


def log(times_down: int = 4, schema: Schema = SCHEMA) -> Episodes:
    """Return steps of three machines: a reboot brings m0 or m1 up, and each goes down without.

    m2 stays as it is. A step earns 1 for m0, 5 for m1 and 2 for m2. All was tried 40 times
    everywhere, but where all are down nobody rebooted m1, and all else was tried `times_down`
    times. A light is on in every second step.
    """
    rows: list[tuple[object, ...]] = []
    episode = 0
    for m0, m1, m2 in product((0, 1), repeat=3):
        for action in ("none", "m0", "m1"):
            down = not (m0 or m1 or m2)
            for k in range((0 if action == "m1" else times_down) if down else 40):
                after = int(action == "m0"), int(action == "m1"), m2
                earned = m0 + 5.0 * m1 + 2.0 * m2
                rows.append((episode, 0, m0, m1, m2, action, k % 2, earned, False))
                rows.append((episode, 1, *after, None, None, None, False))
                episode += 1
    names = "episode", "time", "m0", "m1", "m2", "reboot", "light", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return Episodes.from_long(table, schema, terminated="over")


def test_an_extrapolated_branch_by_hand() -> None:
    """Elsewhere to reboot m1 brings it up, which is worth 5 in the next step; m0 is worth 1."""
    model, info = learn_rspmn(log())
    assert (info.untried_branches, info.avoided_branches) == (1, 0)
    assert model.meu(DOWN, horizon=2, offer="tried") == pytest.approx(1.0)
    assert model.meu(DOWN, horizon=2) == pytest.approx(5.0)
    found = {a.value: a for a in model.action_values(DOWN, horizon=2)}
    assert {v: a.utility for v, a in found.items()} == pytest.approx({"none": 0, "m0": 1, "m1": 5})
    assert {v: a.tried for v, a in found.items()} == {"none": True, "m0": True, "m1": False}
    assert found["m1"].steps == 0
    assert [a.value for a in model.best_decisions(DOWN, horizon=2)] == ["m1"]


def test_what_was_tried_alone() -> None:
    model, _ = learn_rspmn(log())
    assert [a.value for a in model.best_decisions(DOWN, horizon=2, offer="tried")] == ["m0"]
    found = {a.value: a for a in model.action_values(DOWN, horizon=2, offer="tried")}
    assert math.isnan(found["m1"].utility)
    assert found["m1"].available == 0
    policy, wider = (model.policy(2, offer=offer) for offer in ("tried", "expected"))
    assert (policy.act(DOWN), wider.act(DOWN)) == ("m0", "m1")
    assert [a.tried for a in wider.action_values(DOWN) if a.value == "m1"] == [False]
    assert all(a.tried for a in policy.action_values(DOWN))
    at = [k for k, row in enumerate(_states(wider)) if row == (0, 0, 0)]
    assert [(wider.table()["reboot"][k], wider.table()["steps"][k]) for k in at] == [("m1", 0.0)]
    at = [k for k, row in enumerate(_states(policy)) if row == (0, 0, 0)]
    assert [policy.table()["steps"][k] for k in at] == [4]
    with pytest.raises(EvidenceError, match="offer 'trid': did you mean 'tried'"):
        model.policy(2, offer="trid")  # type: ignore[arg-type]


def _states(policy: Policy) -> list[tuple[object, ...]]:
    table = policy.table()
    return [*zip(*(table[name] for name in SCHEMA.information_sets[0]), strict=True)]


def test_values_of_all_nodes_and_samples() -> None:
    model, _ = learn_rspmn(log())
    plain, extrapolated = model.values(3, offer="tried"), model.values(3)
    assert all(h >= p - 1e-12 for h, p in zip(extrapolated, plain, strict=True))
    assert max(h - p for h, p in zip(extrapolated, plain, strict=True)) == pytest.approx(4.0)
    policy = model.policy(3)
    drawn = model.offering().sample(50, 3, 0, policy)
    assert drawn.num_steps == 150


def test_what_is_never_tried_where_it_should_have_been_is_not_offered() -> None:
    """Of 80 steps there a third was to be expected, 27: it was avoided, not left out by chance."""
    model, info = learn_rspmn(log(times_down=40))
    assert (info.untried_branches, info.avoided_branches) == (0, 1)
    assert model.offering() is model
    assert model.meu(DOWN, horizon=2) == pytest.approx(1.0)
    assert model.meu(DOWN, horizon=2, offer="all") == pytest.approx(5.0)


def test_two_values_that_the_decision_never_had_together_are_avoided() -> None:
    """With m2 always up nobody rebooted m1 while m0 and m1 were down: it may be impossible."""
    rows = list(zip(*log().to_long().values(), strict=True))
    names = list(log().to_long())
    kept = [row for row in rows if row[names.index("m2")] == 0]
    columns = {n: [row[k] for row in kept] for k, n in enumerate(names)}
    _, info = learn_rspmn(Episodes.from_long(columns, SCHEMA, terminated="terminated"))
    assert (info.untried_branches, info.avoided_branches) == (0, 1)


def test_counts_extrapolate_nothing() -> None:
    model, _ = learn_rspmn(log(), LearnConfig(successors="counts"))
    assert model.untried is None


def test_nothing_is_extrapolated_where_something_is_seen_after_the_decision() -> None:
    """It would have to be extrapolated, too."""
    schema = Schema([["m0", "m1", "m2"], ["reboot"], ["light"]], ["reboot"], "u")
    model, info = learn_rspmn(log(schema=schema))
    assert (model.untried, info.untried_branches) == (None, 0)
    assert model.meu(DOWN, horizon=2, offer="all") == pytest.approx(1.0)


def test_several_decisions_in_one_step() -> None:
    """Four booleans of which one may be true: branches are put in at the right depth."""
    from rspmn.envs.elevators import elevators

    world = elevators()
    model, info = learn_rspmn(world.generate(150, 10, 0, "final"))
    assert info.untried_branches > 20
    wider = model.offering()
    assert model.untried is not None
    assert info.untried_branches == model.untried.branches
    policy = wider.policy(10)
    legal = {tuple(action) for action in world.actions}
    for state in world.states[:40]:
        known = dict(zip(world.schema.information_sets[0], state, strict=True))
        if model.meu(known, horizon=1).supported:
            assert tuple(policy.act(known).values()) in legal


def test_extrapolated_branches_help_where_factors_are_right() -> None:
    """A ring of machines from few episodes: most decisions were tried once or never in a state."""
    ring = sys_admin(8 if SOAK else 6)
    for seed in seeds(1, 2):
        model, _ = learn_rspmn(ring.generate(100 if SOAK else 30, 20, seed, "final"))
        known = true_value(ring, model.policy(20, offer="tried"), 20)
        assert true_value(ring, model.policy(20), 20) > known


def test_flags() -> None:
    """Unavailable is not untried; without factors nothing is; in part untried is untried."""
    model, _ = learn_rspmn(log())
    partly = {a.value: a.tried for a in model.action_values({"m0": 0}, 2)}
    assert partly == {"m0": True, "m1": False, "none": True}
    sure, _ = learn_rspmn(log(times_down=40))
    assert all(a.tried for a in sure.action_values(DOWN, horizon=2))
    assert all(a.tried for a in paper_grid().action_values(horizon=3, offer="all"))


def test_extrapolated_branches_are_simulated_as_they_are_made() -> None:
    model, _ = learn_rspmn(log())
    drawn = model.sample(2000, 2, 0, model.policy(2)).to_long()
    made = [
        a
        for *state, a in zip(*(drawn[n] for n in ("m0", "m1", "m2", "reboot")), strict=True)
        if state == [0, 0, 0] and a is not None
    ]
    assert set(made) == {"m1"}


def test_an_extrapolated_branch_earns_what_it_earned_elsewhere() -> None:
    """Not what others did whose rewards fall into the same bin."""
    rows: list[tuple[object, ...]] = []
    for k in range(600):
        x, action = k % 3, "ab"[k // 3 % 2]
        if (x, action) == (2, "a") or (x == 2 and k > 20):
            continue
        paid = 5.0 + k % 11 / 10 if action == "a" else (1000.0 if k % 25 == 0 else 5.0 + k % 7 / 10)
        rows.append((k, 0, x, action, paid, False))
        rows.append((k, 1, k % 2, None, None, False))
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    found = Episodes.from_long(table, Schema([["x"], ["a"]], ["a"], "u"), terminated="over")
    model, info = learn_rspmn(found)
    assert info.avoided_branches == 1
    extrapolated = {a.value: a for a in model.action_values({"x": 2}, 1, offer="all")}
    assert not extrapolated["a"].tried
    assert 5 <= extrapolated["a"].utility <= 6


def test_what_would_lead_to_states_of_no_interface_node_is_not_extrapolated() -> None:
    """Of three pairs .02, .005 and .3 lead there, the rest of the last ends; .01 is allowed."""
    pair, going = np.array([0, 0, 1, 1, 2]), np.array([0.98, 0.02, 0.995, 0.005, 0.3])
    ended, leaves = np.array([0.0, 0.0, 0.7]), np.zeros((1, 5), dtype=np.int64)
    found = Predicted(np.zeros(3), ended, pair, going, leaves, np.zeros(3, dtype=bool))
    assert found.lost(np.array([0.4, 0.0, 1.0, 0.0, 0.0])).tolist() == [True, False, True]
    assert not found.lost(np.full(5, 1e-9)).any()


def test_kept_in_files_and_by_refit(tmp_path: Path) -> None:
    model, _ = learn_rspmn(log())
    model.save(tmp_path / "model.json")
    again = RSPMN.load(tmp_path / "model.json")
    assert again == model
    assert again.meu(DOWN, horizon=2) == pytest.approx(5.0)
    content = json.loads((tmp_path / "model.json").read_text())
    old = {name.replace("expected", "untried"): value for name, value in content.items()}
    (tmp_path / "old.json").write_text(json.dumps(old))  # which had no offer of them
    assert RSPMN.load(tmp_path / "old.json").avoided == model.untried
    assert refit(model, log())[0].untried == model.untried
    avoided = learn_rspmn(log(40))[0]
    avoided.save(tmp_path / "avoided.json")
    assert RSPMN.load(tmp_path / "avoided.json") == avoided


def test_broken_branches_are_refused(tmp_path: Path) -> None:
    model, _ = learn_rspmn(log())
    assert model.untried is not None
    network = model.untried.network
    with pytest.raises(CircuitError, match="1 roots for the interface nodes"):
        Untried(network, (0, 1))
    with pytest.raises(CircuitError, match="interface node 99, but the template has 8 roots"):
        RSPMN(model.schema, model.top, model.template, model.visits, Untried(network, (99,)))
    builder = NetworkBuilder()
    earns = builder.product([builder.utility("u", 0.0), builder.latent(0)])
    for decision, below in (("reboot", builder.latent(0)), ("elsewhere", earns)):
        untried = Untried(builder.build(builder.max(decision, {"m1": below})), (0,))
        with pytest.raises(CircuitError, match="over the schema's variables: expected"):
            RSPMN(model.schema, model.top, model.template, model.visits, untried)
    model.save(tmp_path / "model.json")
    assert "_with_untried" not in vars(RSPMN.load(tmp_path / "model.json"))  # made when asked for
    content = json.loads((tmp_path / "model.json").read_text())
    damages: list[dict[str, object]] = [
        {"expected_at": ["a"]},
        {"expected_at": [0.5]},
        {"expected": {}},
        {"expected": content["top"]},
    ]
    for damage in damages:
        (tmp_path / "broken.json").write_text(json.dumps(content | damage))
        with pytest.raises(ModelFileError):
            RSPMN.load(tmp_path / "broken.json")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = learn_rspmn(log())
    path = str(tmp_path / "model.json")
    model.save(path)
    ask = ["--state", "m0=0", "m1=0", "m2=0", "--horizon", "2"]
    assert main(["act", path, *ask, "--offer", "tried"]) == 0
    assert "never tried" not in capsys.readouterr().out
    assert main(["act", path, *ask]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]  # after the honest value
    assert lines[0].startswith("* reboot = m1")
    assert lines[0].endswith("(never tried here: extrapolated)")
    assert main(["act", path, *ask, "--json"]) == 0
    facts = {a["value"]: a["tried"] for a in json.loads(capsys.readouterr().out)["actions"]}
    assert facts == {"m1": False, "m0": True, "none": True}
    assert main(["meu", path, *ask]) == 0
    assert "promise (MEU) 5" in capsys.readouterr().out
    assert main(["policy", path, "--horizon", "2"]) == 0
    assert "m1" in capsys.readouterr().out
    target = str(tmp_path / "log.csv")
    assert main(["sample", path, "--horizon", "2", "--offer", "all", "-o", target]) == 2
    assert "needs --best" in capsys.readouterr().err


def test_extrapolated_branches_only_add() -> None:
    """The same interface nodes, no value lower, some higher; every branch leads to known states."""
    ring = sys_admin(4)
    model, info = learn_rspmn(ring.generate(20, 20, 0, "final"))
    assert info.untried_branches > 0
    wider = model.offering()
    assert wider.num_interfaces == model.num_interfaces
    plain, extrapolated = np.array(model.values(20, offer="tried")), np.array(wider.values(20))
    assert (extrapolated >= plain - 1e-9).all()
    assert (extrapolated > plain + 1e-3).any()
    assert extrapolated.max() <= 4 * 20  # four machines that run all the time
