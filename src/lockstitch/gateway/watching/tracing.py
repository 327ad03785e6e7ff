"""One span for each request, for OpenTelemetry; nothing where that is not installed or configured.

It is configured as OpenTelemetry always is: by its own variables (OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_TRACES_EXPORTER, OTEL_SERVICE_NAME …), or by `opentelemetry-instrument lockstitch serve`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from lockstitch.gateway.watching.logs import SERVER_ERROR

_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Tracing:
    """Begins spans, if anybody wants them."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._tracer, self._extract, self._shutdown = _configured(environment)

    def __bool__(self) -> bool:
        return self._tracer is not None

    def begin(self, method: str, path: str, headers: Mapping[str, str]) -> Span | None:
        """A span for a request that came in, below that of its client if it sent one."""
        if self._tracer is None:
            return None
        carried = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        span = self._tracer.start_span(
            f"{method} {path.partition('?')[0]}",
            context=self._extract(carried),
            kind=import_module("opentelemetry.trace").SpanKind.SERVER,
            attributes={"http.request.method": method, "url.path": path.partition("?")[0]},
        )
        return Span(span)

    def close(self) -> None:
        """Send what was not sent yet."""
        if self._shutdown is not None:
            self._shutdown()


class Span:
    """The span of one request."""

    __slots__ = ("_span",)

    def __init__(self, span: Any) -> None:
        self._span = span

    def end(self, status: int, **facts: str | int | float | bool | None) -> None:
        """The request is over; ``facts`` are names and numbers, never bodies."""
        self._span.set_attribute("http.response.status_code", status)
        for name, fact in facts.items():
            if fact is not None:
                self._span.set_attribute(f"lockstitch.{name}", fact)
        if status >= SERVER_ERROR:
            codes = import_module("opentelemetry.trace")
            self._span.set_status(codes.Status(codes.StatusCode.ERROR))
        self._span.end()


_Parts = tuple[Any, Callable[[Mapping[str, str]], Any], Callable[[], None] | None]


def _configured(environment: Mapping[str, str]) -> _Parts:
    off: _Parts = (None, lambda carried: None, None)
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return off
    if "opentelemetry" not in sys.modules and not any(map(environment.get, _VARIABLES)):
        return off  # nobody asks for it: it takes long to load, and memory
    try:
        trace = import_module("opentelemetry.trace")
        propagate = import_module("opentelemetry.propagate")
    except ModuleNotFoundError:
        return off
    provider = trace.get_tracer_provider()
    shutdown = None
    if isinstance(provider, trace.ProxyTracerProvider):  # nobody has set one
        provider = _from_variables(environment)
        shutdown = getattr(provider, "shutdown", None)
    if provider is None or isinstance(provider, trace.NoOpTracerProvider):
        return off
    return provider.get_tracer("lockstitch"), propagate.extract, shutdown


def _from_variables(environment: Mapping[str, str]) -> Any | None:
    """What OpenTelemetry's own variables ask for, as far as its parts are installed."""
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return None
    if not any(environment.get(name) for name in _VARIABLES):
        return None
    kind = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    way = "grpc" if kind == "grpc" else "http"
    try:
        sdk = import_module("opentelemetry.sdk.trace")
        export = import_module("opentelemetry.sdk.trace.export")
        exporter = import_module(f"opentelemetry.exporter.otlp.proto.{way}.trace_exporter")
    except ModuleNotFoundError:
        return None
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    return provider
