"""Hypothesis: new examples on every run at a desk, the same ones in CI."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "desk", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
