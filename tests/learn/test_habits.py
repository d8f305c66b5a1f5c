"""A habit of the logger is not a law of the world: what it acted by is not what matters."""

from dataclasses import replace

import numpy as np
import pytest

import rspmn
from rspmn import Episodes, Schema
from rspmn.data.windows import Windows
from rspmn.envs.explore import Outcomes, explore
from rspmn.envs.maze import maze
from rspmn.envs.mdp import MDP
from rspmn.envs.taxi import taxi
from rspmn.errors import DataError
from rspmn.evaluate import Tabular, true_value
from rspmn.learn import LearnConfig, learn_rspmn, relevance
from rspmn.learn.irrelevant import Reason, irrelevant_variables
from rspmn.learn.two_step import wrap

IGNORED = LearnConfig(ignore=["ward"])
NAMES = "episode", "time", "x", "ward", "a", "u", "over"


def two_wards(times: int = 50) -> Episodes:
    """Return steps between two places: to go from 1 earns 1. In ward 0 one goes, in 1 one stays.

    Every next ward is as likely, so each of the 8 combinations occurs equally often.
    """
    rows: list[tuple[object, ...]] = []
    for x in (0, 1):
        for ward in (0, 1):
            for after in (0, 1):
                goes = ward == 0
                for _ in range(times):
                    episode = len(rows)
                    earned = float(goes and x == 1)
                    rows.append((episode, 0, x, ward, "go" if goes else "stay", earned, False))
                    rows.append((episode, 1, x ^ goes, after, None, None, False))
    table = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["x", "ward"], ["a"]], ["a"], "u")
    return Episodes.from_long(table, schema, terminated="over")


def test_two_states_two_actions_two_wards_by_hand() -> None:
    """Going earns 1 in every second step, whatever the ward, if one says that it does not matter.

    From x = 0 in four steps: 0 + 1 + 0 + 1 = 2. The log does not say so: as far as it goes, it may
    be an expert's. Who stays in ward 1, as he did, goes in half of the steps. With v(0) and v(1),
    both 0 with no steps to go, a step is v(0) ← ½ v(1) + ½ v(0) and v(1) ← ½ (1 + v(0)) + ½ v(1):
    (0, ½), (¼, ¾), (½, 1), (¾, 1¼).
    """
    model, info = learn_rspmn(two_wards(), IGNORED)
    assert info.aside == {"ward": Reason.DECLARED}
    assert info.interfaces == 2
    for ward in (0, 1):
        assert model.meu({"x": 0, "ward": ward}, horizon=4) == pytest.approx(2.0)
        assert model.act({"x": 0, "ward": ward}, horizon=4) == "go"
    expert, info = learn_rspmn(two_wards())
    assert info.aside == {}
    assert info.interfaces == 4
    found = [expert.meu({"x": 0, "ward": ward}, horizon=4) for ward in (0, 1)]
    assert np.mean(found) == pytest.approx(0.75)


def test_the_model_still_describes_the_ward() -> None:
    """Half of the wards are 0: an episode of a step and a state has ½·½ · ½ of the probability.

    A ward that was never seen has some, too little to show here, and excludes no state.
    """
    model, _ = learn_rspmn(two_wards(), IGNORED)
    assert model.schema.state_variables == ("x", "ward")
    found = np.exp(model.log_likelihood(two_wards(1), smoothed=False))
    assert found == pytest.approx(np.full(8, 1 / 8), rel=1e-4)
    assert model.meu({"x": 0, "ward": 7}, horizon=4) == model.meu({"x": 0, "ward": 1}, horizon=4)


def test_where_no_step_follows_a_ward_is_ignored_on_demand() -> None:
    """Episodes of one step, in which going from 1 earns 1: nothing says what the next ward is."""
    table: dict[str, list[object]] = {name: [] for name in NAMES}
    for episode, (x, ward) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)] * 50):
        row = episode, 0, x, ward, "stay" if ward else "go", float(x == 1 and not ward), True
        for name, value in zip(NAMES, row, strict=True):
            table[name].append(value)
    schema = Schema([["x", "ward"], ["a"]], ["a"], "u")
    log = Episodes.from_long(table, schema, terminated="over")
    model, info = learn_rspmn(log, IGNORED)
    assert info.aside == {"ward": Reason.DECLARED}
    for ward in (0, 1):
        assert model.meu({"x": 1, "ward": ward}, horizon=1) == pytest.approx(1.0)
    assert learn_rspmn(log)[1].aside == {}


def is_compared(steps: list[tuple[int, int, str]], enough: int) -> bool:
    """Say by its definition whether values of the ward were often seen beside others.

    With each action; or fewer than three such steps were to be expected, and there is none.
    """
    wards, actions = {w for _, w, _ in steps}, {a for _, _, a in steps}

    def is_well_known(ward: int, action: str) -> bool:
        here = [x for x, w, a in steps if (w, a) == (ward, action)]
        beside = 0
        for place in {*here}:
            others = sum((x, a) == (place, action) and w != ward for x, w, a in steps)
            beside += min(here.count(place), others)
        often = sum(w == ward for _, w, _ in steps), sum(a == action for _, _, a in steps)
        return beside >= enough or (not here and often[0] * often[1] / len(steps) < 3)

    return all(is_well_known(ward, action) for ward in wards for action in actions)


@pytest.mark.parametrize(("choices", "length"), [(2, 14), (4, 36)])
def test_values_that_were_seen_beside_others(choices: int, length: int) -> None:
    """In logs of 3 wards and of fewer or more decisions, against the definition."""
    rng, found = np.random.default_rng(0), []
    for _ in range(20):
        drawn = rng.integers([4, 3, choices], size=(length, 3)).tolist()
        steps = [(x, ward, "abcd"[a]) for x, ward, a in drawn]
        rows: list[tuple[object, ...]] = []
        for episode, (x, ward, action) in enumerate(steps):
            rows.append((episode, 0, x, ward, action, 0.0, False))
            rows.append((episode, 1, x, ward, None, None, False))
        table = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
        schema = Schema([["x", "ward"], ["a"]], ["a"], "u")
        log = Windows.from_episodes(Episodes.from_long(table, schema, terminated="over"))
        two = wrap(log, LearnConfig())
        places = two.rows.joint_codes(["x"])
        found.append(relevance.is_compared(two.rows, "ward", two.schema.decisions, places, 1.0))
        assert found[-1] == is_compared(steps, 1)
    assert 3 < sum(found) < 17


# ---- larger worlds ---------------------------------------------------------------------


def corridor(moves: str, free: float, matters: bool = False) -> MDP:
    """Return a corridor of five places and a ward of three values, logged by the ward.

    Being right of the last place earns 1. The ward is drawn anew, constant, or goes in turn. If it
    `matters`, what "right" means depends on it.
    """

    def outcomes(state: tuple[int, int], action: tuple[str]) -> Outcomes:
        place, ward = state
        right = (action[0] == "right") != (matters and ward == 1)
        to = min(4, place + 1) if right else max(0, place - 1)
        if moves == "drawn":
            after = [(1 / 3, w) for w in range(3)]
        else:
            after = [(1.0, ward if moves == "constant" else (ward + 1) % 3)]
        return [
            (p * q, (at, w), float(place == 4))
            for p, w in after
            for q, at in ((0.8, to), (0.2, place))
        ]

    kinds = {"place": "integer", "ward": "integer", "a": "categorical", "u": "continuous"}
    made = explore(
        "corridor", Schema([["place", "ward"], ["a"]], ["a"], "u", kinds),
        {(place, ward): 1 / 15 for place in range(5) for ward in range(3)},
        [("left",), ("right",)], outcomes, episodes=300, horizon=10,
    )  # fmt: skip
    habit = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])[[int(str(s[1])) for s in made.states]]
    return replace(made, behaviour=(1 - free) * habit + free / 2)


@pytest.mark.parametrize("free", [0.02, 0.05])
@pytest.mark.parametrize("moves", ["drawn", "constant", "in turn"])
def test_a_variable_that_only_the_logger_looked_at_is_set_aside(moves: str, free: float) -> None:
    world = corridor(moves, free)
    model, info = learn_rspmn(world.generate(world.episodes, world.horizon, 0, "final"))
    assert info.habits == ("ward",)
    assert info.interfaces == 5
    best = world.optimum(world.horizon)
    assert true_value(world, model.policy(world.horizon), world.horizon) == pytest.approx(best)


@pytest.mark.parametrize("moves", ["drawn", "constant", "in turn"])
def test_a_variable_that_matters_is_not(moves: str) -> None:
    """The logger acted by it, and rightly so."""
    world = corridor(moves, 0.2, matters=True)
    model, info = learn_rspmn(world.generate(world.episodes, world.horizon, 0, "final"))
    assert info.habits == ()
    best = world.optimum(world.horizon)
    assert true_value(world, model.policy(world.horizon), world.horizon) > 0.98 * best


@pytest.mark.parametrize("moves", ["drawn", "constant", "in turn"])
def test_without_free_choices_the_default_is_practice(moves: str) -> None:
    """The log may be an expert's. Whoever knows that it is not says so."""
    world = corridor(moves, 0.0)
    log = world.generate(world.episodes, world.horizon, 0, "final")
    model, info = learn_rspmn(log)
    assert info.aside == {}
    practice = world.evaluate(world.behaviour, world.horizon)
    policy = model.policy(world.horizon)
    assert true_value(world, policy, world.horizon) == pytest.approx(practice)
    model, info = learn_rspmn(log, IGNORED)
    assert info.aside == {"ward": Reason.DECLARED}
    best, policy = world.optimum(world.horizon), model.policy(world.horizon)
    assert true_value(world, policy, world.horizon) == pytest.approx(best)


def test_an_expert_on_what_is_drawn_anew() -> None:
    """Of three colours, each is to be named, which earns 1; the logger always knows it.

    Nothing predicts the next colour, and the reward is 1 whatever is done: it looks like a habit.
    """
    colour = np.random.default_rng(0).integers(3, size=600)
    log = {
        "episode": range(600),
        "time": [0] * 600,
        "colour": colour,
        "a": colour,
        "u": [1.0] * 600,
    }
    schema = Schema([["colour"], ["a"]], ["a"], "u")
    model, info = learn_rspmn(rspmn.windows(log, schema, ending="end"))
    assert info.aside == {}
    assert [model.act({"colour": c}, horizon=1) for c in range(3)] == [0, 1, 2]


def test_an_expert_who_once_erred_where_it_matters() -> None:
    """Of 30 codes one is dangerous: what is done elsewhere is -10 there, which was done twice."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(30), 100)
    made = (code != 7).astype(int)
    made[rng.choice(len(code), 30, replace=False)] ^= 1
    made[(code == 7).nonzero()[0]] = [1, 1] + [0] * 98
    log = {"episode": range(3000), "time": [0] * 3000, "code": code, "a": made,
           "u": np.where((code == 7) & (made == 1), -10.0, made)}  # fmt: skip
    schema = Schema([["code"], ["a"]], ["a"], "u")
    info = learn_rspmn(rspmn.windows(log, schema, ending="end"))[1]
    assert info.aside == {}


def test_what_was_not_examined_in_time_is_no_habit() -> None:
    world = corridor("drawn", 0.05)
    log = world.generate(world.episodes, world.horizon, 0, "final")
    two = wrap(Windows.from_episodes(log), LearnConfig())
    assert irrelevant_variables(two, LearnConfig())[0] == {"ward": Reason.HABIT}
    assert irrelevant_variables(two, LearnConfig(), deadline=0.0)[0] == {}


def test_a_state_that_actions_change_is_no_habit() -> None:
    """One always runs while it works and repairs now and then when it is broken."""
    rows: list[tuple[object, ...]] = []
    rng = np.random.default_rng(0)
    for episode in range(2000):
        works = bool(rng.random() < 0.7)
        action = "run" if works or rng.random() < 0.3 else "repair"
        after = rng.random() < (0.8 if works else 0.0) if action == "run" else True
        rows.append((episode, 0, works, 0, action, float(works and action == "run"), False))
        rows.append((episode, 1, after, 0, None, None, False))
    table = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
    log = Episodes.from_long(table, Schema([["x"], ["a"]], ["a"], "u"), terminated="over")
    model, info = learn_rspmn(log)
    assert info.habits == ()
    assert model.act({"x": False}, horizon=3) == "repair"


def test_an_expert_is_no_creature_of_habit() -> None:
    """One who always goes the shortest way: the log says nothing of what else could be done."""
    world = maze()
    policy = world.value_iteration(world.horizon)[1]
    log = world.generate(100, world.horizon, 0, policy=policy)
    model, info = learn_rspmn(log)
    assert info.habits == ()
    best = world.optimum(world.horizon)
    assert true_value(world, model.policy(world.horizon), world.horizon) == pytest.approx(best)


@pytest.mark.parametrize(
    ("share", "seed"),
    [(0.0, 0), (0.02, 28)],
    ids=["who never errs", "who once did in a state that another would share a node with"],
)
def test_an_expert_acts_by_what_matters(share: float, seed: int) -> None:
    """Each place of a taxi is seen with decisions of its own: nothing says that it is irrelevant.

    Without errors, "drop off" is logged at a destination for this destination alone. With 2 % of
    them, a place that was logged four times, with "north", differs from the destination, where the
    passenger was dropped off 254 times, only in a variable that nothing else was seen to depend on.
    """
    world = taxi()
    best = np.eye(len(world.actions))[world.value_iteration(world.horizon)[1]]
    logger = (1 - share) * best + share / len(world.actions)
    log = world.generate(1000, world.horizon, seed, "final", logger)
    model, info = learn_rspmn(log)
    assert not info.aside
    table = world.evaluate(Tabular.fit(log).policy_for(world, world.horizon), world.horizon)
    assert true_value(world, model.policy(world.horizon), world.horizon) >= table - 1e-9


def test_a_habit_that_depends_on_the_state() -> None:
    """In ward 2 one goes the other way: with some free choices, values can be compared."""
    world = corridor("drawn", 0.0)
    other_way = [int(str(ward)) == 2 and int(str(place)) % 2 == 1 for place, ward in world.states]
    assert world.behaviour is not None
    habit = np.where(np.array(other_way)[:, None], world.behaviour[:, ::-1], world.behaviour)
    world = replace(world, behaviour=0.8 * habit + 0.1)
    model, info = learn_rspmn(world.generate(600, world.horizon, 0, "final"))
    assert info.habits == ("ward",)
    best = world.optimum(world.horizon)
    assert true_value(world, model.policy(world.horizon), world.horizon) == pytest.approx(best)


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(DataError, match="ignore: 'wrad' is not known before the first decision"):
        learn_rspmn(two_wards(), LearnConfig(ignore=["wrad"]))
    with pytest.raises(DataError, match="'ward' is to be kept and to be ignored"):
        LearnConfig(keep=["ward"], ignore=["ward"])
