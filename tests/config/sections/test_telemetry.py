"""The variables of OpenTelemetry as settings."""

from __future__ import annotations

import pytest

from pactgate.config.problems import ConfigFindings
from pactgate.config.sections.telemetry import is_disabled, telemetry_of

BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318/"}


def read(**variables: str) -> tuple[dict[str, object], int]:
    found = ConfigFindings("")
    return telemetry_of(
        {**BASE, **{f"OTEL_{name}": value for name, value in variables.items()}}, found, has_endpoint=False
    ), len(found.problems)


def test_the_path_of_traces_is_added_to_the_endpoint_of_all_signals_alone() -> None:
    assert read()[0] == {"endpoint": "http://127.0.0.1:4318/v1/traces"}
    assert read(EXPORTER_OTLP_TRACES_ENDPOINT="http://x/y")[0] == {"endpoint": "http://x/y"}
    environ = {"OTEL_SERVICE_NAME": "edge"}
    assert telemetry_of(environ, ConfigFindings(""), has_endpoint=False) == {}
    assert telemetry_of(environ, ConfigFindings(""), has_endpoint=True) == {"serviceName": "edge"}


@pytest.mark.parametrize(
    ("sampler", "kind", "ratio"),
    [
        ("always_on", "ratio", 1.0),
        ("parentbased_always_off", "parent", 0.0),
        ("parentbased_traceidratio", "parent", 0.25),
    ],
)
def test_every_sampler_of_the_specification_is_known(sampler: str, kind: str, ratio: float) -> None:
    section, problems = read(TRACES_SAMPLER=sampler, TRACES_SAMPLER_ARG="0.25")
    assert (section["sampler"], section["sampleRatio"], problems) == (kind, ratio, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("EXPORTER_OTLP_PROTOCOL", "grpc"), ("TRACES_SAMPLER", "jaeger"), ("EXPORTER_OTLP_TIMEOUT", "soon")],
)
def test_what_can_not_be_done_is_a_problem(name: str, value: str) -> None:
    assert read(**{name: value})[1] == 1


def test_telemetry_can_be_forbidden() -> None:
    assert is_disabled({"OTEL_SDK_DISABLED": "True"})
    assert not is_disabled({})
    assert read(SDK_DISABLED="true")[0] == {}
