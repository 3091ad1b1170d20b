"""Events as records of the logger `pactgate`."""

from __future__ import annotations

import logging

import pytest
from msgspec import Raw

from pactgate.core import events
from pactgate.core.events import Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.masking import Mask
from pactgate.telemetry.log import LINES, LOGGER, EventLogger, level_of
from tests.telemetry.every_event import EVERY_EVENT, finished


def test_every_event_there_is_has_a_level_and_a_sentence() -> None:
    known = {type(event) for event in EVERY_EVENT}
    assert set(Event.__subclasses__()) == known
    assert set(LINES) == known


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (finished(), logging.DEBUG),
        (events.CompositionHazard("uri_overlap", "x:y", ("a", "b"), "Both list x:y.", "hazard"), logging.WARNING),
        (events.CompositionHazard("uri_overlap", "x:y", ("a", "b"), "Both list x:y.", "note"), logging.INFO),
        (finished(outcome="tool_error"), logging.INFO),
        (finished(GatewayFailure(Kind.UNKNOWN_TOOL, "which?")), logging.INFO),
        (finished(GatewayFailure(Kind.CONNECTION_LOST, "gone")), logging.WARNING),
        (finished(GatewayFailure(Kind.INTERNAL, "oh")), logging.ERROR),
    ],
)
def test_the_level_of_a_request_follows_who_has_to_act(event: events.RequestFinished, level: int) -> None:
    assert level_of(event) == level


def test_an_embedder_gets_records_through_its_own_handlers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="pactgate")
    logger = EventLogger(Mask(["plain-secret"]))
    logger.emit(events.ServerDiscovered("almanac", 5, 1.0))
    logger.emit(events.ServerFailed("almanac", 1, "401 for plain-secret \x1b[2J", "MCP_ECO_CONNECTION_FAILED"))
    logger.emit(events.InternalFailure("r1", "kernel", "KeyError('x')", "Traceback\nKeyError: 'x'"))
    logger.emit(events.ServerConnecting("almanac", 1))
    first, second, third = caplog.records
    assert (first.name, first.levelname, first.getMessage()) == ("pactgate", "INFO", "almanac: 5 tools")
    assert (
        second.getMessage()
        == "almanac: no connection after 1 attempts: 401 for *** \\x1b[2J (MCP_ECO_CONNECTION_FAILED)"
    )
    assert logging.Formatter().format(third).endswith("KeyError: 'x'")
    assert third.__dict__["event"] == "InternalFailure"


def test_for_an_embedder_no_handler_that_writes_is_installed() -> None:
    assert [type(handler) for handler in LOGGER.handlers] == [logging.NullHandler]
    assert (LOGGER.level, LOGGER.propagate) == (logging.NOTSET, True)


def test_a_failure_that_repeats_is_one_line_and_then_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="pactgate")
    logger = EventLogger(Mask([]))
    for _ in range(5):
        logger.emit(events.ServerFailed("almanac", 4, "refused", "MCP_ECO_CONNECTION_FAILED"))
        logger.emit(events.DiscoveryFailed("notes", "too slow"))
    logger.emit(events.ServerFailed("almanac", 1, "no such host", "MCP_ECO_CONNECTION_FAILED"))
    logger.emit(events.ServerFailed("almanac", 1, "no such host", "MCP_ECO_CONNECTION_FAILED"))
    logger.emit(events.ServerDiscovered("almanac", 5, 1.0))
    logger.emit(events.ServerFailed("almanac", 1, "no such host", "MCP_ECO_CONNECTION_FAILED"))
    assert [record.getMessage() for record in caplog.records] == [
        "almanac: no connection after 4 attempts: refused (MCP_ECO_CONNECTION_FAILED)",
        "notes: listing failed: too slow",
        "almanac: no connection after 1 attempts: no such host (MCP_ECO_CONNECTION_FAILED) (the failure before came 4 more times)",
        "almanac: 5 tools (the failure before came 1 more times)",
        "almanac: no connection after 1 attempts: no such host (MCP_ECO_CONNECTION_FAILED)",
    ]


def test_a_failure_after_a_success_that_the_level_hides_is_a_line_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="pactgate")
    logger = EventLogger(Mask([]))
    for _ in range(2):
        logger.emit(events.ServerFailed("almanac", 4, "refused", "MCP_ECO_CONNECTION_FAILED"))
        logger.emit(events.ServerDiscovered("almanac", 5, 1.0))
    assert len(caplog.records) == 2


def test_json_of_a_server_is_shown_as_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="pactgate")
    said = {
        "data": Raw(b'{"why":"no \\u0070lain-secret"}'),
        "broken": Raw(b"{"),
        "large": Raw(b"[%b1]" % (b"1," * 50_000)),
    }
    EventLogger(Mask(["plain-secret"])).emit(
        finished(GatewayFailure(Kind.UPSTREAM_ERROR, "no", details={"said": said}))
    )
    shown = caplog.records[0].__dict__["facts"]["failure"]["said"]
    assert shown == {"data": {"why": "no ***"}, "broken": "1 bytes that are not JSON", "large": "JSON of 100003 bytes"}
