"""The recorder that also tells a probe what passed."""

from __future__ import annotations

import asyncio

from pactgate.conformance.probe_recorder import PADDING, ProbeRecorder
from tests.capture.taps import Noted


async def test_it_passes_everything_on_and_tells_of_an_answer_by_its_id() -> None:
    inner = Noted()
    recorder = ProbeRecorder(inner)
    waiting = asyncio.create_task(recorder.answered("a"))
    await asyncio.sleep(0)
    for text in (b"noise", b'{"id": "b", "result": {}}', b'{"id": 7, "result": {}}'):
        recorder.passed(text, from_client=False)
    recorder.passed(b'{"id": "a"}', from_client=True)
    await asyncio.sleep(0)
    assert not waiting.done()
    recorder.passed(b'{"id": "a", "result": {}}', from_client=False)
    await asyncio.wait_for(waiting, 1)
    recorder.closed()
    assert len(inner.passed_texts) == 5
    assert inner.is_closed


def test_the_session_id_is_that_of_the_first_response() -> None:
    recorder = ProbeRecorder(Noted())
    for number, headers in enumerate(({}, {b"mcp-session-id": b"one"}, {b"mcp-session-id": b"two"})):
        exchange = recorder.requested("POST", "", b"", b"{}")
        if number % 2:
            exchange.streaming(200, headers)
            exchange.events(b"data: {}\n\n")
            exchange.ended(by_client=False)
        else:
            exchange.answered(200, headers, b"")
    assert recorder.session_id == "one"


def test_the_padding_of_a_large_body_is_not_recorded() -> None:
    inner = Noted()
    ProbeRecorder(inner).requested("POST", "", b"", b'{"x":"' + PADDING + b'"}')
    assert [hop.body for hop in inner.hops] == [b'{"x":"(5 MiB)"}']
