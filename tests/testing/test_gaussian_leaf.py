"""A leaf family of a plug-in goes through all that a model is asked for.

A room is cold or warm, and a thermometer in it reads a normal variate around 15 or 25 degrees;
a second one reads noise. Heating costs 1 and makes the next room warm, a warm room earns 3.
"""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import rspmn
from gaussian import Gaussian
from plain_queries import evidence_of
from rspmn.circuit import Leaf, Network
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.errors import DataError, ModelFileError
from rspmn.infer.likelihood import episode_log_likelihood
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn, refit
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema

SCHEMA = Schema(
    [["temperature", "noise"], ["heat"]],
    ["heat"],
    "comfort",
    {"temperature": "continuous", "noise": "continuous"},
)
CONFIG = LearnConfig(leaves={"temperature": Gaussian, "noise": Gaussian})
STEPS = 4


def rooms(episodes: int, seed: int) -> Episodes:
    rng = np.random.default_rng(seed)
    warm = rng.random((episodes, STEPS)) < 0.5
    heat = rng.random((episodes, STEPS)) < 0.5
    warm[:, 1:] |= heat[:, :-1]
    steps = [
        [
            {
                "temperature": float(rng.normal(25 if warm[e, t] else 15)),
                "noise": float(rng.normal(0, 2)),
                "heat": bool(heat[e, t]),
                "comfort": 3.0 * warm[e, t] - heat[e, t],
            }
            for t in range(STEPS)
        ]
        for e in range(episodes)
    ]
    return Episodes.from_steps(steps, SCHEMA, [Followed.END] * episodes)


@pytest.fixture(scope="module")
def model() -> RSPMN:
    return learn_rspmn(rooms(500, 0), CONFIG)[0]


def leaves(network: Network, name: str) -> list[Gaussian]:
    found = [n.distribution for n in network.nodes if isinstance(n, Leaf) and n.variable == name]
    return [distribution for distribution in found if isinstance(distribution, Gaussian)]


def test_learned(model: RSPMN) -> None:
    parts = sorted(leaves(model.template, "temperature"), key=lambda leaf: leaf.low)
    assert len(parts) >= 2
    for one, other in pairwise(parts):
        assert one.high == other.low  # rows were split there
        assert one.low <= one.centre <= one.high
    for leaf in leaves(model.template, "noise"):
        assert (leaf.low, leaf.high) == (-math.inf, math.inf)


def test_saved_and_loaded(model: RSPMN, tmp_path: Path) -> None:
    path = tmp_path / "rooms.json"
    model.save(path)
    assert RSPMN.load(path) == model
    plain = json.loads(path.read_text(encoding="utf-8"))
    node = next(n for n in plain["template"]["nodes"] if n.get("distribution") == "gaussian")
    node["distribution"] = "cauchy"
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"node \d+: unknown distribution 'cauchy': .*import"):
        RSPMN.load(path)


def test_policy(model: RSPMN) -> None:
    policy = model.policy(horizon=2)
    for temperature in (15.0, 25.0):
        state = {"temperature": temperature, "noise": 1.0}
        assert policy.act(state, t=0)  # 3 tomorrow for 1 today
        assert not policy.act(state, t=1)  # nothing follows
    assert model.meu({"temperature": 25.0}, horizon=1) == pytest.approx(3)
    table = policy.table()
    assert any(" to " in text for text in table["temperature"])


def test_refitted(model: RSPMN) -> None:
    one, two = (Windows.from_episodes(rooms(500, seed)) for seed in (0, 1))
    again, info = refit(model, one + two, CONFIG)
    assert info.doubtful == 0
    assert info.new_states < 10  # colder or warmer than any that was learned from
    assert again.meu(horizon=4) == pytest.approx(model.meu(horizon=4), abs=0.5)


def test_sampled(model: RSPMN) -> None:
    drawn = model.sample(300, 4, rng=0)
    temperature = drawn.columns["temperature"].data
    noise = drawn.columns["noise"].data
    assert np.abs(noise.mean()) < 5 * 2 / math.sqrt(len(noise))
    warm = temperature > 20
    assert temperature[warm].mean() == pytest.approx(25, abs=0.3)
    assert temperature[~warm].mean() == pytest.approx(15, abs=0.3)


def test_likelihood(model: RSPMN) -> None:
    fresh = rooms(10, 2)
    logs = model.log_likelihood(fresh)
    assert np.isfinite(logs).all()
    one_by_one = [episode_log_likelihood(model, evidence_of(fresh, e)) for e in range(10)]
    assert model.log_likelihood(fresh, smoothed=False) == pytest.approx(one_by_one)


def test_parameters_counted_in_batches() -> None:
    """Of windows that an engine keeps, leaves are estimated from the statistics of all of them."""
    with rspmn.store_windows(rooms(300, 0).to_long(), SCHEMA) as stored:
        found, info = learn_rspmn(stored, replace(CONFIG, max_windows=600))
        assert info.sample is not None
        assert info.sample.sampled_windows < len(stored)
    assert info.sample.batches >= 1
    noise = leaves(found.template, "noise")
    assert noise
    for leaf in noise:  # 5 standard errors of the mean of 100 values
        assert leaf.centre == pytest.approx(0, abs=5 * 2 / math.sqrt(100))


def test_as_an_environment(model: RSPMN) -> None:
    pytest.importorskip("gymnasium")
    from rspmn.envs.gym import ModelEnv

    env = ModelEnv(model, horizon=3)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert 10 < env.state(observation)["temperature"] < 30  # type: ignore[operator]


def test_drawn(model: RSPMN) -> None:
    assert "temperature\\n≈ " in model.template.dot()


def test_mpe(model: RSPMN) -> None:
    found = model.mpe([{"temperature": 25.0, "heat": True}, {"noise": 1.0}])
    assert found is not None
    assert found[0]["noise"] == pytest.approx(0, abs=0.5)
    assert found[1]["temperature"] == pytest.approx(25, abs=0.5)


def test_further_em(model: RSPMN) -> None:
    again, info = learn_rspmn(rooms(200, 0), replace(CONFIG, em_passes=1))
    assert info.em is not None
    assert leaves(again.template, "temperature")


def test_single_shot(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    hot = rng.random(2000) < 0.5
    table = {
        "temperature": np.where(hot, rng.normal(30, 1, 2000), rng.normal(10, 1, 2000)),
        "open": rng.random(2000) < 0.5,
    }
    table["gain"] = np.where(hot == table["open"], 1.0, -1.0)
    schema = Schema([["temperature"], ["open"]], ["open"], "gain")
    model, _ = learn_spmn(table, schema, LearnConfig(leaves={Kind.CONTINUOUS: Gaussian}))
    assert leaves(model.network, "temperature")
    assert model.meu({"temperature": 28.0}) == pytest.approx(1)
    assert model.log_likelihood({"temperature": [10.0, 60.0], "open": [True, False]}).shape == (2,)


def test_refused() -> None:
    with pytest.raises(DataError, match="'heat' is boolean, but Gaussian describes variables that"):
        learn_rspmn(rooms(5, 0), LearnConfig(leaves={"heat": Gaussian}))
    with pytest.raises(DataError, match="no variable or kind 'temprature'"):
        learn_rspmn(rooms(5, 0), LearnConfig(leaves={"temprature": Gaussian}))
    with pytest.raises(DataError, match="leaves: expected classes derived from Distribution"):
        LearnConfig(leaves={"heat": 3})  # type: ignore[dict-item]
