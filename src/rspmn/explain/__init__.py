"""Why a decision was made, what may come of it, and what it depends on."""

from rspmn.explain.distribution import ReturnDistribution
from rspmn.explain.explanation import Explanation

__all__ = ["Explanation", "ReturnDistribution"]
