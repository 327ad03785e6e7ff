"""What each server event does to a mirror, as a table. Every event costs O(1).

An event that is missing from `HANDLERS` says nothing about items. The conversation's own events
decide what is there; those of a response only tell whether it goes on and what its items say,
because the items of a response out of band never enter the conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lockstitch.core.items import Item, Part
from lockstitch.dialects.base import Wire, text_of
from lockstitch.mirror.chain import Record
from lockstitch.mirror.context import Context
from lockstitch.mirror.edits import ROOT, Create, Delete, Retrieve
from lockstitch.mirror.flight import Standing, Tracked
from lockstitch.mirror.saying import with_words, without_audio

Event = dict[str, Any]

NOT_THERE: Final = frozenset({"item_delete_invalid_item_id", "item_retrieve_invalid_item_id"})
"""Refusals that tell that there is no such item."""

ALREADY_THERE: Final = frozenset({"item_create_duplicate_item_id"})


def _item_of(event: Event) -> Wire | None:
    item = event.get("item")
    return item if isinstance(item, dict) and text_of(item.get("id")) else None


# --- the conversation ----------------------------------------------------------------------------


def _added(context: Context, event: Event) -> None:
    wire = _item_of(event)
    if wire is None:
        return
    record = context.chain.alive(wire["id"])
    if record is None:
        _arrive(context, wire, event.get("previous_item_id"))
    else:
        _told_again(context, record, wire)


def _done(context: Context, event: Event) -> None:
    wire = _item_of(event)
    if wire is None:
        return
    known = context.chain.get(wire["id"])
    if known is None:
        _arrive(context, wire, event.get("previous_item_id"))
    elif known.lives:
        _told_again(context, known, wire)
    # Else it was deleted before it was done: only `added` brings an id back.


def _arrive(context: Context, wire: Wire, previous: object) -> None:
    create = context.flight.creating(wire["id"])
    record = context.enter(without_audio(wire))
    after = text_of(previous)
    if after is not None and after != ROOT:
        context.chain.put_behind(record, after)
    elif context.links:
        context.chain.put_first(record)
    else:
        context.chain.append(record)  # such a provider never says where
    if create is not None:
        context.flight.acknowledge(create)


def _told_again(context: Context, record: Record, wire: Wire) -> None:
    """The same item, further on; or an older word about it, which takes nothing back."""
    now = record.wire
    finished = now.get("status") != "in_progress"
    if not record.truncated and not (finished and wire.get("status") == "in_progress"):
        context.rewrite(record, _keeping_words(now, without_audio(wire)))
    context.consider(record)


def _keeping_words(now: Wire, wire: Wire) -> Wire:
    """Transcripts come in events of their own: an item told again may not have them."""
    old, new = now.get("content"), wire.get("content")
    if not isinstance(old, list) or not isinstance(new, list):
        return wire
    for index, (was, part) in enumerate(zip(old, new, strict=False)):
        words = was.get("transcript") if isinstance(was, dict) else None
        if words and isinstance(part, dict) and part.get("transcript", "") is None:
            wire = with_words(wire, index, words)
    return wire


def _deleted(context: Context, event: Event) -> None:
    item_id = text_of(event.get("item_id"))
    delete = context.flight.deleting(item_id) if item_id else context.flight.oldest_delete()
    if item_id is None:
        if delete is None:
            return  # a provider that does not say what, to somebody who did not ask
        item_id = delete.edit.item_id
    create = context.flight.creating(item_id)
    if create is not None and create.standing is not Standing.PLANNED:
        context.flight.acknowledge(create)
    record = context.chain.get(item_id)
    if record is None:
        stone = Record(item_id, Item(Part.OTHER), {"id": item_id}, context.version)
        context.chain.tombstone(stone, context.version)
    elif record.lives:
        context.bury(record)
    if delete is not None:
        context.flight.acknowledge(delete)


def _truncated(context: Context, event: Event) -> None:
    record = context.chain.alive(str(event.get("item_id")))
    index = event.get("content_index")
    if record is not None and isinstance(index, int):
        # No words may stay in the context that the user has not heard.
        record.truncated = True
        context.rewrite(record, with_words(record.wire, index, None))


def _retrieved(context: Context, event: Event) -> None:
    wire = _item_of(event)
    if wire is None:
        return
    item_id = wire["id"]
    asked = context.flight.answered(item_id)
    create, delete = context.flight.creating(item_id), context.flight.deleting(item_id)
    record = context.chain.get(item_id)
    if record is not None and record.lives:
        record.truncated = False
        _told_again(context, record, wire)
        if delete is not None and context.flight.tells(asked, delete):
            context.flight.reject(delete)
    elif create is not None and isinstance(create.edit, Create):
        # Its own event was lost: it stands where it was asked for.
        _arrive(context, wire, create.edit.previous_item_id)
    elif record is None:
        context.chain.append(context.enter(without_audio(wire)))


def _transcribed(context: Context, event: Event) -> None:
    record = context.chain.alive(str(event.get("item_id")))
    if record is None:
        return
    words, index = event.get("transcript"), event.get("content_index")
    if isinstance(words, str) and isinstance(index, int):
        context.rewrite(record, with_words(record.wire, index, words))
    record.unheard = False
    context.consider(record)


# --- responses -----------------------------------------------------------------------------------


def _response_created(context: Context, event: Event) -> None:
    response = event.get("response")
    response_id = text_of(response.get("id")) if isinstance(response, dict) else None
    if response_id:
        context.begins(response_id)


def _output_item(context: Context, event: Event) -> None:
    wire, response = _item_of(event), text_of(event.get("response_id"))
    if wire is None:
        return
    if response:
        context.speaks(response, wire["id"])
    record = context.chain.alive(wire["id"])
    if record is not None:
        _told_again(context, record, wire)


def _response_done(context: Context, event: Event) -> None:
    response = event.get("response")
    response_id = text_of(response.get("id")) if isinstance(response, dict) else None
    if response_id is None or response is None:
        return
    spoken = context.ends(response_id)
    for wire in response.get("output") or ():
        record = context.chain.alive(str(wire.get("id"))) if isinstance(wire, dict) else None
        if record is not None:
            _told_again(context, record, wire)
    for record in spoken:
        if record.known_at is None:
            # Nobody goes on with it, whatever its status was last said to be.
            record.known_at = context.version


# --- refusals ------------------------------------------------------------------------------------


def _error(context: Context, event: Event) -> None:
    error = event.get("error")
    if not isinstance(error, dict):
        return
    tracked = context.flight.tracked(str(error.get("event_id")))
    if tracked is None:
        return
    if isinstance(tracked.edit, Retrieve):
        context.flight.refused(tracked)
    if tracked.standing not in {Standing.SENT, Standing.IN_DOUBT}:
        return
    code = error.get("code")
    if code in NOT_THERE:
        _not_there(context, tracked)
    elif code in ALREADY_THERE and isinstance(tracked.edit, Create):
        if context.chain.alive(tracked.edit.item_id) is not None:
            context.flight.acknowledge(tracked)
        else:
            context.flight.doubt(tracked)  # something has this id: retrieve tells what
    else:
        context.flight.reject(tracked)


def _not_there(context: Context, tracked: Tracked) -> None:
    item_id = tracked.edit.item_id
    context.flight.acknowledge(tracked)
    record = context.chain.alive(item_id)
    if record is not None:
        context.bury(record)
    if isinstance(tracked.edit, Delete):
        return
    delete, create = context.flight.deleting(item_id), context.flight.creating(item_id)
    if delete is not None:
        context.flight.acknowledge(delete)
    if create is not None and context.flight.tells(tracked.turn, create):
        context.flight.reject(create)


_TRANSCRIPTION: Final = "conversation.item.input_audio_transcription"

HANDLERS: Final[dict[str, Callable[[Context, Event], None]]] = {
    "conversation.item.added": _added,
    "conversation.item.created": _added,  # Azure's word for it
    "conversation.item.done": _done,
    "conversation.item.deleted": _deleted,
    "conversation.item.truncated": _truncated,
    "conversation.item.retrieved": _retrieved,
    f"{_TRANSCRIPTION}.completed": _transcribed,
    f"{_TRANSCRIPTION}.failed": _transcribed,
    "response.created": _response_created,
    "response.output_item.added": _output_item,
    "response.output_item.done": _output_item,
    "response.done": _response_done,
    "error": _error,
}
