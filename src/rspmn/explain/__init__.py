"""Why a decision was made, what may come of it, and what it depends on."""

from rspmn.explain.distribution import ReturnDistribution

__all__ = ["ReturnDistribution"]
