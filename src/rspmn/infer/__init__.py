"""Inference in its plain form: every query reads like its definition."""

from rspmn.infer.actions import (
    ActionValue,
    ExpectedUtility,
    best_among,
    best_decisions,
    expected_utilities,
    meu,
)
from rspmn.infer.likelihood import log_likelihood
from rspmn.infer.mpe import mpe
from rspmn.infer.sample import Decide, best_first, sample, uniformly

__all__ = [
    "ActionValue",
    "Decide",
    "ExpectedUtility",
    "best_among",
    "best_decisions",
    "best_first",
    "expected_utilities",
    "log_likelihood",
    "meu",
    "mpe",
    "sample",
    "uniformly",
]
