"""How much a test tries: little in `make test`, much more in `make soak` (see conftest.py)."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SOAK = bool(os.environ.get("SOAK"))
#: The share of the examples and seeds of `make soak` that are tried: SHARE=0.1 for a shorter one.
SHARE = float(os.environ.get("SHARE", "1"))


def share_of_examples(share: float) -> settings:
    """Return settings for a property whose examples take longer, or less long, than usual."""
    return settings(
        max_examples=max(1, round(share * settings().max_examples)),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def mostly_soak(values: Iterable[Any], few: Collection[Any]) -> list[Any]:
    """Return parameters of a test: those among `few` as they are, the others marked soak."""
    return [v if v in few else pytest.param(v, marks=pytest.mark.soak) for v in values]


def seeds(few: int, many: int) -> range:
    """Return the seeds that a test is repeated with: a few, or many in `make soak`."""
    return range(max(few, round(SHARE * many)) if SOAK else few)
