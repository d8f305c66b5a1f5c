"""Conformance checks of tests and clusterings: ours pass, and each broken rule is found."""

from collections.abc import Sequence

import numpy as np
import pytest

from conformance import check_independence_test, check_row_clustering
from rspmn.learn import RDC, BehaviouralSplit, GTest, KMeansClustering
from rspmn.learn.structure.independence import Dependence, IndependenceTest
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.split import RowClustering
from rspmn.learn.structure.targets import Targets
from rspmn.types import Ints


@pytest.mark.parametrize("test", [GTest(), GTest(alpha=0.05), RDC()])
def test_tests_of_independence_pass(test: IndependenceTest) -> None:
    check_independence_test(test)


class IgnoresStrata:
    def __call__(
        self, rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints,
        rng: np.random.Generator,
    ) -> Dependence:  # fmt: skip
        return GTest()(rows, left, right, np.zeros_like(strata), rng)


class IgnoresWeights:
    def __call__(
        self, rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints,
        rng: np.random.Generator,
    ) -> Dependence:  # fmt: skip
        alike = Rows(rows.table, rows.index, np.ones(len(rows)))
        return GTest()(alike, left, right, strata, rng)


@pytest.mark.parametrize(
    ("test", "rule"), [(IgnoresStrata(), "given the strata"), (IgnoresWeights(), "expected")]
)
def test_broken_tests_of_independence_are_found(test: IndependenceTest, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_independence_test(test)


@pytest.mark.parametrize("clustering", [BehaviouralSplit(), KMeansClustering()])
def test_clusterings_pass(clustering: RowClustering) -> None:
    check_row_clustering(clustering)


class Broken:
    disjoint = True

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(
        self, rows: Rows, on: Sequence[str], targets: Targets, rng: np.random.Generator
    ) -> list[Rows]:
        found = BehaviouralSplit()(rows, on, targets, rng)
        match self.how:
            case "twice":
                return [*found, found[0]] if len(found) > 1 else found
            case "lost":
                return found[1:] or found
            case "overlapping":
                half = len(rows) // 2
                return [rows.where(np.arange(half)), rows.where(np.arange(half, len(rows)))]
            case _:
                return [rows]


@pytest.mark.parametrize(
    ("how", "rule"),
    [("twice", "two clusters"), ("lost", "no cluster"), ("overlapping", "disjoint|constant"),
     ("never", "not divided")],
)  # fmt: skip
def test_broken_clusterings_are_found(how: str, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_row_clustering(Broken(how))
