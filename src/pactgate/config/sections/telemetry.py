"""The section `telemetry`: where traces of requests are exported to. Without an endpoint there are none, and they cost nothing.

The `OTEL_*` variables of OpenTelemetry are the defaults of these settings; what the file says counts. Must not: have a value that
changes nothing: a variable that asks for something else than OTLP over HTTP as protobuf is a problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings
from pactgate.config.sections import Section, doc

HeaderName = Annotated[str, Meta(min_length=1, max_length=200, extra={"check": value_checks.check_header_name})]
HeaderValue = Annotated[
    str, Meta(max_length=4000, extra={"expand": True, "secret": True, "check": value_checks.check_header_value})
]
Url = Annotated[str, Meta(max_length=2000, extra={"expand": True, "check": value_checks.check_url})]
Attribute = Annotated[str, Meta(max_length=500)]
_TRACES_PATH: Final = "/v1/traces"
_PREFIX: Final = "OTEL_"
_EXPORTER: Final = "OTEL_EXPORTER_OTLP_"
_TRUE: Final = "true"
_SAMPLERS: Final = ("always_on", "always_off", "traceidratio")
_PARENT_BASED: Final = "parentbased_"


class Telemetry(Section, frozen=True, kw_only=True):
    """Traces of requests, exported as OTLP over HTTP (protobuf)."""

    endpoint: Annotated[
        Url | None,
        doc(
            "URL that takes spans, as `http://127.0.0.1:4318/v1/traces`. Default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, else "
            "OTEL_EXPORTER_OTLP_ENDPOINT with `/v1/traces`; without any, nothing is traced.",
        ),
    ] = None
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        doc("Headers of each export, credentials among them. Default: OTEL_EXPORTER_OTLP_HEADERS.", max_length=50),
    ] = {}
    timeout_ms: Annotated[
        int, doc("Milliseconds an export may take. Default: OTEL_EXPORTER_OTLP_TIMEOUT.", ge=100, le=600000)
    ] = 10000
    sampler: Annotated[
        Literal["parent", "ratio"],
        doc(
            "`parent`: a request whose `traceparent` says whether it is sampled is treated so, and others by `sampleRatio`; `ratio`: "
            "all by `sampleRatio`. Default: OTEL_TRACES_SAMPLER."
        ),
    ] = "parent"
    sample_ratio: Annotated[
        float, doc("Part of the requests that are traced. Default: OTEL_TRACES_SAMPLER_ARG.", ge=0, le=1)
    ] = 1.0
    content: Annotated[
        bool,
        doc(
            "Whether spans of tool calls have arguments and results, up to 4 KiB each, without the secrets that the gateway knows. "
            "Others may be in them."
        ),
    ] = False
    service_name: Annotated[
        str, doc("Name of this gateway in traces. Default: OTEL_SERVICE_NAME.", min_length=1, max_length=200)
    ] = "pactgate"
    resource_attributes: Annotated[
        dict[Attribute, Attribute],
        doc("Further attributes of this gateway in traces. Default: OTEL_RESOURCE_ATTRIBUTES.", max_length=50),
    ] = {}


def telemetry_of(environ: Mapping[str, str], found: ConfigFindings, *, has_endpoint: bool) -> dict[str, Any]:
    """The section as the `OTEL_*` variables have it. What can't be done is a problem, if traces are exported at all: to the endpoint
    that is named here, or, with `has_endpoint`, in the configuration."""
    named = ((name, environ[name].strip()) for name in environ if name.startswith(_PREFIX))
    own = {name: value for name, value in named if value}
    if own.get("OTEL_SDK_DISABLED", "").lower() == _TRUE or own.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return {}
    section: dict[str, Any] = {}
    base = own.get(f"{_EXPORTER}ENDPOINT")
    endpoint = own.get(f"{_EXPORTER}TRACES_ENDPOINT") or (base and base.rstrip("/") + _TRACES_PATH)
    if endpoint is not None:
        section["endpoint"] = endpoint
    elif not has_endpoint:
        return {}
    if headers := _traces(own, "HEADERS"):
        section["headers"] = _pairs(headers)
    protocol = _traces(own, "PROTOCOL")
    if protocol not in (None, "http/protobuf"):
        found.add((), f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}.", "Traces are exported as http/protobuf only.")
    if (
        timeout := _number(own, f"{_EXPORTER}TRACES_TIMEOUT", found) or _number(own, f"{_EXPORTER}TIMEOUT", found)
    ) is not None:
        section["timeoutMs"] = int(timeout)
    if name := own.get("OTEL_SERVICE_NAME"):
        section["serviceName"] = name
    if attributes := own.get("OTEL_RESOURCE_ATTRIBUTES"):
        section["resourceAttributes"] = _pairs(attributes)
        section.setdefault("serviceName", section["resourceAttributes"].pop("service.name", "pactgate"))
    _sample(own, section, found)
    return section


def is_disabled(environ: Mapping[str, str]) -> bool:
    """Whether the environment forbids telemetry, whatever the file says."""
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == _TRUE


def _sample(own: Mapping[str, str], section: dict[str, Any], found: ConfigFindings) -> None:
    sampler = own.get("OTEL_TRACES_SAMPLER")
    if sampler is None:
        return
    kind = sampler.removeprefix(_PARENT_BASED)
    if kind not in _SAMPLERS:
        found.add(
            (), f"OTEL_TRACES_SAMPLER is {sampler!r}.", f"Known are {', '.join(_SAMPLERS)}, also with {_PARENT_BASED}."
        )
        return
    section["sampler"] = "parent" if sampler.startswith(_PARENT_BASED) else "ratio"
    ratio = _number(own, "OTEL_TRACES_SAMPLER_ARG", found) if kind == "traceidratio" else None
    section["sampleRatio"] = {"always_on": 1.0, "always_off": 0.0}.get(kind, 1.0 if ratio is None else ratio)


def _traces(own: Mapping[str, str], name: str) -> str | None:
    """A variable of the exporter: that for traces, else that for every signal."""
    return own.get(f"{_EXPORTER}TRACES_{name}") or own.get(f"{_EXPORTER}{name}")


def _number(own: Mapping[str, str], name: str, found: ConfigFindings) -> float | None:
    try:
        return float(own[name]) if name in own else None
    except ValueError:
        found.add((), f"{name} is {own[name]!r}.", "It must be a number.")
        return None


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2` with percent-encoded values, as the variables have lists."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
