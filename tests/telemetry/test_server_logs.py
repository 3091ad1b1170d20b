"""The lines of servers: bounded, masked, and for each server by itself."""

from __future__ import annotations

from pactgate.core.masking import Mask
from pactgate.telemetry.server_logs import MAX_BYTES, MAX_LINES, MAX_SHOWN, ServerLogs
from tests.support.facing import Clock


def logs(clock: Clock | None = None) -> ServerLogs:
    secret = Mask(["first-line-of-a-key-1\nsecond-line-of-a-key-2"])
    return ServerLogs(secret, wall=lambda: 0.0, clock=clock or Clock())


def texts(held: ServerLogs, after: int = 0) -> list[str]:
    return [line["text"] for line in held.read("files", after)["lines"]]


def test_the_last_lines_are_kept_and_given_after_a_number() -> None:
    clock = Clock()
    held = logs(clock)
    for number in range(MAX_LINES + 500):
        clock.now += 1
        held.wrote("files", [b"%d" % number])
    assert texts(held)[-1] == str(MAX_LINES + 499)
    assert len(texts(held)) == MAX_SHOWN
    assert texts(held, MAX_LINES + 499) == [str(MAX_LINES + 499)]
    assert held.read("other", 0)["lines"] == []


def test_bytes_are_bounded_too() -> None:
    clock = Clock()
    held = logs(clock)
    for _ in range(100):
        clock.now += 1
        held.wrote("files", [b"x" * 100_000])
    assert sum(len(text) for text in texts(held)) <= MAX_BYTES


def test_a_flood_is_counted() -> None:
    held = logs()
    held.wrote("files", [b"x"] * 5000)
    page = held.read("files", 0)
    assert (page["last"], page["leftOut"]) == (1000, 4000)


def test_a_secret_of_several_lines_is_masked_in_each() -> None:
    held = logs()
    held.wrote("files", [b"> first-line-of-a-key-1", b"second-line-of-a-key-2 <"])
    assert texts(held) == ["> ***", "*** <"]


def test_log_messages_are_taken_in_any_shape_and_broken_ones_are_left() -> None:
    held = logs()
    for params in (b'{"level":"error","data":"a\\u001bb"}', b'{"level":3,"data":{"x":1}}', b'{"data":', b"[]"):
        held.said("files", params)
    assert texts(held) == ["a\\x1bb", '{"x":1}']
    held.keep_only(())
    assert texts(held) == []
