"""Bad input of every kind against one gateway process: the right code or status, and the next good call works.

The gateway starts once for the whole file and has to be the same after every case: the same children, everything served.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pactgate.protocol.headers import encode_value
from tests.cli.program import Served, write_config
from tests.journeys import bad_messages
from tests.journeys.bad_messages import HEAD_TOO_LONG, TAKEN, BadMessage
from tests.protocol import corpus
from tests.protocol.corpus import ACCEPTED, EITHER, METHOD, Case, Expected, Headers
from tests.support.bad_http import NOT_REQUESTS
from tests.support.each import each
from tests.support.facing import META, initialize, message, modern, modern_call
from tests.support.processes import children_of
from tests.support.raw_http import Answer, RawClient, get, post, request
from tests.support.servers import logged, scripted

LIMIT_S = 1.0
OPTIONS = {"prompts": ["greet"], "resources": ["memo://one"]}
GOOD = modern("tools/call", name="echo", arguments={"text": "still here"})


class Target(NamedTuple):
    """The gateway: where it listens, who it is, who its children are, and what its server received."""

    port: int
    pid: int
    children: list[int]
    log: Path
    session: dict[str, str]

    def calls_received(self) -> int:
        return sum(entry["method"] == "tools/call" for entry in logged(self.log))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("bad-input")
    log = folder / "received.jsonl"
    server = scripted(options={**OPTIONS, "log": str(log)})
    write_config(
        folder, {"files": {"command": server.command, "args": list(server.args)}}, rateLimits={"enabled": False}
    )
    with Served(folder) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        gateway.wait_for("ok +files")
        pid = gateway.process.pid
        yield Target(port, pid, sorted(children_of(pid)), log, {})
        assert gateway.stop() == 0


async def ask(target: Target, wire: bytes) -> Answer:
    """The answer to one request on a connection of its own."""
    async with RawClient(target.port) as client:
        return await client.ask(wire)


async def still_serves(target: Target) -> None:
    """The next good call works, and the gateway has neither lost nor gained a process."""
    answer = await ask(target, GOOD)
    assert answer.status == 200
    assert answer.json["result"]["content"] == [{"type": "text", "text": "still here"}]
    assert sorted(children_of(target.pid)) == target.children


async def session(target: Target) -> dict[str, str]:
    """The headers of a legacy session, opened once."""
    if not target.session:
        answer = await ask(target, post(initialize()))
        target.session["mcp_session_id"] = answer.header("mcp-session-id") or ""
        target.session["mcp_protocol_version"] = answer.json["result"]["protocolVersion"]
    return target.session


def with_headers(body: bytes, headers: Headers) -> bytes:
    """A POST whose headers may come twice."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = (
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    )
    return head.encode() + body


def judge(answer: Answer, expected: Expected) -> None:
    assert answer.status < 500
    if expected == EITHER:
        assert ("result" in answer.json) == (answer.status == 200)
    elif expected == ACCEPTED:
        assert answer.status == 200
        assert "result" in answer.json
    else:
        assert answer.error_code == expected
        assert answer.status == (404 if expected == METHOD else 400)


@pytest.mark.requirement("S4/F1")
@each("case", corpus.ALL)
async def test_a_bad_body_or_header_gets_its_code_and_the_next_call_works(case: Case, target: Target) -> None:
    judge(await ask(target, with_headers(case.body, case.headers)), case.over_http)
    await still_serves(target)


@pytest.mark.requirement("S4/F1")
@each("case", corpus.JSON_TEXT + corpus.KEYS)
async def test_in_a_session_a_bad_text_gets_its_code_too(case: Case, target: Target) -> None:
    """What the text says is judged before its era; whatever gets that far meets a session that has no envelopes."""
    known = await session(target)
    headers = (("Mcp-Session-Id", known["mcp_session_id"]), ("MCP-Protocol-Version", known["mcp_protocol_version"]))
    answer = await ask(target, with_headers(case.body, headers))
    assert answer.status < 500
    if case.expected in (corpus.PARSE, corpus.REQUEST):
        is_array = case.body.startswith(b"[")  # refused unread: this revision has no batches
        assert answer.error_code == (corpus.REQUEST if is_array else case.expected)
        assert answer.status == 400
    assert (await ask(target, post(message("ping"), **known))).json["result"] == {}


@each("bad", bad_messages.ALL)
@each("era", ["legacy", "modern"])
async def test_a_bad_message_gets_its_code_and_reaches_no_server(bad: BadMessage, era: str, target: Target) -> None:
    before = target.calls_received()
    if era == "modern":
        name = bad.params.get("name", bad.params.get("uri"))
        mirrored = {"mcp_protocol_version": corpus.REVISION, "mcp_method": bad.method}
        named = {"mcp_name": encode_value(name)} if isinstance(name, str) else {}
        wire = post(bad_messages.encoded(bad, META), **mirrored, **named)
    else:
        wire = post(bad_messages.encoded(bad, {}), **await session(target))
    judge_message(await ask(target, wire), bad.over(era), era)
    assert target.calls_received() == before
    await still_serves(target)


def judge_message(answer: Answer, expected: bad_messages.Expected, era: str) -> None:
    if expected == TAKEN:
        assert (answer.status, answer.body) == (202, b"")
    elif expected == HEAD_TOO_LONG:
        assert answer.status == 431
    else:
        assert answer.error_code == expected
        assert answer.status == (200 if era == "legacy" else 400)
        assert is_fit_to_show(answer.json["error"]["message"])


def is_fit_to_show(text: str) -> bool:
    """Nothing that a terminal or a reader of logs would take for more than text, and no more of it than a person reads."""
    return text.isprintable() and len(text) < 2000


@pytest.mark.parametrize("name", bad_messages.VERSION_HEADERS)
async def test_a_version_nobody_speaks_is_refused(name: str, target: Target) -> None:
    version = bad_messages.VERSION_HEADERS[name]
    calls: dict[int, bytes] = {
        corpus.HEADER: post(
            modern_call("echo"), mcp_protocol_version=version, mcp_method="tools/call", mcp_name="echo"
        ),
        corpus.PARAMS: post(message("tools/list"), **{**await session(target), "mcp_protocol_version": version}),
    }
    for code, wire in calls.items():
        judge(await ask(target, wire), code)
    meta: dict[str, Any] = {**META, "io.modelcontextprotocol/protocolVersion": version}
    both = post(message("tools/list", {"_meta": meta}), mcp_protocol_version=version, mcp_method="tools/list")
    judge(await ask(target, both), corpus.VERSION)
    await still_serves(target)


@each("case", NOT_REQUESTS)
async def test_what_is_no_request_gets_its_status_and_the_connection_ends(case: str, target: Target) -> None:
    wire, status = NOT_REQUESTS[case]
    async with RawClient(target.port) as client:
        assert (await client.ask(wire)).status == status
        assert await client.rest() == b""
    await still_serves(target)


REFUSED: dict[str, tuple[bytes, int]] = {
    **{f"method {name}": (request(name, "/mcp", {"host": "127.0.0.1"}), 405) for name in ("PUT", "PATCH", "HEAD")},
    "GET without a session": (get("/mcp", accept="text/event-stream"), 405),
    "DELETE without a session": (request("DELETE", "/mcp", {"host": "127.0.0.1"}), 405),
    "foreign preflight": (request("OPTIONS", "/mcp", {"host": "127.0.0.1", "origin": "http://evil.example"}), 403),
    "foreign origin": (modern("tools/list", origin="http://evil.example"), 403),
    "origin null": (modern("tools/list", origin="null"), 403),
    "foreign host": (modern("tools/list", host="evil.example"), 421),
    "no host": (modern("tools/list", host="-"), 400),
    "host with a path": (modern("tools/list", host="127.0.0.1/x"), 400),
    "two hosts": (modern("tools/list").replace(b"host:", b"host: 127.0.0.1\r\nHost:", 1), 400),
    "text/plain": (modern("tools/list", content_type="text/plain"), 415),
    "form": (modern("tools/list", content_type="application/x-www-form-urlencoded"), 415),
    "no content type": (modern("tools/list", content_type="-"), 415),
    "JSON in UTF-16": (modern("tools/list", content_type="application/json; charset=utf-16"), 415),
    "accepts html only": (modern("tools/list", accept="text/html"), 406),
    "path with a dot": (modern("tools/list", "/./mcp"), 404),
    "path encoded": (modern("tools/list", "/%6dcp"), 404),
    "path doubled": (modern("tools/list", "//mcp"), 404),
    "path in capitals": (modern("tools/list", "/MCP"), 404),
    "path with an end": (modern("tools/list", "/mcp/"), 404),
    "server that is none": (modern("tools/list", "/mcp/nobody"), 404),
    "session that is none": (post(message("ping"), mcp_session_id="0" * 32), 404),
    "no session": (post(message("tools/list")), 400),
}


@each("case", REFUSED)
async def test_a_request_that_has_no_place_here_gets_its_status(case: str, target: Target) -> None:
    wire, status = REFUSED[case]
    async with RawClient(target.port) as client:
        await client.send(wire)
        assert (await client.head()).status == status
    await still_serves(target)


@pytest.mark.timing
async def test_all_bad_input_is_answered_within_a_second(target: Target) -> None:
    wires = [with_headers(case.body, case.headers) for case in corpus.ALL]
    wires += [wire for wire, _ in (*NOT_REQUESTS.values(), *REFUSED.values())]
    for wire in wires:
        async with RawClient(target.port) as client:
            started = time.monotonic()
            await client.send(wire)
            await client.head()
            assert time.monotonic() - started < LIMIT_S, wire[:500]


@pytest.mark.parametrize("header", ["upgrade", "http2-settings"])
async def test_an_offer_to_switch_protocols_is_passed_over(header: str, target: Target) -> None:
    offers = {"upgrade": {"upgrade": "websocket", "connection": "upgrade"}, "http2-settings": {"upgrade": "h2c"}}
    assert (await ask(target, modern("tools/list", **offers[header]))).status == 200
    await still_serves(target)


async def test_twenty_requests_sent_ahead_are_answered_in_order(target: Target) -> None:
    wires = [post(json.dumps(modern_call("echo", {"text": str(n)}, n)).encode(), **echoing()) for n in range(20)]
    async with RawClient(target.port) as client:
        await client.send(b"".join(wires))
        answers = [await client.answer() for _ in wires]
    assert [answer.json["id"] for answer in answers] == list(range(20))


def echoing() -> dict[str, str]:
    return {"mcp_protocol_version": corpus.REVISION, "mcp_method": "tools/call", "mcp_name": "echo"}
