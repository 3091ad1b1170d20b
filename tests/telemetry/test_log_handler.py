"""The log lines of a serving process: what is written, what never is, and that writing never waits."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core import events
from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.masking import Mask
from pactgate.telemetry.log import LOGGER, EventLogger, level_of
from pactgate.telemetry.log_handler import MAX_LINE_BYTES, LineHandler
from tests.support.each import each
from tests.telemetry.every_event import EVERY_EVENT, finished

NOON = 1_800_000_000.0


class Log:
    """The log of a serving process, written into a pipe, and what came out of it."""

    def __init__(
        self,
        *,
        level: int = logging.INFO,
        as_json: bool = True,
        secrets: list[str] | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.now = 0.0
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self.logger = EventLogger(Mask(secrets or ()), clock=lambda: self.now)
        handler = LineHandler(self._write_end, as_json=as_json, hidden=hidden)
        handler.addFilter(_at_noon)
        handler.install(level)
        self._handler = handler

    def emit(self, event: Event) -> None:
        self.logger.emit(event)

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
        LOGGER.removeHandler(self._handler)
        LOGGER.setLevel(logging.NOTSET)
        LOGGER.propagate = True
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


def _at_noon(record: logging.LogRecord) -> bool:
    record.created = NOON
    return True


@pytest.fixture
def open_log() -> Iterator[Callable[..., Log]]:
    opened: list[Log] = []

    def open_one(**options: Any) -> Log:
        opened.append(Log(**options))
        return opened[-1]

    yield open_one
    for log in opened:
        log.close()


@pytest.fixture
def log(open_log: Callable[..., Log]) -> Log:
    return open_log(level=logging.DEBUG)


@each("event", EVERY_EVENT)
@each("as_json", [True, False])
def test_every_event_becomes_a_line(open_log: Callable[..., Log], event: Event, as_json: bool) -> None:
    log = open_log(level=logging.DEBUG, as_json=as_json)
    log.emit(event)
    first, *more = log.lines()
    if as_json:
        line = json.loads(first)
        assert (line["time"], line["event"]) == ("2027-01-15T08:00:00.000Z", type(event).__name__)
        assert line["level"] == logging.getLevelName(level_of(event)).lower()
        assert more == []
    else:
        assert logging.getLevelName(level_of(event)).encode() in first
        assert bool(more) == isinstance(event, events.InternalFailure)


def test_people_see_the_beginning_of_a_request_id(open_log: Callable[..., Log]) -> None:
    id_ = "0248e0a6-3af6-4db4-8d33-d87a7cab4540"
    log = open_log(as_json=False)
    log.emit(events.EffectsExceeded("files", "files.read", id_, ("network",)))
    (line,) = log.lines()
    assert line.endswith(b"request 0248e0a6")


def test_a_finished_request_is_logged_with_its_record_flat(log: Log) -> None:
    log.emit(finished(GatewayFailure(Kind.CALL_TIMEOUT, "too slow", server="almanac")))
    (line,) = log.objects()
    assert (line["level"], line["outcome"], line["tool"]) == ("warning", "timeout", "almanac.date_facts")
    assert (line["duration_ms"], line["failure"]["verdict"]) == (1.235, "may_have_run")


def test_events_below_the_level_and_hidden_events_are_not_written(open_log: Callable[..., Log]) -> None:
    log = open_log(level=logging.WARNING, hidden=frozenset({"ServerFailed"}))
    for event in EVERY_EVENT:
        log.emit(event)
    written = [line["event"] for line in log.objects()]
    assert written == [
        "ServerDisconnected",
        "ServerHung",
        "OutputMismatched",
        "DiscoveryFailed",
        "ConfigurationRefused",
        "ToolChanged",
        "DefinitionsDiffered",
        "EffectsExceeded",
        "CodeReplaced",
        "ToolReported",
        "PermissionUndecided",
        "CacheFailed",
        "StoreFailed",
        "ReplicaVanished",
        "ConnectionsClosed",
        "CaptureFailed",
        "ConfigurationRestored",
        "AuditFailed",
        "AuditRecovered",
        "UpstreamNoise",
        "CompositionHazard",
        "ExportFailed",
        "RequestRefused",
        "HandshakeFailed",
        "CredentialsRefused",
        "InternalFailure",
    ]


@pytest.mark.parametrize("as_json", [True, False])
def test_a_secret_of_the_configuration_is_in_no_line(open_log: Callable[..., Log], as_json: bool) -> None:
    secret = 'tok"en\n-value-1234'
    log = open_log(level=logging.DEBUG, as_json=as_json, secrets=[secret, "plain-secret"])
    failure = GatewayFailure(Kind.UPSTREAM_ERROR, "no", details={"headers": {"plain-secret": ["Bearer plain-secret"]}})
    log.emit(events.ServerFailed("crm", 1, f"401 for {secret} and plain-secret", "MCP_ECO_CONNECTION_FAILED"))
    log.emit(events.InternalFailure("r", "w", secret, "x" * 20_000 + secret + "plain-secret"))
    log.emit(finished(failure))
    text = b"\n".join(log.lines())
    assert b"***" in text
    assert b"-value-1234" not in text
    assert b"plain-secret" not in text


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30_000), st.booleans())
def test_a_line_is_bounded_and_free_of_control_characters(text: str, as_json: bool) -> None:
    log = Log(level=logging.DEBUG, as_json=as_json)
    log.emit(events.UpstreamNoise(text, text, text))
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
    log.emit(finished(GatewayFailure(Kind.UPSTREAM_ERROR, "no", details=details)))
    (line,) = log.objects()
    assert line["event"] == "RequestFinished"
    assert "cut" in line


def test_events_that_outsiders_can_provoke_are_rate_limited_and_the_suppressed_ones_counted(
    open_log: Callable[..., Log],
) -> None:
    log = open_log()
    for _ in range(1000):
        log.emit(events.UpstreamNoise("loud", "noise", ""))
    log.emit(events.UpstreamNoise("quiet", "noise", ""))
    written = log.objects()
    assert [line["server"] for line in written] == ["loud"] * 20 + ["quiet"]
    log.now += 1
    log.emit(events.UpstreamNoise("loud", "noise", ""))
    (line,) = log.objects()
    assert line["suppressed"] == 980


def test_whoever_asks_for_every_request_gets_every_request(log: Log) -> None:
    for _ in range(100):
        log.emit(finished())
    assert len(log.lines()) == 100


def test_the_memory_of_rates_is_bounded(log: Log) -> None:
    for number in range(5000):
        log.emit(events.UpstreamNoise(f"server{number}", "noise", ""))
        log.lines()
    assert len(log.logger._rates._buckets) <= 1025


@pytest.mark.timeout(10)
def test_a_reader_that_stopped_reading_costs_lines_but_no_time(log: Log) -> None:
    fcntl.fcntl(log._write_end, fcntl.F_SETPIPE_SZ, 8192)
    log.fill()
    for _ in range(50):
        log.emit(events.ServerDiscovered("almanac", 5, 1.0))
    log.lines()
    log.emit(events.ServerDiscovered("almanac", 5, 1.0))
    log.emit(events.ServerDiscovered("almanac", 5, 1.0))
    first, second = log.objects()
    assert first["dropped"] == 50
    assert "dropped" not in second


def test_a_reader_that_went_away_is_no_problem(log: Log) -> None:
    log.hang_up()
    log.emit(events.ServerDiscovered("almanac", 5, 1.0))


@pytest.mark.parametrize("as_json", [True, False])
def test_a_record_of_other_code_on_the_logger_is_written_within_the_same_bounds(
    open_log: Callable[..., Log], as_json: bool
) -> None:
    log = open_log(as_json=as_json)
    logging.getLogger("pactgate.other").warning("odd \x1b[2J %s", "x" * 10_000)
    (line,) = log.lines()
    assert len(line) < MAX_LINE_BYTES
    assert b"\x1b" not in line
    assert b"odd" in line
