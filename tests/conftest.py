"""Settings for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Everywhere but in CI the examples are new each time; THOROUGH=20 makes that twenty times as many.
# In CI a change is judged by what it does, not by the luck of the draw.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("default")
