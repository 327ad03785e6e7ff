"""The bodies of requests about conversations that the gateway keeps, held to the provider's limits.

Whether the items are whole is not asked here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.core.errors import NotAnItem
from lockstitch.dialects.base import Wire
from lockstitch.dialects.reading import UNREADABLE, decoded
from lockstitch.gateway.deciding.asked import NotARequest, check_characters, value_of, wrong_type
from lockstitch.gateway.deciding.listing import type_of
from lockstitch.gateway.events import fields_of

MOST_ITEMS_AT_ONCE: Final = 20
MOST_METADATA_PAIRS: Final = 16
LONGEST_METADATA_KEY_CHARACTERS: Final = 64
LONGEST_METADATA_VALUE_CHARACTERS: Final = 512
"""The provider's own."""

_NOT_KEPT: Final = frozenset({"item_reference", "compaction_trigger"})
"""Items that mean something in a request alone."""


class ConversationBody(Struct, frozen=True, kw_only=True):
    """What such a body says; None where it says nothing of it."""

    items: list[bytes] | None = None
    metadata: Mapping[str, str] | None = None


def read_body(body: bytes) -> ConversationBody:
    """Read a body; none at all is an empty one. Raises `NotARequest`."""
    try:
        fields = fields_of(body) if body.strip() else {}
        body.decode()
    except UNREADABLE:
        raise NotARequest("The body is not a JSON object in UTF-8. Send one.") from None
    check_characters(body)
    return ConversationBody(items=_items(fields), metadata=_metadata(fields))


def items_in(body: bytes) -> list[Wire]:
    """The items of a body that is for an upstream, as far as there are any: it is the upstream that
    says what is wrong with it."""
    try:
        listed = msgspec.json.decode(fields_of(body).get("items", b"null"))
    except UNREADABLE:
        return []
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def missing(name: str) -> NotARequest:
    return NotARequest(
        f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter"
    )


def _items(fields: Mapping[str, Raw]) -> list[bytes] | None:
    listed = value_of(fields, "items", list[Raw], "an array")
    if listed is None:
        return None
    items = [bytes(item) for item in listed]
    if len(items) > MOST_ITEMS_AT_ONCE:
        raise NotARequest(
            "Invalid 'items': array too long. Expected an array with maximum length "
            f"{MOST_ITEMS_AT_ONCE}, but got an array with length {len(items)} instead.",
            param="items",
            code="array_above_max_length",
        )
    for n, item in enumerate(items):
        try:
            decoded(item)
        except NotAnItem:
            raise wrong_type(f"items[{n}]", "an object") from None
        if type_of(item) in _NOT_KEPT:
            raise NotARequest(
                f"Invalid value: '{type_of(item)}'. Supported values are: those of items that "
                "can be kept.",
                param=f"items[{n}].type",
                code="invalid_value",
            )
    return items


def _metadata(fields: Mapping[str, Raw]) -> Mapping[str, str] | None:
    metadata = value_of(fields, "metadata", dict[str, Any], "an object")
    if metadata is None:
        return None
    if len(metadata) > MOST_METADATA_PAIRS:
        raise NotARequest(
            "Invalid 'metadata': too many properties. Expected an object with at most "
            f"{MOST_METADATA_PAIRS} properties, but got an object with {len(metadata)} properties "
            "instead.",
            param="metadata",
            code="invalid_value",
        )
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise wrong_type(f"metadata.{key}", "a string")
        _check_length("metadata", key, LONGEST_METADATA_KEY_CHARACTERS)
        _check_length(f"metadata.{key}", value, LONGEST_METADATA_VALUE_CHARACTERS)
    return metadata


def _check_length(param: str, text: str, most: int) -> None:
    if len(text) > most:
        raise NotARequest(
            f"Invalid '{param}': string too long. Expected a string with maximum length {most}, "
            f"but got a string with length {len(text)} instead.",
            param=param,
            code="string_above_max_length",
        )
