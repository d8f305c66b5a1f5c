"""Conformance checks: what a plug-in must satisfy, as functions to call in its own tests.

Each check raises an `AssertionError` that says which rule was broken.
"""

from rspmn.testing.criterion import check_criterion
from rspmn.testing.distribution import check_distribution
from rspmn.testing.engine import check_engine
from rspmn.testing.structure import check_independence_test, check_row_clustering
from rspmn.testing.successors import check_successors

__all__ = [
    "check_criterion", "check_distribution", "check_engine", "check_independence_test",
    "check_row_clustering", "check_successors",
]  # fmt: skip
