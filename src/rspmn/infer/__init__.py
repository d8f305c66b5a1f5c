"""Inference in its plain form: every query reads like its definition."""

from rspmn.infer.actions import ActionValue, action_values, best_among, best_decisions
from rspmn.infer.branches import Branches
from rspmn.infer.criterion import Criterion, MaximumExpectedUtility
from rspmn.infer.likelihood import conditioned, log_likelihood, log_likelihoods
from rspmn.infer.meu import ExpectedUtility, meu
from rspmn.infer.mpe import mpe
from rspmn.infer.sample import Decide, sample, uniformly

__all__ = [
    "ActionValue", "Branches", "Criterion", "Decide", "ExpectedUtility", "MaximumExpectedUtility",
    "action_values", "best_among", "best_decisions", "conditioned", "log_likelihood",
    "log_likelihoods", "meu", "mpe", "sample", "uniformly",
]  # fmt: skip
