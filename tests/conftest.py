"""Settings for every test."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Whatever is imported and collected stays until the end: looking through it for garbage, again and
# again while it grows, finds none. See `pytest_collection_finish`.
gc.disable()

# Clients of the providers read the certificates of the whole world when they are made, if they are
# told of a file of them; that takes longer than most tests here, and no test leaves this machine.
# This folder has no certificates. A test of TLS names its own.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

# Programs that are started inherit an ignored SIGHUP, for example from nohup, and keep ignoring it.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

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


@pytest.hookimpl(optionalhook=True)  # `-p no:xdist` runs the tests too
def pytest_xdist_auto_num_workers() -> int | None:
    """Three processes for two cores: many tests wait, for sockets, for other processes and for time
    to pass."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # whoever says so is listened to by pytest-xdist itself
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) * 3 // 2


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, and only in what the tests themselves make."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def no_garbage_of_other_files() -> None:
    """What the files before have left, caches of all kinds, is looked through once and not again:
    tests that collect the garbage, as those of the gateway do, take no longer behind others."""
    gc.collect()
    gc.freeze()
