"""The paper's seven domains: exact values, logs, and the same tables as gymnasium's."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rspmn import Episodes, Followed
from rspmn.envs.domains import DOMAINS
from rspmn.envs.frozen_lake import MAP_4X4, frozen_lake, random_map
from rspmn.envs.grid_universe import grid_universe
from rspmn.envs.logs import LAYOUTS, Layout
from rspmn.envs.mdp import MDP
from rspmn.envs.taxi import taxi
from rspmn.errors import DataError

STATES = {
    "GridUniverse": 11, "FrozenLake": 16, "Maze": 9, "Taxi": 404, "SkillTeaching": 63,
    "Elevators": 144, "CrossingTraffic": 80,
}  # fmt: skip

#: Domain, horizon, best value from the start, tolerance: half a unit of the last digit known.
BEST = [
    ("GridUniverse", 8, 6.0, 1e-12),
    ("FrozenLake", 8, 0.018900, 5e-7),
    ("FrozenLake", 100, 0.744190, 5e-7),
    ("FrozenLake", 300, 0.822947, 5e-7),
    ("FrozenLake", 5000, 14 / 17, 5e-7),  # .823529, what it settles at
    ("Maze", 8, 1 - 3 * 0.1 / 9, 1e-12),
    ("Taxi", 50, 7.930, 5e-4),
    ("SkillTeaching", 10, -3.022175, 5e-7),
    ("SkillTeaching", 40, 66.264688, 5e-7),
    ("Elevators", 10, -7.330074, 5e-7),
    ("Elevators", 40, -44.054137, 5e-7),
    ("CrossingTraffic", 15, -4.428556, 5e-7),
    ("CrossingTraffic", 40, -4.428571, 5e-7),
]
#: Domain, value of uniformly random actions at the paper's horizon, tolerance.
UNIFORM = [
    ("GridUniverse", -8.3256, 5e-5),
    ("FrozenLake", 0.002945, 5e-7),
    ("Maze", -0.038488, 5e-7),
    ("Taxi", -196.617, 5e-4),
    ("SkillTeaching", -10.2532, 5e-5),
    ("Elevators", -9.8130, 5e-5),
    ("CrossingTraffic", -13.3225, 5e-5),
]


def uniform(mdp: MDP) -> NDArray[np.float64]:
    return np.full((len(mdp.states), len(mdp.actions)), 1 / len(mdp.actions))


@pytest.mark.parametrize(("name", "horizon", "best", "tolerance"), BEST)
def test_the_best_value(name: str, horizon: int, best: float, tolerance: float) -> None:
    mdp = DOMAINS[name]()
    assert mdp.optimum(horizon) == pytest.approx(best, abs=tolerance)
    assert mdp.evaluate(mdp.value_iteration(horizon)[1], horizon) == pytest.approx(
        mdp.optimum(horizon), abs=1e-9
    )


@pytest.mark.parametrize(("name", "value", "tolerance"), UNIFORM)
def test_the_value_of_random_actions(name: str, value: float, tolerance: float) -> None:
    mdp = DOMAINS[name]()
    assert mdp.evaluate(uniform(mdp), mdp.horizon) == pytest.approx(value, abs=tolerance)


def test_reachable_states() -> None:
    assert {name: len(make().states) for name, make in DOMAINS.items()} == STATES


def test_the_papers_logs() -> None:
    sizes = {name: (make().episodes, make().horizon) for name, make in DOMAINS.items()}
    assert list(sizes.values()) == [
        (100_000, 8), (100_000, 8), (100_000, 8), (20_000, 50), (100_000, 10), (200_000, 10),
        (100_000, 15),
    ]  # fmt: skip


def test_taxi_logs_the_best_action_three_times_in_ten() -> None:
    mdp = taxi()
    assert mdp.behaviour is not None
    # .3 + .7 / 6 for the best, .7 / 6 for each of the other five
    assert np.sort(mdp.behaviour, axis=1) == pytest.approx(
        np.array([[0.7 / 6] * 5 + [2.5 / 6]] * 404)
    )
    best = np.argmax(mdp.behaviour, axis=1)
    assert mdp.evaluate(np.tile(best, (50, 1)), 50) == pytest.approx(mdp.optimum(50))


def test_taxi_as_one_variable() -> None:
    mdp = taxi(one_variable=True)
    assert mdp.schema.state_variables == ("state",)
    row, col, passenger, destination = taxi().states[17]
    assert mdp.states[17] == (((row * 5 + col) * 5 + passenger) * 4 + destination,)  # type: ignore[operator]
    assert mdp.optimum(50) == taxi().optimum(50)


# ---- other lakes ---------------------------------------------------------------------


def test_random_maps_are_solvable() -> None:
    for seed in range(20):
        lake = random_map(6, seed, hole=0.4)
        assert (lake[0][0], lake[-1][-1]) == ("S", "G")
        assert frozen_lake(lake).optimum(200) > 0
    assert random_map(6, 3) == random_map(6, 3)


def test_random_starts_are_uniform_over_the_ice() -> None:
    mdp = frozen_lake(random_starts=True)
    assert mdp.start[~mdp.terminal] == pytest.approx(np.full(11, 1 / 11))
    values = frozen_lake().value_iteration(100)[0]
    assert mdp.optimum(100) == pytest.approx(values[~mdp.terminal].mean())


def test_a_lake_leaves_out_what_cannot_be_reached() -> None:
    # 7, 9, 10 and 11 lie behind holes and the goal
    assert [cell for (cell,) in frozen_lake(["SFFH", "FHHF", "GHFF"]).states] == [
        0, 1, 2, 3, 4, 5, 6, 8
    ]  # fmt: skip


@pytest.mark.parametrize("lake", [["SF", "F"], ["SX", "FG"], ["FF", "FG"], ["SF", "FF"]])
def test_maps_that_are_none(lake: list[str]) -> None:
    with pytest.raises(DataError, match="expected"):
        frozen_lake(lake)


# ---- logs ----------------------------------------------------------------------------


def returns(log: Episodes) -> NDArray[np.float64]:
    rewards = log.columns[log.schema.utility].data
    return np.asarray(np.add.reduceat(rewards, log.offsets[:-1]))


@pytest.mark.parametrize("name", DOMAINS)
def test_a_log_earns_what_its_policy_is_worth(name: str) -> None:
    mdp = DOMAINS[name]()
    log = mdp.generate(20_000, mdp.horizon, 1)
    error = returns(log).std() / np.sqrt(len(log))
    assert returns(log).mean() == pytest.approx(mdp.evaluate(None, mdp.horizon), abs=5 * error)
    for variable, column in log.columns.items():
        assert len(column) == log.num_steps
        assert column.data.dtype.kind == ("f" if variable == "reward" else "i")
        assert not column.missing.any()


def test_a_log_of_the_best_policy() -> None:
    mdp = grid_universe()
    log = mdp.generate(100, 8, 0, policy=mdp.value_iteration(8)[1])
    assert set(returns(log)) == {6.0}
    assert set(log.lengths) == {5}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_seed_gives_the_same_log(layout: Layout) -> None:
    one, two = (taxi().generate(50, 20, 7, layout) for _ in range(2))
    assert one.to_long() == two.to_long()
    assert one.to_long() != taxi().generate(50, 20, 8, layout).to_long()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["FrozenLake", "Elevators"])
def test_a_log_is_coded_as_if_it_had_been_read(name: str, layout: Layout) -> None:
    log = DOMAINS[name]().generate(200, 6, 3, layout)
    read = Episodes.from_long(log.to_long(), log.schema, terminated="terminated")
    assert log.schema == read.schema
    for mine, other in ((log.columns, read.columns), (log.finals, read.finals)):
        assert list(mine) == list(other)
        for variable, column in mine.items():
            assert column.kind is other[variable].kind
            assert column.domain == other[variable].domain
            assert np.array_equal(column.data, other[variable].data)
    assert np.array_equal(log.endings, read.endings)
    assert np.array_equal(log.offsets, read.offsets)


def test_layouts_are_views_of_the_same_walks() -> None:
    mdp, holes_and_goal = frozen_lake(), {5, 7, 11, 12, 15}
    flags, final, padded, row = (mdp.generate(500, 8, 2, layout) for layout in LAYOUTS)
    assert set(padded.lengths) == {8}
    assert set(padded.endings) == {Followed.UNKNOWN}
    for e in range(500):
        walk, steps = padded[e], flags[e]
        assert final[e] == steps == walk[: len(steps)]
        assert all(s["cell"] in holes_and_goal and s["reward"] == 0 for s in walk[len(steps) :])
        assert not any(s["cell"] in holes_and_goal for s in steps)
        assert row[e] == walk[: len(steps) + 1]
        if flags.endings[e] == Followed.END:
            assert final.endings[e] == Followed.END
        else:
            assert (flags.endings[e], len(steps)) == (Followed.UNKNOWN, 8)
            seen = final.final_state(e)
            assert seen is not None
            assert seen["cell"] not in holes_and_goal
        # one that ends with its last step has no row of the terminal state
        ends = Followed.END if len(steps) < 8 else Followed.UNKNOWN
        assert row.endings[e] == ends


# ---- gymnasium -----------------------------------------------------------------------


def assert_same_tables(mdp: MDP, numbers: list[int], theirs: dict[int, Any]) -> None:
    """Compare distributions over (next state, reward, whether it ends the episode)."""
    A = len(mdp.actions)
    for row, (lo, hi) in enumerate(zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True)):
        state, action = divmod(row, A)
        if mdp.terminal[state]:
            continue
        mine: dict[Any, float] = {}
        for k in range(lo, hi):
            after = mdp.successors[k]
            mine[numbers[after], mdp.rewards[k], bool(mdp.terminal[after])] = mdp.probabilities[k]
        merged: dict[Any, float] = {}
        for p, after, reward, over in theirs[numbers[state]][action]:
            merged[after, reward, over] = merged.get((after, reward, over), 0) + p
        assert mine == pytest.approx(merged)


@pytest.mark.parametrize("lake", [MAP_4X4, random_map(8, 0)])
def test_frozen_lake_is_gymnasiums(lake: tuple[str, ...]) -> None:
    module = pytest.importorskip(
        "gymnasium.envs.toy_text.frozen_lake", reason="compares with gymnasium's own tables"
    )
    mdp = frozen_lake(lake)
    theirs = module.FrozenLakeEnv(desc=list(lake))
    numbers = [int(str(cell)) for (cell,) in mdp.states]
    assert_same_tables(mdp, numbers, theirs.P)
    assert theirs.initial_state_distrib[numbers] == pytest.approx(mdp.start)


def test_taxi_is_gymnasiums() -> None:
    module = pytest.importorskip(
        "gymnasium.envs.toy_text.taxi", reason="compares with gymnasium's own tables"
    )
    mdp = taxi(one_variable=True)
    numbers = [int(str(number)) for (number,) in mdp.states]
    assert_same_tables(mdp, numbers, module.TaxiEnv().P)
    assert module.TaxiEnv().initial_state_distrib[numbers] == pytest.approx(mdp.start)
