"""Model files from strangers: refused in one sentence, or a model that answers every question."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import model_questions
from fuzz_campaign import judged
from model_seeds import GOLDEN, seed_content, seed_paths
from rspmn.circuit import fields
from rspmn.model_file import VERSION

#: Mutants are judged in processes of their own, whose memory is limited; so many in each.
CHUNK = 2000
#: How many are judged in `make soak`, and the seed of all: MUTANTS=20000 FUZZ_SEED=5.
MANY, SEED = int(os.environ.get("MUTANTS", "200000")), os.environ.get("FUZZ_SEED", "0")


def campaign(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).parent / "fuzz_campaign.py"), *options]
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_mutants() -> None:
    """Of one in three that load one question is asked: each about five times."""
    found = campaign("--mutants", str(CHUNK), "--seed", SEED, "--questions", "1", "--apart", "3")
    assert found["failures"] == []
    assert found["refused"] + found["answered"] == CHUNK
    assert min(found["refused"], found["answered"]) > 0.1 * CHUNK


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(1, 1 + MANY // CHUNK))
def test_many_mutants(chunk: int) -> None:
    """Two hundred thousand in all, of each of which that loads three questions are asked."""
    part = ["--first", str(CHUNK * chunk), "--mutants", str(CHUNK)]
    assert campaign(*part, "--seed", SEED, "--questions", "3")["failures"] == []


@pytest.mark.soak
def test_every_number() -> None:
    """Each number of each model is made each of the extreme ones, and all questions are asked."""
    found = campaign("--every-number", "--mutants", str(10**6))
    assert found["failures"] == []
    assert found["mutants"] > 1e4


@pytest.mark.parametrize("path", seed_paths(), ids=lambda path: path.name)
def test_seeds_answer(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of all versions load, and are written as they were, as files of the newest."""
    if path.name.startswith("arrays"):
        monkeypatch.setattr(fields, "LONG", 3)
    (tmp_path / "model.json").write_bytes(seed_content(path))
    questions = [model_questions.saved_again, model_questions.acts]
    assert [*judged(tmp_path / "model.json", questions)][-1] == "answered"
    newest = re.sub(rb'"version": \d+', b'"version": %d' % VERSION, seed_content(path), count=1)
    assert (tmp_path / "again.json").read_bytes() == newest


#: A model in which all that ends an episode leads to nothing known instead.
NEVER_ENDS: dict[tuple[str | int, ...], object] = {
    ("template", "nodes", k, "values", 0): {"unknown": True} for k in (12, 15, 19)
}
#: Mutants that once ended otherwise: a model, what is changed in it, and a question or "load".
MUTANTS: tuple[tuple[str, dict[tuple[str | int, ...], object], str], ...] = (
    ("every_leaf", {("template", "nodes", 23, "values", 0): 1.0}, "returns"),
    ("finite", {("counts", "steps", 0): 0.0}, "report"),
    ("finite", {("counts", "steps", 0): 1e300}, "honest_value"),
    ("beyond", {("counts", "factors", "outcome", -1): 10**6}, "acts_with_rules"),
    ("beyond", {("counts", "factors", "leaf", -1): 10**6}, "honest_value"),
    ("beyond", {("counts", "factors", "member_of", -1): 10**6}, "honest_value"),
    ("beyond", {("counts", "factors", "interface", -1): 10**6}, "honest_value"),
    ("intervals", {("counts", "outcome", 0): 10**30}, "explain"),
    ("soft_boxes", {("soft_counts", "steps"): [], ("soft_counts", "landing"): []}, "how_sure"),
    ("finite", {("template", "nodes", 0, "values", 0): 10**400}, "likelihood"),
    ("single_shot", {("background", "nodes", 0, "variable"): "%s"}, "likelihood"),
    (
        "single_shot",
        {("background", "nodes", 0): {"id": 0, "kind": "latent", "interface": 0}},
        "likelihood",
    ),
    ("soft_boxes", {("template", "nodes", 0, "scale"): 1e300}, "likelihood"),
    ("never_taken", {("template", "nodes", 0, "values", 0): -1e300}, "explain"),
    (
        "two_decisions",
        {("template", "nodes", k, "values", 0): 0 for k in (156, 159, 160, 161, 163)},
        "sample_by_policy",
    ),
    ("every_leaf", {("top", "nodes", 0, "interface"): 1}, "likelihood"),
    ("factored", {("template", "factors", 0, "to", 0): 2**63}, "load"),
    ("factored", {("template", "factors", 0, "components", 0, "classes", 0): 2**64}, "load"),
    ("never_taken", {("never_taken", 0, 4): 10**400}, "load"),
    ("untried_by_hand", {("template", "nodes", 27, "count"): 5e-324}, "report"),
    ("shared_outcomes", {("counts", "utilities", "share", 8): 0.0}, "acts_with_rules"),
    ("arrays_beyond", {("visits", 8): 5e-324}, "report"),
    (
        "moves",
        {
            ("counts", "utilities", "least_strength"): -0.0,
            ("template", "nodes", 243, "interface"): 36,
        },
        "acts_with_rules",
    ),
    ("shared_outcomes", {("template", "nodes", 29, "count"): -0.0}, "report"),
    ("shared_outcomes", {("counts", "utilities", "share"): [0.0] * 63}, "honest_value"),
    ("moves", {("counts", "utilities", "strength"): 5e-324}, "acts_with_rules"),
    ("moves", {("counts", "utilities", "share"): [5e-324] * 101}, "acts_with_rules"),
    ("arrays_factored", {("template", "factors", 0, "share"): [5e-324] * 9}, "likelihood"),
    ("moves", {("counts", "mean"): [5e-324] * 136}, "explain"),
    ("untried", {("schema", "log"): {"terminated": "\ud800"}}, "saved_again"),
    ("informative", {("template", "roots"): [51, 45, 43, 41, 39, 37, 35]}, "honest_value"),
    *(("never_taken", NEVER_ENDS, asked) for asked in ("information", "report", "meu_for_ever")),
)


@pytest.mark.parametrize(("seed", "changes", "question"), MUTANTS)
def test_mutants_that_failed(
    seed: str, changes: dict[tuple[str | int, ...], object], question: str, tmp_path: Path
) -> None:
    raw = json.loads(seed_content(GOLDEN / "models" / f"{seed}.json.gz"))
    for path, value in changes.items():
        part = raw
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
    (tmp_path / "mutant.json").write_text(json.dumps(raw))
    asked = [] if question == "load" else [getattr(model_questions, question)]
    assert [*judged(tmp_path / "mutant.json", asked)][-1] in ("refused", "answered")
