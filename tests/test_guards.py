"""Finite worlds are learned as they were: values, starts, visits and counts against a record.

The record holds what was learned from the seven domains, in four layouts of the log, with three
configurations. A change that is meant to change it records it again, `python tests/test_guards.py`,
and says why in its commit.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from effort import SOAK
from rspmn.envs.domains import DOMAINS
from rspmn.envs.logs import LAYOUTS
from rspmn.learn import LearnConfig, learn_rspmn

RECORD = Path(__file__).parent / "golden" / "guards.json.gz"
CONFIGS = {
    "default": LearnConfig(),
    "counts": LearnConfig(successors="counts"),
    "paper": LearnConfig.paper(),
}
#: Episodes of each domain; a tenth of them with the paper's configuration, which is slower.
EPISODES = {
    "GridUniverse": 1000, "FrozenLake": 2000, "Maze": 1000, "Taxi": 100,
    "SkillTeaching": 500, "Elevators": 500, "CrossingTraffic": 500,
}  # fmt: skip
COUNTS = (
    "windows", "steps", "steps_unknown", "steps_left_out", "interfaces", "frontier_states",
    "frontier_visits", "unsupported_branches", "untried_branches",
    "avoided_branches",
)  # fmt: skip
CASES = [f"{d}/{layout}/{config}" for d in EPISODES for layout in LAYOUTS for config in CONFIGS]
#: In `make test` each domain is learned once with each configuration, from two layouts; those that
#: take the paper's configuration longest are left to `make soak`.
LONG = [f"{domain}/final/paper" for domain in ("SkillTeaching", "Elevators", "CrossingTraffic")]
FEW = [c for c in CASES if c.split("/")[1] == LAYOUTS[len(c) % 2] and c not in LONG]


def learned(case: str) -> dict[str, Any]:
    """Return what is learned from a log of a domain."""
    name, layout, config = case.split("/")
    mdp = DOMAINS[name]()
    episodes = EPISODES[name] // (10 if config == "paper" else 1)
    log = mdp.generate(episodes, mdp.horizon, 7, layout)  # type: ignore[arg-type]
    model, info = learn_rspmn(log, CONFIGS[config])
    return {
        "values": [model.values(horizon) for horizon in (1, 5, mdp.horizon)],
        "meu": float(model.meu(horizon=mdp.horizon)),
        "starts": list(model.starts),
        "visits": list(model.visits),
        "sizes": [len(model.template), model.template.num_edges, len(model.top)],
        "counts": [getattr(info, count) for count in COUNTS],
    }


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return dict(json.loads(gzip.decompress(RECORD.read_bytes())))


@pytest.mark.parametrize("case", CASES if SOAK else FEW)
def test_finite_worlds_are_learned_as_they_were(case: str, record: dict[str, Any]) -> None:
    found, expected = json.loads(json.dumps(learned(case))), record[case]
    assert found["counts"] == expected["counts"]
    assert found["sizes"] == expected["sizes"]
    for name in ("meu", "starts", "visits"):
        # sums of at most some thousand rounded terms: 1e3 · 2⁻⁵² is below 1e-12
        assert found[name] == pytest.approx(expected[name], rel=1e-12, abs=1e-12), name
    for one, other in zip(found["values"], expected["values"], strict=True):
        # NaN is what is known of successors that were not logged
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12, nan_ok=True)


if __name__ == "__main__":
    learned_now = {case: learned(case) for case in CASES}
    RECORD.write_bytes(gzip.compress(json.dumps(learned_now).encode(), mtime=0))
    sys.stdout.write(f"{RECORD}: {len(learned_now)} cases\n")
