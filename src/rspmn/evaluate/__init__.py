"""Evaluation: true values of policies, how well models predict, and baselines."""

from rspmn.evaluate.baselines import Cloned, Tabular
from rspmn.evaluate.exact import policy_array, true_value
from rspmn.evaluate.prediction import Predictions, predictions

__all__ = ["Cloned", "Predictions", "Tabular", "policy_array", "predictions", "true_value"]
