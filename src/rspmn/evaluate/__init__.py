"""Evaluation: true values of policies, off-policy estimates, predictions of models, baselines."""

from rspmn.evaluate.baselines import Cloned, Tabular
from rspmn.evaluate.comparison import Comparison, compare
from rspmn.evaluate.exact import policy_array, true_value
from rspmn.evaluate.importance import Estimate
from rspmn.evaluate.off_policy import OffPolicy, off_policies, off_policy
from rspmn.evaluate.practice import practice, practice_network
from rspmn.evaluate.prediction import Predictions, predictions
from rspmn.evaluate.target_policies import Mixture, Planned, Practice, Target, Uniform, as_target

__all__ = [
    "Cloned", "Comparison", "Estimate", "Mixture", "OffPolicy", "Planned", "Practice",
    "Predictions", "Tabular", "Target", "Uniform", "as_target", "compare", "off_policies",
    "off_policy",
    "policy_array", "practice", "practice_network", "predictions", "true_value",
]  # fmt: skip
