"""Evaluation: what policies are really worth, and how well models predict."""

from rspmn.evaluate.exact import policy_array, true_value
from rspmn.evaluate.prediction import Predictions, predictions

__all__ = ["Predictions", "policy_array", "predictions", "true_value"]
