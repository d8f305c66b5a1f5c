"""Conformance checks: what a plug-in must satisfy, as functions to call in its own tests.

Each check raises an `AssertionError` that says which rule was broken.
"""

from conformance.criterion import check_criterion
from conformance.distribution import check_distribution
from conformance.engine import check_engine
from conformance.structure import check_independence_test, check_row_clustering
from conformance.successors import check_successors

__all__ = [
    "check_criterion", "check_distribution", "check_engine", "check_independence_test",
    "check_row_clustering", "check_successors",
]  # fmt: skip
