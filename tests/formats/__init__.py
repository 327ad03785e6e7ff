"""Every known format, with broken histories of it.

Tests that must hold for all formats go through `SAMPLES`. A new format adds a module here with
samples of its own."""

from __future__ import annotations

from tests.formats import (
    agents,
    bedrock,
    gemini,
    langchain,
    langgraph,
    openai_and_anthropic,
    opencode,
    pi,
    pydantic_ai,
    session_files,
    vercel,
)
from tests.formats.sample import Sample

SAMPLES: tuple[Sample, ...] = (
    *openai_and_anthropic.SAMPLES,
    *session_files.SAMPLES,
    *agents.SAMPLES,
    *pydantic_ai.SAMPLES,
    *gemini.SAMPLES,
    *bedrock.SAMPLES,
    *langchain.SAMPLES,
    *langgraph.SAMPLES,
    *pi.SAMPLES,
    *opencode.SAMPLES,
    *vercel.SAMPLES,
)
