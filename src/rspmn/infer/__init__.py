"""Inference in its plain form: every query reads like its definition."""

from rspmn.infer.actions import (
    ActionValue,
    ExpectedUtility,
    best_among,
    best_decisions,
    expected_utilities,
    meu,
)
from rspmn.infer.likelihood import conditioned, log_likelihood, log_likelihoods
from rspmn.infer.mpe import mpe
from rspmn.infer.sample import Decide, sample, uniformly

__all__ = [
    "ActionValue",
    "Decide",
    "ExpectedUtility",
    "best_among",
    "best_decisions",
    "conditioned",
    "expected_utilities",
    "log_likelihood",
    "log_likelihoods",
    "meu",
    "mpe",
    "sample",
    "uniformly",
]
