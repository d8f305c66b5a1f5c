"""Evaluation: what policies are really worth."""

from rspmn.evaluate.exact import policy_array, true_value

__all__ = ["policy_array", "true_value"]
