"""Models as Gymnasium environments: Gymnasium's own check, returns, seeds, and what is unknown."""

import subprocess
import sys
from functools import cache
from itertools import count
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from effort import mostly_soak
from rspmn import RSPMN, Episodes, Followed, NetworkBuilder, Schema
from rspmn.circuit import Categorical, IntegerHistogram, PiecewiseLinear
from rspmn.end_nodes import end_root, marked_root, weighted_top
from rspmn.envs.domains import DOMAINS
from rspmn.envs.gym import ModelEnv
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import EvidenceError
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn
from rspmn.values import UNKNOWN

GOOD, WORN, BROKEN = range(3)


def machine(start: int = GOOD) -> RSPMN:
    """The machine of the README: "repair" is offered only when it is worn."""
    schema = Schema([["machine"], ["action"]], ["action"], "profit")
    b = NetworkBuilder()

    def then(profit: float, chances: dict[int, float]) -> int:
        latents = b.sum([b.latent(state) for state in chances], list(chances.values()))
        return b.product([b.utility("profit", profit, variance=4.0), latents])

    def state(name: str, actions: dict[Any, int]) -> int:
        return b.product([b.leaf("machine", Categorical.certain(name)), b.max("action", actions)])

    good = state("good", {"run": then(10, {GOOD: 0.75, WORN: 0.25})})
    repair = then(-5, {GOOD: 1.0})
    worn = state("worn", {"run": then(10, {WORN: 0.5, BROKEN: 0.5}), "repair": repair})
    template = b.build(good, worn, end_root(b, schema, BROKEN))
    return RSPMN(schema, weighted_top([float(i == start) for i in range(3)]), template)


def corridor(steps: list[tuple[int, str, float]], followed: Followed, final: int | None) -> RSPMN:
    """What is learned from 20 equal episodes of a corridor."""
    row: list[dict[str, object]] = [dict(zip("xau", step, strict=True)) for step in steps]
    row += [] if final is None else [{"x": final}]
    schema = Schema([["x"], ["a"]], ["a"], "u")
    return learn_rspmn(Episodes.from_steps([row] * 20, schema, [followed] * 20))[0]


@cache
def learned(name: str) -> RSPMN:
    mdp = DOMAINS[name]()
    return learn_rspmn(mdp.generate(5000, mdp.horizon, 0, "final"))[0]


def numbers() -> RSPMN:
    """A continuous variable, a wide integer and a constant one; a draw is seen after the bet."""
    order = [["depth", "year", "place"], ["bet"], ["draw"]]
    schema = Schema(order, ["bet"], "win", {"depth": "continuous", "year": "integer"})
    b = NetworkBuilder()
    state = [
        b.leaf("depth", PiecewiseLinear.scaled((0.0, 0.5, 2.5), (0.0, 1.0, 0.0))),
        b.leaf("year", IntegerHistogram((1900, 1950, 2001), (0.5, 0.5))),
        b.leaf("place", IntegerHistogram((7, 8), (1.0,))),
    ]
    won = [b.leaf("draw", Categorical.certain("red")), b.utility("win", 1.0)]
    lost = [b.leaf("draw", Categorical.certain("black")), b.utility("win", -1.0)]
    drawn = b.sum([b.product(won), b.product(lost)], [0.25, 0.75])
    bet = b.max("bet", {True: b.product([drawn, b.latent(0)])})
    return RSPMN(schema, weighted_top([1.0]), b.build(b.product([*state, bet])))


WORLDS = {
    "FrozenLake": lambda: learned("FrozenLake"),
    "GridUniverse": lambda: learned("GridUniverse"),
    "SkillTeaching": lambda: learned("SkillTeaching"),
    "machine": machine,
    "numbers": numbers,
    "paper grid": paper_grid,
}


#: As a user registers it.
ENTRY = "rspmn.envs.gym:ModelEnv"


def made(model: RSPMN, **kwargs: Any) -> ModelEnv:
    """Return an environment that has a specification, without which not all is checked."""
    spec = EnvSpec("Model-v0", entry_point=ENTRY, kwargs={"model": model} | kwargs)
    env = gymnasium.make(spec).unwrapped
    assert isinstance(env, ModelEnv)
    return env


def rollout(env: ModelEnv, policy: Policy) -> float:
    """Return what an episode earns."""
    observation, _ = env.reset()
    total = 0.0
    for t in count():
        action = env.action(policy.act(env.state(observation), t))
        observation, reward, terminated, truncated, _ = env.step(action)
        total += reward
        if terminated or truncated:
            break
    return total


# ---- Gymnasium's conventions ---------------------------------------------------------

CHECKED = [name for name in WORLDS if name != "machine"]


@pytest.mark.parametrize("name", mostly_soak(CHECKED, {*CHECKED} - {"SkillTeaching"}))
def test_gymnasium_finds_nothing_to_say(name: str) -> None:
    """Warnings are errors here."""
    check_env(made(WORLDS[name](), horizon=8))
    check_env(made(WORLDS[name](), render_mode="ansi"))


def test_gymnasium_on_the_machine() -> None:
    """Its checker tries action 0, "repair", and asks that a first step does not truncate."""
    check_env(made(machine(WORN)))
    with pytest.raises(AssertionError, match="truncates after 1 step"):
        check_env(made(machine(GOOD)))


def test_spaces_and_codes() -> None:
    env = ModelEnv(learned("SkillTeaching"))
    assert env.action_space == gymnasium.spaces.MultiDiscrete([2, 2, 2, 2])
    assert env.decisions([0, 0, 1, 0]) == {
        "ask_prob_s0": False, "ask_prob_s1": False, "give_hint_s0": True, "give_hint_s1": False
    }  # fmt: skip
    assert env.action(env.decisions([0, 0, 1, 0])).tolist() == [0, 0, 1, 0]
    env = ModelEnv(machine())
    assert env.action_space == gymnasium.spaces.Discrete(2)
    assert [env.decisions(k)["action"] for k in range(2)] == ["repair", "run"]
    assert env.action("run") == env.action({"action": "run"}) == 1
    assert env.observation_space == gymnasium.spaces.Dict(machine=gymnasium.spaces.Discrete(2))
    assert env.state({"machine": np.int64(1)}) == {"machine": "worn"}


def test_numbers_are_observed_as_they_are() -> None:
    env = ModelEnv(numbers())
    observed = env.observation_space
    assert isinstance(observed, gymnasium.spaces.Dict)
    assert observed["depth"] == gymnasium.spaces.Box(0.0, 2.5, (1,), np.float64)
    assert observed["year"] == gymnasium.spaces.Box(1900, 2000, (1,), np.int64)
    assert observed["place"] == gymnasium.spaces.Discrete(1)
    policy = env.model.policy(1)
    for seed in range(50):
        observation, _ = env.reset(seed=seed)
        assert observed.contains(observation)
        state = env.state(observation)
        assert {name: type(value) for name, value in state.items()} == {
            "depth": float, "year": int, "place": int
        }  # fmt: skip
        observation, reward, _, _, info = env.step(env.action(policy.act(state)))
        assert (reward, info["seen"]["draw"]) in [(1.0, "red"), (-1.0, "black")]


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_seed_draws_the_same(name: str) -> None:
    def episode(env: ModelEnv, seed: int | None) -> list[str]:
        observation, info = env.reset(seed=seed)
        rng, seen = np.random.default_rng(0), [repr((observation, info))]
        while info["offered"] and len(seen) < 20:
            action = info["offered"][rng.integers(len(info["offered"]))]
            *step, info = env.step(action)
            seen.append(repr((step, info)))
            if step[2] or step[3]:
                break
        return seen

    one, other = ModelEnv(WORLDS[name]()), ModelEnv(WORLDS[name]())
    first = episode(one, 5), episode(one, None)
    assert first == (episode(other, 5), episode(other, None))
    assert first == (episode(one, 5), episode(one, None))
    assert len({tuple(episode(ModelEnv(WORLDS["FrozenLake"]()), seed)) for seed in range(9)}) > 1


def test_vector_environments_and_masks() -> None:
    spec = EnvSpec("Model-v0", entry_point=ENTRY, kwargs={"model": machine()})
    envs = gymnasium.make_vec(spec, num_envs=3)
    _, info = envs.reset(seed=0)
    assert info["action_mask"].tolist() == [[0, 1]] * 3
    assert envs.step(np.ones(3, dtype=np.int64))[1].shape == (3,)
    envs.close()
    env = ModelEnv(machine())
    _, info = env.reset(seed=0)
    assert info["action_mask"].dtype == np.int8
    for _ in range(20):
        assert env.action_space.sample(info["action_mask"]) == env.action("run")


# ---- what is earned ------------------------------------------------------------------

#: How many steps an episode has, and how many episodes are drawn.
RETURNS = [
    ("GridUniverse", 8, 50),
    ("FrozenLake", 60, 150),
    ("SkillTeaching", 10, 80),
    ("machine", 10, 400),
    ("numbers", 3, 200),
    ("paper grid", 4, 200),
]


@pytest.mark.parametrize(("name", "horizon", "episodes"), RETURNS)
def test_the_best_policy_earns_its_meu(name: str, horizon: int, episodes: int) -> None:
    model = WORLDS[name]()
    env, policy = ModelEnv(model, horizon), model.policy(horizon)
    env.reset(seed=0)
    earned = np.array([rollout(env, policy) for _ in range(episodes)])
    error = earned.std() / np.sqrt(episodes)
    assert abs(earned.mean() - model.meu(horizon=horizon)) <= 4 * error + 1e-9


def test_rewards_have_the_variance_of_the_utility() -> None:
    env = ModelEnv(machine())
    env.reset(seed=0)
    rewards = []
    for _ in range(4000):
        env.reset()
        rewards.append(env.step(1)[1])
    # 4 standard errors: of the mean 2/√4000, of the variance 4·√(2/4000)
    assert np.mean(rewards) == pytest.approx(10, abs=4 * 0.0317)
    assert np.var(rewards) == pytest.approx(4, abs=4 * 0.0895)


# ---- how episodes end ----------------------------------------------------------------


def test_termination_at_end_and_truncation_at_the_horizon() -> None:
    env = ModelEnv(machine(WORN), horizon=1, render_mode="ansi")
    ended = {True: 0, False: 0}
    for seed in range(200):
        before, _ = env.reset(seed=seed)
        after, _, terminated, truncated, info = env.step(env.action("run"))
        assert truncated is not terminated  # the horizon is reached in any case
        assert info["unknown"] is False
        assert env.observation_space.contains(after)
        assert not terminated or after == before
        assert info["action_mask"].tolist() == ([0, 0] if terminated else [1, 1])
        assert env.render().endswith("then END\n" if terminated else "then machine=worn\n")
        ended[terminated] += 1
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(env.action("run"))
    assert min(ended.values()) > 70  # 100 ± 4·7


def test_what_is_not_offered_truncates() -> None:
    env = ModelEnv(machine())
    before, info = env.reset(seed=0)
    assert info["offered"] == [env.action("run")]
    assert info["action_mask"].tolist() == [0, 1]
    after, reward, terminated, truncated, info = env.step(env.action("repair"))
    assert (after, reward, terminated, truncated) == (before, 0.0, False, True)
    assert info["offered"] == [env.action("run")]
    assert info["unknown"]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(1)


def test_what_is_offered_of_several_decisions() -> None:
    """At most one of the four booleans is true."""
    env = ModelEnv(learned("SkillTeaching"), horizon=10)
    one = [tuple(int(k == place) for k in range(4)) for place in (3, 2, 1, 0)]
    _, info = env.reset(seed=0)
    assert info["offered"] == [(0, 0, 0, 0), *one]
    for codes in info["offered"]:
        env.reset(seed=0)
        assert env.action_space.contains(codes)
        assert env.step(codes)[3] is False
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step([1, 0, 0, 1])
    assert (reward, terminated, truncated, info["unknown"]) == (0.0, False, True, True)
    assert info["offered"] == [(0, 0, 0, 0), *one]


def test_a_successor_that_was_not_logged() -> None:
    """In x = 0, "go" earns 1 and comes back; "dive" earns 5, and nobody knows what follows."""
    model = corridor([(0, "go", 1.0)] * 30 + [(0, "dive", 5.0)], Followed.UNKNOWN, None)
    check_env(made(corridor([(0, "a", 1.0)] * 30 + [(0, "b", 5.0)], Followed.UNKNOWN, None)))
    env = ModelEnv(model)
    observation, info = env.reset(seed=0)
    assert [env.decisions(code)["a"] for code in info["offered"]] == ["dive", "go"]
    observation, reward, terminated, truncated, info = env.step(env.action("go"))
    assert (reward, terminated, truncated, info["unknown"]) == (1.0, False, False, False)
    after, reward, terminated, truncated, info = env.step(env.action("dive"))
    assert (reward, terminated, truncated, info["unknown"]) == (5.0, False, True, True)
    assert after == observation
    assert info["offered"] == []
    assert rollout(ModelEnv(model, 3), model.policy(3)) == 1 + 1 + 5


def test_a_state_that_was_never_acted_in() -> None:
    """From 0, "left" comes back for -1 and "right" leads to 1, where all logs end, for -0.5."""
    model = corridor([(0, "left", -1.0)] * 4 + [(0, "right", -0.5)], Followed.STATE, 1)
    check_env(made(model))
    env = ModelEnv(model)
    observation, _ = env.reset(seed=0)
    assert env.state(observation) == {"x": 0}
    assert env.step(env.action("left"))[3] is False
    observation, reward, terminated, truncated, info = env.step(env.action("right"))
    assert (reward, terminated, truncated, info["unknown"]) == (-0.5, False, True, True)
    assert env.state(observation) == {"x": 1}
    assert info["action_mask"].tolist() == [0, 0]


def test_a_start_in_which_no_decision_is_known() -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u")
    b = NetworkBuilder()
    then = b.product([b.utility("u", 1.0), b.latent(0)])
    here = b.product([b.leaf("x", Categorical.certain("here")), b.max("a", {"go": then})])
    there = marked_root(b, schema, [b.leaf("x", Categorical.certain("there"))], UNKNOWN, 1)
    env = ModelEnv(RSPMN(schema, weighted_top([0.0, 1.0]), b.build(here, there)))
    _, info = env.reset(seed=0)
    assert (info["offered"], info["unknown"]) == ([], True)
    _, reward, terminated, truncated, info = env.step(env.action("go"))
    assert (reward, terminated, truncated, info["unknown"]) == (0.0, False, True, True)


# ---- what is refused -----------------------------------------------------------------


def test_what_is_seen_between_decisions_is_refused() -> None:
    schema = Schema([["age"], ["test"], ["result"], ["treat"]], ["test", "treat"], "health")
    b = NetworkBuilder()
    then = b.product([b.utility("health", 1.0), b.latent(0)])
    seen = b.product([b.leaf("result", Categorical.certain("+")), b.max("treat", {"yes": then})])
    root = b.product([b.leaf("age", Categorical.certain("old")), b.max("test", {"yes": seen})])
    with pytest.raises(EvidenceError, match="'result' is observed between .* is not supported"):
        ModelEnv(RSPMN(schema, weighted_top([1.0]), b.build(root)))


def test_other_refusals() -> None:
    with pytest.raises(EvidenceError, match="may start an episode in END"):
        ModelEnv(machine(BROKEN))
    for horizon in (0, -1, 2.5, "many"):
        with pytest.raises(EvidenceError, match="expected a horizon of 1 or more"):
            ModelEnv(machine(), horizon)  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="render_mode is None or one of"):
        ModelEnv(machine(), render_mode="human")
    env = ModelEnv(machine())
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(EvidenceError, match=r"expected a Discrete\(2\), found 2"):
        env.step(2)
    assert env.step(1)[3] is False  # and the episode goes on
    with pytest.raises(EvidenceError, match="action=rum is not an action: did you mean 'run'"):
        env.action("rum")
    with pytest.raises(EvidenceError, match="unknown decision 'act'"):
        env.action({"act": "run"})
    several = ModelEnv(learned("SkillTeaching"))
    with pytest.raises(EvidenceError, match="no value of the decision 'ask_prob_s1'"):
        several.action({"ask_prob_s0": True})
    with pytest.raises(EvidenceError, match="expected values of .*, found True"):
        several.action(True)


def test_without_gymnasium_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from rspmn.errors import MissingExtraError\n"
        "try: import rspmn.envs.gym\n"
        "except MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "environments need gymnasium: pip install 'rspmn[gym]'\n"
