"""Priors of S_L: factors that lead to few boxes are joined, with the same answers."""

import pytest

from rspmn import Windows
from rspmn.envs.domains import DOMAINS
from rspmn.learn import learn_rspmn
from rspmn.learn.successors import priors


@pytest.mark.parametrize("name", ["Taxi", "Elevators"])
def test_joined_priors_are_those_of_all_boxes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows.from_episodes(DOMAINS[name]().generate(200, 10, 1, "final"))
    expected, _ = learn_rspmn(windows)
    dense = priors.Factors.masses
    monkeypatch.setattr(priors, "FEW", 0)
    monkeypatch.setattr(priors, "SPARSE", 0.0)
    monkeypatch.setattr(priors.Factors, "masses", None)
    found, _ = learn_rspmn(windows)
    monkeypatch.setattr(priors.Factors, "masses", dense)
    assert len(found.template) == len(expected.template)
    assert found.values(10) == pytest.approx(expected.values(10), abs=1e-11, nan_ok=True)
    one, other = (m.meu(horizon=10, allow_untried=True) for m in (found, expected))
    assert one == pytest.approx(other, abs=1e-11)
