"""Spans for OpenTelemetry, where it is installed and configured; nothing where it is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lockstitch.gateway.watching.tracing import Tracing

WORK = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
from lockstitch.gateway.watching.tracing import Tracing
parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
span = Tracing().begin("POST", "/v1/responses?secret=1", {"traceparent": parent})
span.end(502, upstream="openai", events=3, key=None)
(span,) = kept.get_finished_spans()
print(span.name, format(span.context.trace_id, "x"), span.status.status_code.name)
print(sorted(span.attributes.items()))
"""


def test_one_span_for_a_request_below_that_of_its_client():
    pytest.importorskip("opentelemetry.sdk")
    ran = subprocess.run(
        [sys.executable, "-c", WORK], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.splitlines() == [
        "POST /v1/responses af7651916cd43dd8448eb211c80319c ERROR",
        "[('http.request.method', 'POST'), ('http.response.status_code', 502),"
        " ('lockstitch.events', 3), ('lockstitch.upstream', 'openai'),"
        " ('url.path', '/v1/responses')]",
    ], ran.stderr


@pytest.mark.parametrize(
    "environment", [{}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}]
)
def test_without_a_configuration_there_are_no_spans(environment):
    tracing = Tracing(environment)
    assert not tracing
    assert tracing.begin("GET", "/", {}) is None
    tracing.close()


def test_its_own_variables_configure_it():
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    assert Tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
