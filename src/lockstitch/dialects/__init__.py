"""Dialects: wire items to core items and back. Pure, like the core."""

from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.detection import DIALECTS, by_name, detect

__all__ = ["DIALECTS", "Dialect", "Wire", "by_name", "detect"]
