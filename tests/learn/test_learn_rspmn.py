"""LearnRSPMN on the seven domains: MEU, true value of the policy, and size, against the optimum."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from effort import mostly_soak, seeds
from rspmn import RSPMN, Episodes, Followed, Schema, Windows
from rspmn.circuit import Max, fold_up, soundness_violations, validity_violations
from rspmn.data.keys import joint_groups
from rspmn.data.windows import distinct_states
from rspmn.end_nodes import uniform_top
from rspmn.envs.domains import DOMAINS
from rspmn.envs.logs import LAYOUTS, Layout
from rspmn.envs.mdp import MDP
from rspmn.envs.taxi import taxi
from rspmn.errors import DataError
from rspmn.evaluate import true_value
from rspmn.infer.meu import meu
from rspmn.learn import LearnConfig, RSPMNInfo, learn_rspmn

SEEDS = seeds(1, 5)


def domain(name: str) -> MDP:
    return taxi(one_variable=True) if name == "Taxi, one variable" else DOMAINS[name]()


@cache
def learn(name: str, seed: int) -> tuple[RSPMN, RSPMNInfo]:
    """Return what is learned from as many episodes as the paper has."""
    mdp = domain(name)
    return learn_rspmn(mdp.generate(mdp.episodes, mdp.horizon, seed, "final"))


#: Domain, horizon, MEU within this of the optimum, least true value, most interface nodes. The
#: distances are about two standard deviations of what is learned, measured on other seeds.
TABLE = [
    ("GridUniverse", 8, 1e-9, 6 - 1e-9, 11),
    ("FrozenLake", 100, 0.06, 0.735, 16),
    ("FrozenLake", 300, 0.04, 0.820, 16),
    ("Maze", 8, 1e-9, 0.9666666, 9),
    ("Taxi", 50, 0.05, 7.93 - 1e-9, 404),
    pytest.param("Taxi, one variable", 50, 0.05, 7.93 - 1e-9, 404, marks=pytest.mark.soak),
    ("SkillTeaching", 10, 0.1, -3.03, 63),
    ("Elevators", 10, 0.03, -7.331, 144),
    ("CrossingTraffic", 15, 0.02, -4.43, 45),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "horizon", "near", "least", "most"), TABLE)
def test_the_seven_domains(
    name: str, horizon: int, near: float, least: float, most: int, seed: int
) -> None:
    """Logged as Gymnasium does: the state after the last step is kept, ends are flagged."""
    mdp = domain(name)
    model, info = learn(name, seed)
    assert model.meu(horizon=horizon) == pytest.approx(mdp.optimum(horizon), abs=near)
    assert true_value(mdp, model.policy(horizon), horizon) >= least
    assert info.interfaces <= most
    assert soundness_violations(model.template) == []


def counted_value(windows: Windows, horizon: int) -> float:
    """Return the best value from the start of the world as counted, state by state."""
    states = distinct_states(windows)
    decisions = joint_groups([windows.columns[d] for d in windows.schema.decisions], len(windows))
    known = windows.followed != Followed.UNKNOWN
    at = states.of_steps[known] * decisions.size + decisions.codes[known]
    counts = windows.counts[known].astype(float)
    size = states.count * decisions.size
    tried = np.bincount(at, counts, size)
    earned = np.bincount(at, counts * windows.columns[windows.schema.utility].data[known], size)
    to = np.where(states.of_successors >= 0, states.of_successors, states.count)[known]
    values = np.zeros(states.count + 1)  # the last is END
    for _ in range(horizon):
        later = np.bincount(at, counts * values[to], size)
        with np.errstate(invalid="ignore"):
            worth = np.where(tried > 0, (earned + later) / tried, -np.inf)
        values[:-1] = worth.reshape(states.count, -1).max(axis=1)
        values[np.isneginf(values)] = values[np.isfinite(values)].min()  # pessimism
    return float(np.bincount(states.of_steps, windows.starts, states.count) @ values[:-1]
                 / windows.starts.sum())  # fmt: skip


@pytest.mark.parametrize("name", ["GridUniverse", "FrozenLake", "Maze", "Elevators"])
@pytest.mark.parametrize("seed", SEEDS)
def test_where_no_states_are_merged_the_meu_is_that_of_counts(name: str, seed: int) -> None:
    """What it misses of the optimum is what the log misses: a table says the same."""
    mdp = domain(name)
    windows = Windows.from_episodes(mdp.generate(5000, mdp.horizon, seed, "final"))
    model, _ = learn_rspmn(windows, LearnConfig(successors="counts"))
    horizon = 3 * mdp.horizon
    assert model.meu(horizon=horizon) == pytest.approx(counted_value(windows, horizon), rel=1e-9)


#: Domains in which episodes end.
ENDING = ["GridUniverse", "FrozenLake", "Maze", "Taxi"]


@pytest.mark.parametrize("name", mostly_soak(ENDING, ENDING[:3]))
def test_however_the_end_is_logged(name: str) -> None:
    """The same walks padded, with a terminal row and with flags give the same values exactly, if
    nothing is said about ends in the last step; flags of these and final observations are some more
    data."""
    mdp = domain(name)
    values, silent = {}, {}
    for layout in LAYOUTS:
        log = mdp.generate(mdp.episodes // 5, mdp.horizon, 3, layout)
        values[layout] = float(learn_rspmn(log)[0].meu(horizon=mdp.horizon))
        late = log.lengths == mdp.horizon
        log = replace(log, endings=np.where(late, np.int8(Followed.UNKNOWN), log.endings))
        silent[layout] = float(learn_rspmn(log)[0].meu(horizon=mdp.horizon))
    assert silent["flags"] == pytest.approx(silent["padded"], abs=1e-9)
    assert silent["flags"] == pytest.approx(silent["terminal_row"], abs=1e-9)
    # five standard errors of FrozenLake's MEU at 20,000 episodes; the others are deterministic
    near = {"FrozenLake": 0.02, "Taxi": 0.2}.get(name, 1e-9)
    for found in (values["flags"], values["terminal_row"], silent["flags"]):
        assert found == pytest.approx(values["final"], abs=near)


@pytest.mark.parametrize("episodes", [100, 1000, 10_000])
def test_frozen_lake_never_promises_the_impossible(episodes: int) -> None:
    mdp = domain("FrozenLake")
    for seed in seeds(1, 20):
        layout = LAYOUTS[seed % len(LAYOUTS)]
        model, _ = learn_rspmn(mdp.generate(episodes, mdp.horizon, seed, layout))
        values = model.bellman.values(1000)
        possible = values[np.isfinite(values)]
        assert possible.min() >= 0
        assert possible.max() <= 1 + 1e-12
        assert 0 <= model.meu() <= 1 + 1e-12


@pytest.mark.parametrize("name", ["Elevators", "CrossingTraffic"])
@pytest.mark.parametrize("episodes", mostly_soak([30, 300, 3000], [300]))
def test_costs_stay_costs(name: str, episodes: int) -> None:
    mdp = domain(name)
    for seed in seeds(1, 4):
        layout = LAYOUTS[seed % len(LAYOUTS)]
        model, _ = learn_rspmn(mdp.generate(episodes, mdp.horizon, seed, layout))
        values = model.bellman.values(60)
        assert values[np.isfinite(values)].max() <= 1e-12


@pytest.mark.parametrize("name", ["SkillTeaching", "Elevators", "CrossingTraffic"])
def test_max_nodes_offer_the_combinations_that_were_tried(name: str) -> None:
    """Four booleans, at most one of them true: five of sixteen combinations."""
    mdp = domain(name)
    model, _ = learn(name, 0)
    tree = model.template

    def offered(index: int) -> set[tuple[object, ...]]:
        node = tree.nodes[index]
        if isinstance(node, Max):
            return {
                (value, *rest)
                for value, child in zip(node.values, node.children, strict=True)
                for rest in offered(child)
            }
        below = [offered(child) for child in node.children]
        return max(below, key=lambda s: max(map(len, s)), default={()})

    for root, visits in zip(tree.roots, model.visits, strict=True):
        if visits > 2000:  # where every action was surely tried
            assert offered(root) == set(mdp.actions)
    assert set(
        model.policy(5).act(dict(zip(mdp.schema.state_variables, mdp.states[0], strict=True)))
    )


@pytest.mark.parametrize("name", mostly_soak(DOMAINS, {*DOMAINS} - {"Taxi", "SkillTeaching"}))
def test_fresh_episodes_are_possible(name: str) -> None:
    mdp = domain(name)
    model, _ = learn_rspmn(mdp.generate(mdp.episodes // 20, mdp.horizon, 0))
    fresh = mdp.generate(200, mdp.horizon, 99)
    found = model.log_likelihood(fresh)
    assert found.shape == (200,)
    assert np.isfinite(found).all()
    exact = model.log_likelihood(fresh, smoothed=False)
    seen = np.isfinite(exact)
    assert seen.mean() > 0.5
    # each step may lose the weight of one step in those behind its branch, a few hundredths
    assert found[seen].mean() == pytest.approx(exact[seen].mean(), abs=0.05 * mdp.horizon)


def test_stages_and_what_is_counted() -> None:
    mdp = domain("GridUniverse")
    log = mdp.generate(3000, 8, 0, "padded")
    model, info = learn_rspmn(log, keep_stages=True)
    stages = info.stages
    assert stages is not None
    assert validity_violations(stages.two_step) == []
    assert soundness_violations(stages.initial) == []
    assert stages.final == model.template
    assert stages.top == uniform_top(11)
    assert len(stages.initial.roots) == len(stages.final.roots) == 11
    # each of 44 branches has an S_L over 11 nodes, of which deterministic moves leave one
    assert info.pruned_edges == 44 * 11 - 44
    assert info.steps == 24_000
    assert info.steps_unknown == 3000
    assert info.steps_left_out == info.unsupported_branches == info.frontier_states == 0
    assert {"two steps", "one step", "initial", "final", "top"} <= set(info.nodes)
    assert {"windows", "structure", "interfaces", "initial", "estimate"} <= set(info.seconds)
    assert sum(model.visits) == 24_000


@pytest.mark.parametrize("layout", ["padded", "final"])
def test_the_paper_s_way_has_two_whole_steps(layout: Layout) -> None:
    """The two-step SPMN decides twice: its MEU is that of two steps, from each state."""
    mdp = domain("GridUniverse")
    log = mdp.generate(3000, 8, 0, layout)
    model, info = learn_rspmn(log, LearnConfig.paper(), keep_stages=True)
    assert info.stages is not None
    two_step = info.stages.two_step
    assert validity_violations(two_step) == []
    assert two_step.scopes[two_step.root] == {
        "cell",
        "action",
        "reward",
        "cell'",
        "action'",
        "reward'",
    }
    for (cell,) in np.array(mdp.states)[~mdp.terminal].tolist():
        assert meu(two_step, {"cell": cell}) == model.meu({"cell": cell}, 2)


def test_the_same_log_gives_the_same_file() -> None:
    mdp = domain("SkillTeaching")
    log = mdp.generate(15, 10, 0)
    order = np.random.default_rng(0).permutation(len(log))
    steps = [log.steps(int(e)) for e in order]
    shuffled = Episodes.from_steps(steps, log.schema, [Followed(log.endings[e]) for e in order])
    models = [learn_rspmn(one)[0] for one in (log, log, shuffled, Windows.from_episodes(log))]
    assert all(model == models[0] for model in models)


@pytest.mark.parametrize(("name", "printed"), [("GridUniverse", 210), ("FrozenLake", 401)])
def test_the_paper_s_way_has_the_paper_s_sizes(name: str, printed: int) -> None:
    """Table 1, from padded logs: no part is stored twice; here all of them are counted.

    One node more is what the interface nodes hang from in the paper's code.
    """
    log = domain(name).generate(100_000, 8, 0, "padded")
    model, _ = learn_rspmn(log, LearnConfig.paper())
    sizes = fold_up(model.template, lambda _, below: 1 + sum(below))
    assert 1 + sum(sizes[root] for root in model.template.roots) == printed
    assert len(model.top) == 2  # one sum, and the one state that episodes start in
    if name == "GridUniverse":
        assert float(model.meu(horizon=8)) == 6


# ---- the edge of a log ---------------------------------------------------------------


def corridor(log: list[tuple[list[tuple[int, str, float]], Followed, int | None]]) -> Episodes:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    rows: list[list[dict[str, object]]] = []
    for steps, _, final in log:
        row: list[dict[str, object]] = [dict(zip("xau", step, strict=True)) for step in steps]
        rows.append(row if final is None else [*row, {"x": final}])
    return Episodes.from_steps(rows, schema, [ending for _, ending, _ in log])


def test_a_decision_seen_only_where_the_log_was_cut() -> None:
    """In x = 0, "go" earns 1 and comes back; "dive" earns 5, and nobody knows what follows."""
    log = corridor([([(0, "go", 1.0)] * 30 + [(0, "dive", 5.0)], Followed.UNKNOWN, None)] * 20)
    model, info = learn_rspmn(log)
    assert info.unsupported_branches == 1
    assert float(model.meu(horizon=1)) == 5  # in the last step what follows does not matter
    assert float(model.meu(horizon=3)) == 1 + 1 + 5  # go, go, dive
    values = {a.value: a for a in model.policy(3).action_values({"x": 0})}
    assert values["go"].supported == 1
    assert values["dive"].supported == 0
    assert math.isnan(values["dive"].utility)
    assert model.policy(3).act({"x": 0}, t=1) == "go"
    assert model.policy(3).act({"x": 0}, t=2) == "dive"
    assert len(log[0]) == 31


def test_a_state_that_was_never_acted_in() -> None:
    """From 0, "left" comes back for -1 and "right" leads to 1, where all logs end, for -0.5."""
    steps = [(0, "left", -1.0)] * 4 + [(0, "right", -0.5)]
    model, info = learn_rspmn(corridor([(steps, Followed.STATE, 1)] * 50))
    assert info.frontier_states == 1
    assert info.frontier_visits == 50
    # With one step to go the frontier is worth what state 0 is, -0.5: so is going there
    assert model.meu({"x": 0}, horizon=1) == -0.5
    assert model.meu({"x": 0}, horizon=2) == -1.0  # right, then as bad as state 0 with one to go
    right = model.action_values({"x": 0}, 2)[1]
    assert (right.value, right.utility, right.supported) == ("right", -1.0, 0.0)
    # Unfolded, nothing is known after "right": the best that is known is left, then right
    unfolded = meu(model.unfold(2))
    assert (unfolded, unfolded.supported) == (-1.5, 1)
    frontier = model.meu({"x": 1}, horizon=2)
    assert math.isnan(frontier)
    assert frontier.supported == 0
    with pytest.raises(ValueError, match="no decision is known in the state x=1"):
        model.policy(2).act({"x": 1})
    assert model.policy(2, otherwise="left").act({"x": 1}) == "left"
    assert [a.supported for a in model.policy(2).action_values({"x": 1})] == [0, 0]


def test_a_log_without_any_successor_is_refused() -> None:
    with pytest.raises(DataError, match="none of .* has a known successor"):
        learn_rspmn(corridor([([(0, "go", 1.0)], Followed.UNKNOWN, None)] * 5))


def test_missing_states_do_not_stop_learning() -> None:
    rng = np.random.default_rng(0)
    log = domain("FrozenLake").generate(5000, 8, 0, "final")
    table = log.to_long()
    gone = rng.random(len(table["cell"])) < 0.05
    table["cell"] = [None if g else v for g, v in zip(gone, table["cell"], strict=True)]
    episode = np.array(table["episode"], dtype=int)
    last = np.append(np.diff(episode) != 0, True)
    table["cell"] = [
        v if v is not None or not end else 0 for v, end in zip(table["cell"], last, strict=True)
    ]
    holes = Episodes.from_long(table, log.schema, terminated="terminated")
    model, info = learn_rspmn(holes)
    assert info.steps_shared > 0
    assert info.steps_left_out == 0
    assert soundness_violations(model.template) == []
    assert 0 <= model.meu(horizon=100) <= 1
