"""Settings for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The examples are the same each time: a change is judged by what it does, not by the luck of the
# draw. THOROUGH=1 draws new ones, THOROUGH=20 twenty times as many.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="THOROUGH" not in os.environ,
    print_blob=True,
)
settings.load_profile("default")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes that are no text by their argument: they may differ from one process to the next.

    Compressed ones have the time in them, for example, and pytest-xdist runs nothing at all if two
    workers have collected tests of different names.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None
