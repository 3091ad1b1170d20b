"""Several workers, as people start them: real processes, real sockets, and the promises of one gateway kept by all of them together."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pactgate.audit.verify import files_of, verify
from pactgate.workers.homes import home_of
from tests.cli.program import Served, run, scripted, write_config
from tests.support.facing import META, call, initialize, message, modern, notification
from tests.support.processes import command_line, descendants_of
from tests.support.raw_http import WAIT_S, Answer, RawClient, get, post
from tests.support.servers import logged

pytestmark = pytest.mark.timeout(60)

NAMES = [
    next(name for name in ("ann", "bob", "cid", "dan", "eve", "fay") if home_of(name, 2) == home) for home in (0, 1)
]
"""One caller of each worker."""
TOKENS = {name: f"0123456789-{name}-token" for name in NAMES}
SERVER = "stdio_upstream.py"
CHANGING = Path(__file__).parents[1] / "support" / "changing_server.py"


def bearer(name: str) -> str:
    return f"Bearer {TOKENS[name]}"


def tokens() -> dict[str, Any]:
    return {"tokens": {name: {"token": token, "roles": ["admin"]} for name, token in TOKENS.items()}}


class Crew:
    """A served gateway of two workers."""

    def __init__(self, served: Served, log: Path) -> None:
        self.served = served
        self.log = log
        self.port = int(served.url.rpartition(":")[2])

    async def ask(self, data: bytes) -> Answer:
        """On a connection of its own, which either worker may accept."""
        async with RawClient(self.port) as client:
            return await client.ask(data)

    async def call(self, who: str, tool: str, **arguments: Any) -> dict[str, Any]:
        data = modern("tools/call", name=tool, arguments=arguments, authorization=bearer(who))
        answer = await self.ask(data)
        told: dict[str, Any] = answer.json
        return told

    async def session(self, who: str) -> dict[str, str]:
        answer = await self.ask(post(initialize(), authorization=bearer(who)))
        session = answer.header("mcp-session-id")
        assert session is not None
        headers = {"authorization": bearer(who), "mcp_session_id": session}
        await self.ask(post(notification("notifications/initialized"), **headers))
        return headers

    def workers(self) -> list[int]:
        return [pid for pid in descendants_of(self.served.process.pid) if "pactgate.cli.worker" in command_line(pid)]

    def children(self) -> list[int]:
        return [pid for pid in descendants_of(self.served.process.pid) if SERVER in command_line(pid)]

    def served_by(self, who: str) -> set[int]:
        """The workers that have answered this caller's requests."""
        lines = [line for line in self.served.log_lines() if line["event"] == "RequestFinished"]
        return {line["worker"] for line in lines if line["subject"] == who}


def text_of(told: dict[str, Any]) -> str:
    text: str = told["result"]["content"][0]["text"]
    return text


async def until(condition: Any) -> None:
    """Look now and then at what other processes do, at most a bounded time."""
    async with asyncio.timeout(2 * WAIT_S):
        while not condition():
            await asyncio.to_thread(select.select, [], [], [], 0.01)


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    folder = tmp_path_factory.mktemp("crew")
    log = folder / "upstream.jsonl"
    write_config(
        folder,
        {"files": scripted(log=str(log), resources=["memo:a"])},
        auth=tokens(),
        rateLimits={"tools": {"files.refuse": {"rpm": 5, "burst": 5}, "files.*": {"rpm": 10000, "burst": 1000}}},
        cache={"tools": {"files.wire": {}}},
        audit={"file": "audit.jsonl"},
    )
    with Served(folder, "--workers", "2", "--log-level", "debug") as served:
        yield Crew(served, log)


async def test_each_caller_has_one_worker_and_keeps_its_session_whichever_worker_accepts_the_connection(
    crew: Crew,
) -> None:
    sessions = {name: await crew.session(name) for name in NAMES}
    for _ in range(8):
        for name, headers in sessions.items():
            answer = await crew.ask(post(message("tools/list"), **headers))
            assert answer.status == 200, (name, answer.body)
    assert [crew.served_by(name) for name in NAMES] == [{1}, {2}]
    stranger = await crew.ask(post(message("tools/list"), **{**sessions[NAMES[0]], "authorization": bearer(NAMES[1])}))
    assert stranger.status == 404


async def test_what_a_session_is_told_comes_on_its_stream_whichever_connection_that_is(crew: Crew) -> None:
    for name in NAMES:
        headers = await crew.session(name)
        async with RawClient(crew.port) as stream:
            await stream.send(get("/mcp", accept="text/event-stream", **headers))
            assert (await stream.head()).status == 200
            told = await crew.ask(post(call("files__change", {"name": f"new-{name}"}), **headers))
            assert told.status == 200
            event = await stream.event()
            assert event is not None
            assert json.loads(event.data)["method"] == "notifications/tools/list_changed"


async def test_a_connection_that_changes_its_caller_changes_its_worker(crew: Crew) -> None:
    async with RawClient(crew.port) as client:
        for _ in range(3):
            for name in NAMES:
                data = modern("tools/call", name="files__echo", arguments={"text": name}, authorization=bearer(name))
                assert text_of((await client.ask(data)).json) == name


async def test_a_large_request_in_pieces_finds_its_worker_too(crew: Crew) -> None:
    text = "x" * 90_000
    for name in NAMES:
        data = modern("tools/call", name="files__echo", arguments={"text": text}, authorization=bearer(name))
        for cut in (10, 400, len(data) - 5):
            async with RawClient(crew.port) as client:
                await client.send(data[:cut])
                await client.send(data[cut:])
                assert text_of((await client.answer()).json) == text


async def test_a_rate_limit_is_exact_over_many_connections(crew: Crew) -> None:
    for name in NAMES:
        told = await asyncio.gather(*(crew.call(name, "files__refuse", code=-32050) for _ in range(20)))
        limited = [one for one in told if "RATE_LIMITED" in json.dumps(one)]
        assert len(limited) == 15


async def test_the_workers_share_one_child_and_each_caller_hears_its_own_progress(crew: Crew) -> None:
    pids = {text_of(await crew.call(name, "files__pid")) for name in NAMES}
    assert pids == {str(pid) for pid in crew.children()}
    assert len(pids) == 1

    async def hear(name: str, count: int) -> list[Any]:
        params = {
            "name": "files__progress",
            "arguments": {"n": count},
            "_meta": {**META, "progressToken": "the same"},
        }
        headers = {"mcp_protocol_version": META["io.modelcontextprotocol/protocolVersion"], "mcp_method": "tools/call"}
        async with RawClient(crew.port) as client:
            body = post(
                message("tools/call", params), mcp_name="files__progress", authorization=bearer(name), **headers
            )
            await client.send(body)
            assert (await client.head()).status == 200
            heard = []
            while (event := await client.event()) is not None:
                heard.append(json.loads(event.data))
            return heard

    for _ in range(3):
        heard = await asyncio.gather(hear(NAMES[0], 3), hear(NAMES[1], 5))
        for events, count in zip(heard, (3, 5), strict=True):
            told = [one["params"] for one in events if one.get("method") == "notifications/progress"]
            assert [one["progress"] for one in told] == list(range(1, count + 1))
            assert {one["progressToken"] for one in told} == {"the same"}
            assert "result" in events[-1]


async def test_a_call_given_up_is_cancelled_at_the_child_and_no_other(crew: Crew) -> None:
    kept = asyncio.create_task(crew.call(NAMES[0], "files__slow", ms=1500))
    async with RawClient(crew.port) as client:
        slow = modern("tools/call", name="files__slow", arguments={"ms": 60000}, authorization=bearer(NAMES[1]))
        await client.send(slow)
        await until(lambda: any(_ms(line) == 60000 for line in logged(crew.log)))
    await until(lambda: "notifications/cancelled" in [line["method"] for line in logged(crew.log)])
    lines = logged(crew.log)
    [given_up] = [line["id"] for line in lines if _ms(line) == 60000]
    cancelled = [line["params"]["requestId"] for line in lines if line["method"] == "notifications/cancelled"]
    assert cancelled == [given_up]
    assert text_of(await kept) == "slow"


def _ms(line: dict[str, Any]) -> Any:
    return (line["params"].get("arguments") or {}).get("ms")


async def test_what_one_caller_writes_no_other_reads_from_before(crew: Crew) -> None:
    reader, writer = NAMES
    before = text_of(await crew.call(reader, "files__wire"))
    assert text_of(await crew.call(reader, "files__wire")) == before
    for _ in range(5):
        await crew.call(writer, "files__echo", text="written")
        after = text_of(await crew.call(reader, "files__wire"))
        assert after != before
        assert text_of(await crew.call(reader, "files__wire")) == after
        before = after


async def test_a_changed_setting_holds_in_every_worker_and_in_one_that_starts_later(crew: Crew) -> None:
    changer, other = NAMES
    made = await crew.call(changer, "pactgate__config_set", path="limits.maxArraySize", value=77)
    revision = made["result"]["structuredContent"]["revision"]
    for name in NAMES:
        seen = (await crew.call(name, "pactgate__config_get", path="limits.maxArraySize"))["result"][
            "structuredContent"
        ]
        assert (seen["value"], seen["revision"], seen["unwritten"]) == (77, revision, True)
    back = await crew.call(
        other, "pactgate__config_set", path="limits.maxArraySize", value=78, expectedRevision="stale"
    )
    assert "CONFLICT" in json.dumps(back)
    await kill_worker(crew, NAMES.index(other))
    seen = (await crew.call(other, "pactgate__config_get", path="limits.maxArraySize"))["result"]["structuredContent"]
    assert (seen["value"], seen["revision"], seen["unwritten"]) == (77, revision, True)


async def kill_worker(crew: Crew, index: int) -> None:
    """Kill one worker and wait until another has taken its place."""
    started = [line for line in crew.served.log_lines() if line["event"] == "WorkerStarted"]
    pid = next(line["pid"] for line in reversed(started) if line["worker"] == index + 1)
    os.kill(pid, signal.SIGKILL)

    def is_back() -> bool:
        lines = crew.served.log_lines()
        return sum(line["event"] == "WorkerStarted" for line in lines) > len(started)

    await until(is_back)
    async with asyncio.timeout(WAIT_S):
        while (await crew.ask(modern("tools/list", authorization=bearer(NAMES[index])))).status == 503:
            await asyncio.sleep(0)


async def test_a_killed_worker_costs_only_its_own_callers_their_sessions_and_comes_back(crew: Crew) -> None:
    undisturbed, disturbed = NAMES
    sessions = {name: await crew.session(name) for name in NAMES}
    slow = asyncio.create_task(crew.call(undisturbed, "files__slow", ms=1000))
    children = crew.children()
    await kill_worker(crew, 1)
    assert text_of(await slow) == "slow"
    answer = await crew.ask(post(message("tools/list"), **sessions[undisturbed]))
    assert answer.status == 200
    lost = await crew.ask(post(message("tools/list"), **sessions[disturbed]))
    assert lost.status == 404
    again = await crew.session(disturbed)
    assert (await crew.ask(post(message("tools/list"), **again))).status == 200
    assert crew.children() == children, "the child lives on"
    [ended] = [line for line in crew.served.log_lines() if line["event"] == "WorkerEnded"][-1:]
    assert (ended["worker"], ended["reason"]) == (2, "was ended by SIGKILL")


async def test_a_child_that_dies_is_started_again_once_for_all(crew: Crew) -> None:
    [before] = crew.children()
    assert "exit code 7" in text_of(await crew.call(NAMES[0], "files__crash"))
    pids = {text_of(await crew.call(name, "files__pid")) for name in NAMES}
    assert pids == {str(pid) for pid in crew.children()}
    assert len(pids) == 1
    assert str(before) not in pids


async def test_numbers_and_stories_are_those_of_all_workers(crew: Crew) -> None:
    for name in NAMES:
        await crew.call(name, "files__echo", text="counted")
    for name in NAMES:
        headers = {"authorization": bearer(name)}
        async with RawClient(crew.port) as client:
            text = (await client.ask(get("/metrics", **headers))).body.decode()
            assert "pactgate_workers 2\n" in text
            calls = (await client.ask(get("/api/calls", **headers))).json["calls"]
            assert {row["subject"] for row in calls} == set(NAMES)
            for row in (calls[0], calls[1]):
                story = (await client.ask(get(f"/api/calls/{row['requestId']}", **headers))).json
                assert story["subject"] == row["subject"]
                told = await crew.call(name, "pactgate__explain", requestId=row["requestId"])
                assert told["result"]["structuredContent"]["story"]["subject"] == row["subject"]
    total = sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("pactgate_tool_calls_total") and 'server="files"' in line
    )
    async with RawClient(crew.port) as client:
        status = (await client.ask(get("/api/status", authorization=bearer(NAMES[0])))).json
    assert status["calls"]["total"] >= total > 20


async def test_the_official_client_works_with_either_worker(crew: Crew) -> None:
    for name in NAMES:
        async with httpx2.AsyncClient(headers={"authorization": bearer(name)}) as http:
            target = streamable_http_client(f"http://127.0.0.1:{crew.port}/mcp", http_client=http)
            async with Client(target, read_timeout_seconds=WAIT_S) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert "files__echo" in names
                done = await client.call_tool("files__echo", {"text": name})
                assert done.content[0].text == name


def test_each_worker_has_an_audit_log_of_its_own_that_verifies(crew: Crew) -> None:
    for number in (1, 2):
        report = verify(files_of(crew.served.folder / f"audit.worker{number}.jsonl"))
        assert report.is_valid, report
        assert report.calls
    done = run(crew.served.folder, "audit", "verify")
    assert "name one: audit.worker1.jsonl, audit.worker2.jsonl" in done.stderr


@pytest.mark.parametrize("is_told_to_all", [False, True], ids=["the owner is told", "every process is told"])
async def test_asked_to_stop_every_worker_finishes_what_it_does(tmp_path: Path, is_told_to_all: bool) -> None:
    write_config(tmp_path, {"files": scripted()}, auth=tokens())
    with Served(tmp_path, "--workers", "2") as served:
        crew = Crew(served, tmp_path / "none")
        slow = [asyncio.create_task(crew.call(name, "files__slow", ms=600)) for name in NAMES]
        for name in NAMES:
            await crew.call(name, "files__pid")
        everybody = descendants_of(served.process.pid)
        workers = crew.workers()
        served.process.send_signal(signal.SIGTERM)
        for pid in workers if is_told_to_all else ():
            os.kill(pid, signal.SIGTERM)
        code = await asyncio.to_thread(served.process.wait, 2 * WAIT_S)
        assert [text_of(await one) for one in slow] == ["slow", "slow"]
        assert code == 0
        assert [pid for pid in everybody if command_line(pid)] == []


def test_workers_end_with_their_owner_however_it_ends(tmp_path: Path) -> None:
    write_config(tmp_path, {"files": scripted()})
    with Served(tmp_path, "--workers", "2") as served:
        served.wait_for("ok    files")
        everybody = descendants_of(served.process.pid)
        assert len(everybody) >= 3
        served.process.kill()
        deadline = time.monotonic() + 2 * WAIT_S
        while any(command_line(pid) for pid in everybody):
            assert time.monotonic() < deadline, [command_line(pid) for pid in everybody]
            select.select([], [], [], 0.01)


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (("--workers", "0"), {}, "--workers takes a number from 1 to 64"),
        (("--workers", "2", "--stdio"), {}, "--workers does not go with --stdio"),
        (("--workers", "4"), {"limits": {"maxInFlightPerServer": 3}}, "limits.maxInFlightPerServer is 3"),
    ],
)
def test_what_workers_can_t_keep_is_refused_at_the_start(
    tmp_path: Path, words: tuple[str, ...], settings: dict[str, Any], said: str
) -> None:
    write_config(tmp_path, {"files": scripted()}, **settings)
    done = run(tmp_path, "serve", *words)
    assert done.returncode == 2
    assert said in done.stderr


async def test_a_changed_file_is_taken_over_by_every_worker_and_told_once(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"files": scripted()}, auth=tokens())
    with Served(tmp_path, "--workers", "2") as served:
        crew = Crew(served, tmp_path / "none")
        for name in NAMES:
            await crew.call(name, "files__pid")
        before = crew.children()
        write_config(tmp_path, {"files": scripted(), "more": scripted(tools=["extra"])}, auth=tokens())
        served.process.send_signal(signal.SIGHUP)
        await until(lambda: any(line["event"] == "ConfigurationReloaded" for line in served.log_lines()))
        for name in NAMES:
            assert text_of(await crew.call(name, "more__echo", text=name)) == name
        assert set(before) < set(crew.children())
        assert len(crew.children()) == 2
        gone = await crew.call(NAMES[1], "pactgate__server_disable", serverId="more", persist=True)
        assert gone["result"]["structuredContent"]["enabled"] is False
        assert crew.children() == before
        assert json.loads(path.read_text())["mcpServers"]["more"]["enabled"] is False
        path.write_text("{ this is no configuration")
        served.process.send_signal(signal.SIGHUP)
        await until(lambda: any(line["event"] == "ConfigurationRefused" for line in served.log_lines()))
        await kill_worker(crew, 0)
        assert "No tool" in (await crew.call(NAMES[0], "more__echo", text="late"))["error"]["message"]
        assert text_of(await crew.call(NAMES[0], "files__echo", text="on")) == "on"
        assert sum(line["event"] == "ConfigurationReloaded" for line in served.log_lines()) == 1


def test_a_worker_that_can_t_start_is_a_gateway_that_can_t(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    write_config(tmp_path, {"files": scripted()}, audit={"file": "taken/no/audit.jsonl"})
    done = run(tmp_path, "serve", "--port", "0", "--workers", "2")
    assert done.returncode == 1
    assert "The audit log" in done.stderr
    assert "can't be used" in done.stderr


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_a_shared_child_says_of_its_lists_and_resources_reaches_the_callers_of_every_worker(
    tmp_path: Path, era: str
) -> None:
    write_config(tmp_path, {"files": {"command": sys.executable, "args": [str(CHANGING), era]}}, auth=tokens())
    with Served(tmp_path, "--workers", "2") as served:
        crew = Crew(served, tmp_path / "none")
        streams, sessions = {}, {}
        async with AsyncExitStack() as stack:
            for name in NAMES:
                sessions[name] = await crew.session(name)
                stream = streams[name] = await stack.enter_async_context(RawClient(crew.port))
                await stream.send(get("/mcp", accept="text/event-stream", **sessions[name]))
                assert (await stream.head()).status == 200
                subscribed = await crew.ask(post(message("resources/subscribe", {"uri": "data://a"}), **sessions[name]))
                assert "result" in subscribed.json, subscribed.json
            await crew.call(NAMES[0], "files__touch", uri="data://a")
            for stream in streams.values():
                await heard_on(stream, "notifications/resources/updated")
            await crew.ask(post(message("resources/unsubscribe", {"uri": "data://a"}), **sessions[NAMES[0]]))
            await crew.call(NAMES[0], "files__touch", uri="data://a")
            await heard_on(streams[NAMES[1]], "notifications/resources/updated")
            await crew.call(NAMES[1], "files__add", name="fresh")
            for stream in streams.values():
                await heard_on(stream, "notifications/tools/list_changed")
        assert len([pid for pid in descendants_of(served.process.pid) if CHANGING.name in command_line(pid)]) == 1


async def heard_on(stream: RawClient, method: str) -> None:
    """Wait for it; a worker may have been told of lists before, as it came to know them."""
    async with asyncio.timeout(10):
        while (event := await stream.event()) is not None:
            if json.loads(event.data)["method"] == method:
                return
    raise AssertionError("the stream has ended")
