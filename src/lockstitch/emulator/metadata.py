"""Metadata: a small object of short strings, in every API that takes it."""

from typing import Any

from lockstitch.emulator.kinds import OBJECT, STRING, check_kind
from lockstitch.emulator.limits import (
    LONGEST_METADATA_KEY_CHARACTERS,
    LONGEST_METADATA_VALUE_CHARACTERS,
    MOST_METADATA_PAIRS,
)
from lockstitch.emulator.refusals import out_of_range, too_long


def check_metadata(metadata: Any, param: str = "metadata") -> None:
    """Refuse metadata that is not a small object of short strings."""
    check_kind(OBJECT, metadata, param)
    if len(metadata) > MOST_METADATA_PAIRS:
        most = f"too many properties. Expected an object with at most {MOST_METADATA_PAIRS}"
        got = f"but got an object with {len(metadata)} properties instead"
        raise out_of_range(param, f"{most} properties, {got}")
    for key, value in metadata.items():
        if len(key) > LONGEST_METADATA_KEY_CHARACTERS:
            raise too_long(param, LONGEST_METADATA_KEY_CHARACTERS, len(key))
        check_kind(STRING, value, f"{param}.{key}")
        if len(value) > LONGEST_METADATA_VALUE_CHARACTERS:
            raise too_long(f"{param}.{key}", LONGEST_METADATA_VALUE_CHARACTERS, len(value))
