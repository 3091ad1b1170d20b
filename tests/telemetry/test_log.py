"""Events as log lines: what is written, what never is, and that writing never waits."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core import events
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.telemetry.log import LEVELS, MAX_LINE_BYTES, SENTENCES, Level, Telemetry, level_of

NOON = 1_800_000_000.0


class Log:
    """A telemetry that writes into a pipe, and what came out of it."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self.telemetry = Telemetry(self._write_end, wall=lambda: NOON, clock=lambda: self.now, **options)

    def lines(self) -> list[bytes]:
        taken = b""
        try:
            while chunk := os.read(self._read_end, 65536):
                taken += chunk
        except BlockingIOError:
            pass
        return taken.splitlines()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]

    def close(self) -> None:
        os.close(self._read_end)
        os.close(self._write_end)

    def hang_up(self) -> None:
        os.dup2(self._write_end, self._read_end)

    def fill(self) -> None:
        os.set_blocking(self._write_end, False)
        try:
            while True:
                os.write(self._write_end, b"x" * 1023 + b"\n")
        except BlockingIOError:
            os.set_blocking(self._write_end, True)


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log(level=Level.DEBUG)
    yield log
    log.close()


def finished(failure: GatewayFailure | None = None, outcome: str = "ok") -> events.RequestFinished:
    return events.RequestFinished(
        ExecutionRecord(
            request_id="r1",
            method="tools/call",
            subject="anonymous",
            client="test/1",
            era="modern",
            version="2026-07-28",
            duration_ms=1.23456,
            server="almanac",
            tool="almanac.date_facts",
            outcome=failure.mode if failure else outcome,
            failure=failure.record() if failure else None,
        )
    )


EVERY_EVENT: list[Event] = [
    events.GatewayStarted("http://127.0.0.1:7411", 2),
    events.GatewayStopped("asked to"),
    events.ServerConnecting("almanac", 1),
    events.ServerConnected("almanac", "legacy", "2025-11-25", 1, 12.3),
    events.ServerDisconnected("almanac", "it ended"),
    events.ServerFailed("almanac", 4, "no such program"),
    events.ServerDiscovered("almanac", 5, 1.5),
    events.DiscoveryFailed("almanac", "too slow"),
    events.ConfigurationReloaded(("a",), ("b",), ("c",), ("listen",)),
    events.ConfigurationRefused(("pactgate.json:1:1 x: no",)),
    events.EffectsExceeded("notes", "notes.count", "r1", ("network 127.0.0.1:80",)),
    events.CodeReplaced("notes", "notes.count", "r1", "ODD"),
    events.ToolReported("notes", "notes.count", "crashed", "KeyError: 'x'"),
    events.CacheFailed("get", "OSError()"),
    events.CaptureEnded("captures/a.json", 3, 0),
    events.CaptureFailed("No space left on device"),
    events.ConfigurationChanged("ops", "limits.maxArraySize", "100", "5", "519893fa3d6d", True),
    events.ConfigurationRestored("ops", "mcpServers.crm.enabled", "with it files lost its connection"),
    events.AuditFailed("audit.jsonl", "No space left on device", "refuse"),
    events.AuditRecovered("audit.jsonl", 3, 0),
    events.UpstreamNoise("almanac", "a line that is no message", "hello"),
    events.CompositionHazard("tool_shadowing", "search", ("crm", "files"), "Two tools are called search.", "hazard"),
    finished(),
    events.RequestRefused(403, None, "Origin"),
    events.InternalFailure("r1", "kernel", "KeyError('x')", "Traceback\n  line\nKeyError: 'x'"),
]


def test_every_event_there_is_has_a_level_and_a_sentence() -> None:
    known = {type(event) for event in EVERY_EVENT}
    assert set(Event.__subclasses__()) == known
    assert {*LEVELS, events.RequestFinished} == known
    assert set(SENTENCES) == known


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("as_json", [True, False])
def test_every_event_becomes_a_line(event: Event, as_json: bool) -> None:
    log = Log(level=Level.DEBUG, as_json=as_json)
    log.telemetry.emit(event)
    first, *more = log.lines()
    log.close()
    if as_json:
        line = json.loads(first)
        assert (line["time"], line["event"]) == ("2027-01-15T08:00:00.000Z", type(event).__name__)
        assert line["level"] == level_of(event).name.lower()
        assert more == []
    else:
        assert level_of(event).name.encode() in first
        assert bool(more) == isinstance(event, events.InternalFailure)


def test_a_finished_request_is_logged_with_its_record_flat(log: Log) -> None:
    log.telemetry.emit(finished(GatewayFailure(Kind.CALL_TIMEOUT, "too slow", server="almanac")))
    (line,) = log.objects()
    assert (line["level"], line["outcome"], line["tool"]) == ("warning", "timeout", "almanac.date_facts")
    assert (line["duration_ms"], line["failure"]["verdict"]) == (1.235, "may_have_run")


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (finished(), Level.DEBUG),
        (events.CompositionHazard("uri_overlap", "x:y", ("a", "b"), "Both list x:y.", "hazard"), Level.WARNING),
        (events.CompositionHazard("uri_overlap", "x:y", ("a", "b"), "Both list x:y.", "note"), Level.INFO),
        (finished(outcome="tool_error"), Level.INFO),
        (finished(GatewayFailure(Kind.UNKNOWN_TOOL, "which?")), Level.INFO),
        (finished(GatewayFailure(Kind.CONNECTION_LOST, "gone")), Level.WARNING),
        (finished(GatewayFailure(Kind.INTERNAL, "oh")), Level.ERROR),
    ],
)
def test_the_level_of_a_request_follows_who_has_to_act(event: events.RequestFinished, level: Level) -> None:
    assert level_of(event) is level


def test_lines_below_the_level_and_hidden_types_are_counted_but_not_written() -> None:
    log = Log(level=Level.WARNING, hidden=frozenset({events.ServerFailed}))
    for event in EVERY_EVENT:
        log.telemetry.emit(event)
    written = [line["event"] for line in log.objects()]
    log.close()
    assert written == [
        "ServerDisconnected",
        "DiscoveryFailed",
        "ConfigurationRefused",
        "EffectsExceeded",
        "CodeReplaced",
        "ToolReported",
        "CacheFailed",
        "CaptureFailed",
        "ConfigurationRestored",
        "AuditFailed",
        "AuditRecovered",
        "UpstreamNoise",
        "CompositionHazard",
        "RequestRefused",
        "InternalFailure",
    ]
    assert log.telemetry.counts["ServerFailed"] == log.telemetry.counts["RequestFinished.ok"] == 1
    assert sum(log.telemetry.counts.values()) == len(EVERY_EVENT)


@pytest.mark.parametrize("as_json", [True, False])
def test_a_secret_of_the_configuration_is_in_no_line(as_json: bool) -> None:
    secret = 'tok"en\n-value-1234'
    log = Log(level=Level.DEBUG, as_json=as_json, secrets=[secret, "plain-secret"])
    failure = GatewayFailure(Kind.UPSTREAM_ERROR, "no", details={"headers": {"plain-secret": ["Bearer plain-secret"]}})
    log.telemetry.emit(events.ServerFailed("crm", 1, f"401 for {secret} and plain-secret"))
    log.telemetry.emit(events.InternalFailure("r", "w", secret, "x" * 20_000 + secret + "plain-secret"))
    log.telemetry.emit(finished(failure))
    text = b"\n".join(log.lines())
    log.close()
    assert b"***" in text
    assert b"-value-1234" not in text
    assert b"plain-secret" not in text


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30_000), st.booleans())
def test_a_line_is_bounded_and_free_of_control_characters(text: str, as_json: bool) -> None:
    log = Log(level=Level.DEBUG, as_json=as_json)
    log.telemetry.emit(events.UpstreamNoise(text, text, text))
    (line,) = log.lines()
    log.close()
    assert len(line) < MAX_LINE_BYTES
    assert all(
        character.isprintable() or character in "\u3000\xa0" or ord(character) > 0x9F for character in line.decode()
    )
    if as_json:
        assert json.loads(line)["event"] == "UpstreamNoise"


def test_a_record_with_too_many_facts_is_cut_and_still_json(log: Log) -> None:
    details = {f"key{number}": "\\" * 400 for number in range(100)}
    log.telemetry.emit(finished(GatewayFailure(Kind.UPSTREAM_ERROR, "no", details=details)))
    (line,) = log.objects()
    assert line["event"] == "RequestFinished"
    assert "cut" in line


def test_what_outsiders_can_provoke_is_bounded_in_rate_and_what_was_left_out_is_said() -> None:
    log = Log()
    for _ in range(1000):
        log.telemetry.emit(events.UpstreamNoise("loud", "noise", ""))
    log.telemetry.emit(events.UpstreamNoise("quiet", "noise", ""))
    written = log.objects()
    assert [line["server"] for line in written] == ["loud"] * 20 + ["quiet"]
    log.now += 1
    log.telemetry.emit(events.UpstreamNoise("loud", "noise", ""))
    (line,) = log.objects()
    log.close()
    assert line["suppressed"] == 980
    assert log.telemetry.counts["UpstreamNoise"] == 1002


def test_whoever_asks_for_every_request_gets_every_request(log: Log) -> None:
    for _ in range(100):
        log.telemetry.emit(finished())
    assert len(log.lines()) == 100


def test_the_memory_of_rates_is_bounded() -> None:
    log = Log()
    for number in range(5000):
        log.telemetry.emit(events.UpstreamNoise(f"server{number}", "noise", ""))
        log.lines()
    log.close()
    assert len(log.telemetry._rates._buckets) <= 1025


@pytest.mark.timeout(10)
def test_a_reader_that_stopped_reading_costs_lines_but_no_time(log: Log) -> None:
    fcntl.fcntl(log._write_end, fcntl.F_SETPIPE_SZ, 8192)
    log.fill()
    for _ in range(50):
        log.telemetry.emit(events.ServerDiscovered("almanac", 5, 1.0))
    log.lines()
    log.telemetry.emit(events.ServerDiscovered("almanac", 5, 1.0))
    log.telemetry.emit(events.ServerDiscovered("almanac", 5, 1.0))
    first, second = log.objects()
    assert first["dropped"] == 50
    assert "dropped" not in second


def test_a_reader_that_went_away_is_no_problem(log: Log) -> None:
    log.hang_up()
    log.telemetry.emit(events.ServerDiscovered("almanac", 5, 1.0))
    assert log.telemetry.counts["ServerDiscovered"] == 1
