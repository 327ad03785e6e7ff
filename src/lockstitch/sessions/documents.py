"""JSON documents that hold one conversation: a list of items or messages, a request body, a
LiveKit `ChatContext`. Read and written element by element (`splitting`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from lockstitch.core import mending, rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import read_through
from lockstitch.dialects.base import Dialect, Wire, as_json
from lockstitch.dialects.detection import detect, sign
from lockstitch.dialects.examination import Examination
from lockstitch.dialects.rewriting import Rewriter
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.errors import NotASession
from lockstitch.sessions.lines import decoded
from lockstitch.sessions.livekit import LiveKitItems, is_chat_context
from lockstitch.sessions.model import Change, Scan, Sink, examined
from lockstitch.sessions.source import Source
from lockstitch.sessions.splitting import (
    LIST_FIELDS,
    Element,
    Field,
    ListField,
    Piece,
    Splitter,
    Text,
)

ANCHORS: Final = ("previous_response_id", "conversation")
"""Fields of a request body that say where its input goes on from."""


def is_anchored(field: str, body: Mapping[str, Any]) -> bool:
    """Does a request go on from what the provider has? Only Responses bodies can."""
    return field == "input" and any(body.get(name) for name in ANCHORS)


ANSWER_FIELD: Final = "output"
"""What the model answered to a request that was stored with it. Its calls may be open."""


def may_hide_calls(name: str, value: object) -> bool:
    """Is this field, which was not read, a second list of items or messages?"""
    if name in LIST_FIELDS:
        return True
    return (
        isinstance(value, list)
        and name != ANSWER_FIELD
        and any(isinstance(one, dict) and sign(one) is not None for one in value)
    )


View: TypeAlias = Callable[[int, Wire], Wire | None]
"""What counts of an element, given with its number: all of it, a part of it, or nothing."""


class JsonDocument:
    """One JSON document, one conversation."""

    name = "json"

    def __init__(self, dialect: Dialect | None = None) -> None:
        self._dialect = dialect

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        dialect = _detect(source, self._dialect)
        start = Examination(dialect)
        read = partial(_read, source, self.view(source))
        examination, (torn, anchor) = read_through(start, read)
        conversation = examined(examination, torn, anchored=anchored or anchor)
        named = {finding.place.at for finding in conversation.findings}
        return Scan(
            format=self.name if dialect.name != "livekit" else "livekit",
            conversations=[conversation],
            records=examination.records + len(torn),
            word="item",
            lines=_lines(source, named) if named else {},
            facts=dialect,
        )

    def view(self, source: Source) -> View:
        """What counts of each element. A format in which not all of it does overrides this."""
        return lambda _, wire: wire

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        conversation = scan.conversations[0]
        edits = mending.plan(conversation.findings, policy)
        broken = {f.place.at: f for f in conversation.findings if f.rule is rules.UNDECODABLE}
        if not edits and not broken:
            return []
        log = ChangeLog(scan)
        log.expect(edits)
        writer = _Writer(out, Rewriter(scan.facts, edits, conversation.captured), broken, log)
        for piece in pieces(source):
            writer.write(piece)
        return log.all()


def pieces(source: Source) -> Iterator[Piece]:
    """A document in order; raises `NotASession` at its end if there was no list in it."""
    with source.open() as stream:
        splitter = Splitter(stream, source.name)
        yield from splitter.pieces()
        if not splitter.found_list:
            raise NotASession(
                source.name,
                "is JSON, but holds no list of items.",
                "Expected a list, or an object with one under input, messages, items or contents.",
            )


def elements(source: Source) -> Iterator[Any]:
    """The decoded elements of a document's list; None for what cannot be decoded."""
    for piece in pieces(source):
        if isinstance(piece, Element):
            try:
                yield decoded(piece.text)
            except (ValueError, RecursionError):
                yield None


def _detect(source: Source, otherwise: Dialect | None) -> Dialect:
    if is_chat_context(elements(source)):
        return LiveKitItems()
    return detect(elements(source), otherwise)


def _read(source: Source, view: View, examination: Examination) -> tuple[list[Finding], bool]:
    """The elements that are not objects; and whether the request continues what the provider
    has."""
    torn: list[Finding] = []
    list_field = ""
    anchors: dict[str, Any] = {}
    for piece in pieces(source):
        if isinstance(piece, Field) and piece.name in ANCHORS:
            anchors[piece.name] = piece.value
        if isinstance(piece, ListField):
            list_field = piece.name
        elif isinstance(piece, Field) and may_hide_calls(piece.name, piece.value):
            examination.expect_no_calls(piece.value, f"`{piece.name}`, a second list")
        if not isinstance(piece, Element):
            continue
        wire = _decoded(piece)
        if isinstance(wire, dict):
            counts = view(piece.index, wire)
            if counts is not None:
                examination.add(counts, piece.index)
            continue
        examination.expect_no_calls(wire, "not an object", piece.index)
        place, detail = Place(piece.index), "the element is not an object"
        torn.append(Finding(rule=rules.UNDECODABLE, place=place, detail=detail))
    return torn, is_anchored(list_field, anchors)


def _decoded(element: Element) -> Any:
    try:
        return decoded(element.text)
    except (ValueError, RecursionError):
        return None


def _lines(source: Source, wanted: set[int]) -> dict[int, int]:
    return {
        piece.index: piece.line
        for piece in pieces(source)
        if isinstance(piece, Element) and piece.index in wanted
    }


class _Writer:
    """Writes pieces, some of them changed; keeps commas and indentation right."""

    def __init__(
        self, out: Sink, rewriter: Rewriter, broken: dict[int, Finding], log: ChangeLog
    ) -> None:
        self._out = out
        self._log = log
        self._rewriter = rewriter
        self._busy = rewriter.positions()
        self._broken = broken
        self._first_lead: str | None = None
        self._written = 0

    def write(self, piece: Piece) -> None:
        if isinstance(piece, Text):
            self._out.write(piece.text.encode())
        elif isinstance(piece, Element):
            self._element(piece)

    def _element(self, element: Element) -> None:
        if self._first_lead is None:
            self._first_lead = element.lead
        if element.index in self._broken:
            self._log.removed(self._broken[element.index], element.text.encode())
            return
        if element.index not in self._busy:
            self._put(element.text, element.lead)
            return
        wire = _decoded(element)
        assert isinstance(wire, dict)
        left, arrivals, _ = self._rewriter.rewrite(element.index, wire)
        made: list[str] = []
        if left is wire:
            self._put(element.text, element.lead)
        elif left is not None:
            made.append(self._laid_out(left))
            self._put(made[0], element.lead)
        for arrival in arrivals:
            made.append(self._laid_out(arrival))
            self._put(made[-1], None)
        before = [] if left is wire else [element.text.encode()]
        self._log.touched(element.index, before, [text.encode() for text in made])

    def _put(self, text: str, lead: str | None) -> None:
        first = self._first_lead or ""
        if not self._written:
            lead = first
        elif lead is None or not lead.lstrip().startswith(","):
            lead = "," + first if "\n" in first else ", "
        self._out.write((lead + text).encode())
        self._written += 1

    def _laid_out(self, wire: Wire) -> str:
        """A new element, indented as the first one is."""
        lead = self._first_lead or ""
        if "\n" not in lead:
            return as_json(wire).decode()
        indent = lead.rsplit("\n", 1)[1]
        return as_json(wire, indent=2).decode().replace("\n", "\n" + indent)
