"""One server's life, with real child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from pactgate.catalog.backoff import Backoff
from pactgate.catalog.server_row import server_row
from pactgate.catalog.supervisor import MAX_HISTORY, Supervisor
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Event, ServerConnecting, ServerFailed
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.values import ServerStatus
from pactgate.upstreams.dialer import Dialer
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.process.child_reaper import ChildReaper
from tests.support.eventually import eventually
from tests.support.processes import running_children
from tests.support.servers import methods, scripted

QUICK = Backoff(first_s=0.02, cap_s=0.05, after_giving_up_s=0.05, between_lists_s=0.05, steady_s=10)


class Watched:
    """A supervisor with everything it said; `until` waits for a state of the world."""

    def __init__(self, config: ServerConfig, backoff: Backoff) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Event()
        self.child_reaper, self.client = ChildReaper(), HttpClient()
        dialer = Dialer(
            config,
            client=self.client,
            child_reaper=self.child_reaper,
            emit=self._hear,
            client_info={"name": "tests", "version": "0"},
            max_frame_bytes=2**20,
        )
        self.supervisor = Supervisor(config, dialer, self._news.set, self._hear, backoff=backoff)

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():
                self._news.clear()
                await self._news.wait()

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


@asynccontextmanager
async def running(config: ServerConfig, backoff: Backoff = QUICK) -> AsyncIterator[Watched]:
    watched = Watched(config, backoff)
    watched.supervisor.start()
    try:
        yield watched
    finally:
        await watched.supervisor.stop()
        await watched.client.close()
        await watched.child_reaper.close()


@pytest.mark.requirement("S0/ECO-101")
async def test_an_always_failing_server_is_tried_max_retries_plus_one_times_and_the_error_says_so(
    tmp_path: Path,
) -> None:
    options = {"fail_first": {"file": str(tmp_path / "starts"), "times": 1000}}
    config = scripted(options=options, max_retries=3, era="legacy")
    async with running(config, Backoff(first_s=0.01, cap_s=0.02, after_giving_up_s=60)) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        row = server_row(watched.supervisor)
    assert (tmp_path / "starts").stat().st_size == 4
    assert (row["status"], row["attempts"]) == ("error", 4)
    assert "4 attempts" in row["lastError"]


@pytest.mark.requirement("S0/ECO-101")
async def test_a_server_that_works_at_the_third_attempt_is_connected_without_error(tmp_path: Path) -> None:
    options = {"fail_first": {"file": str(tmp_path / "starts"), "times": 2}}
    async with running(scripted(options=options, max_retries=3, era="legacy")) as watched:
        await watched.until(lambda: watched.supervisor.status is ServerStatus.CONNECTED)
        row = server_row(watched.supervisor)
    assert (row["attempts"], row["lastError"]) == (3, None)


@pytest.mark.requirement("S0/ECO-101")
async def test_without_retries_there_is_one_attempt(tmp_path: Path) -> None:
    options = {"fail_first": {"file": str(tmp_path / "starts"), "times": 1000}}
    config = scripted(options=options, max_retries=0, era="legacy")
    async with running(config, Backoff(after_giving_up_s=60)) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
    assert (tmp_path / "starts").stat().st_size == 1


@pytest.mark.requirement("S0/ECO-101")
async def test_a_program_that_does_not_exist_is_not_tried_again() -> None:
    config = ServerConfig(id="files", command="no-such-program-anywhere", max_retries=3)
    async with running(config, Backoff(after_giving_up_s=60)) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        assert watched.count(ServerConnecting) == 1
        assert "no-such-program-anywhere" in (watched.supervisor.last_error or "")


@pytest.mark.requirement("S0/ECO-100")
async def test_a_server_that_never_answers_is_a_connection_timeout_naming_server_and_operation() -> None:
    config = scripted(options={"hang": "handshake"}, connection_timeout_ms=1000, max_retries=0, era="legacy")
    async with running(config, Backoff(after_giving_up_s=60)) as watched:
        with pytest.raises(GatewayFailure) as caught:
            await watched.supervisor.ready()
        assert running_children() == []
        assert server_row(watched.supervisor)["lastErrorCode"] == "MCP_ECO_CONNECTION_TIMEOUT"
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        (failed,) = [event for event in watched.events if isinstance(event, ServerFailed)]
        assert failed.code == "MCP_ECO_CONNECTION_TIMEOUT"
    assert caught.value.kind is Kind.CONNECT_TIMEOUT
    assert caught.value.ecosystem == "MCP_ECO_CONNECTION_TIMEOUT"
    assert (caught.value.server, caught.value.operation) == ("files", "connect")
    assert "files" in caught.value.message
    assert "connect" in caught.value.message


@pytest.mark.requirement("S0/ECO-200")
async def test_a_server_killed_while_idle_leaves_connected_and_comes_back_by_itself() -> None:
    async with running(scripted()) as watched:
        await watched.supervisor.lists.settled.wait()
        session = watched.supervisor.session
        assert session is not None
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        await watched.until(lambda: watched.supervisor.status is not ServerStatus.CONNECTED)
        assert "SIGKILL" in (watched.supervisor.last_error or "")
        await watched.until(lambda: watched.supervisor.status is ServerStatus.CONNECTED)
        assert watched.supervisor.last_error is None
        assert (await watched.supervisor.ready()).pid != session.pid


async def test_calls_during_the_first_attempt_share_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with running(scripted(options={"log": str(log)})) as watched:
        sessions = await asyncio.gather(*(watched.supervisor.ready() for _ in range(20)))
    assert len({id(session) for session in sessions}) == 1
    assert methods(log).count("initialize") == 1


async def test_a_caller_of_a_failing_server_is_told_at_once_why(tmp_path: Path) -> None:
    options = {"fail_first": {"file": str(tmp_path / "starts"), "times": 1000}}
    config = scripted(options=options, max_retries=0, era="legacy")
    async with running(config, Backoff(first_s=30, cap_s=30, after_giving_up_s=60)) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        with pytest.raises(GatewayFailure) as caught:
            await asyncio.wait_for(watched.supervisor.ready(), 5)
    assert caught.value.kind is Kind.CONNECTION_FAILED
    assert caught.value.verdict is Verdict.DID_NOT_RUN
    assert caught.value.attempts == 1


async def test_a_call_wakes_a_server_that_was_given_up(tmp_path: Path) -> None:
    options = {"fail_first": {"file": str(tmp_path / "starts"), "times": 1}}
    config = scripted(options=options, max_retries=0, era="legacy")
    async with running(config, Backoff(first_s=0.01, after_giving_up_s=60, early_s=0.01)) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        async with asyncio.timeout(10):
            while watched.supervisor.status is not ServerStatus.CONNECTED:
                try:
                    await watched.supervisor.ready()
                except GatewayFailure:
                    await asyncio.sleep(0)


def failing(folder: Path, *, times: int = 1000, **settings: Any) -> ServerConfig:
    """A server whose first starts fail. Each start writes one byte into the file `starts`."""
    options = {"fail_first": {"file": str(folder / "starts"), "times": times}}
    return scripted(options=options, era="legacy", **settings)


async def try_until_refused_early(watched: Watched) -> None:
    with pytest.raises(GatewayFailure):
        await watched.supervisor.ready()


async def test_the_pauses_after_giving_up_grow_without_calls(tmp_path: Path) -> None:
    backoff = Backoff(first_s=0.01, after_giving_up_s=0.05, longest_s=60, early_s=0.01)
    began = time.monotonic()
    async with running(failing(tmp_path, max_retries=0), backoff) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 5)
    assert time.monotonic() - began >= (0.05 + 0.1 + 0.2 + 0.4) / 2


async def test_calls_have_a_given_up_server_tried_once_in_a_while_and_with_one_attempt_each(tmp_path: Path) -> None:
    backoff = Backoff(first_s=0.01, cap_s=0.02, after_giving_up_s=60, early_s=0.2)
    async with running(failing(tmp_path, max_retries=3), backoff) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        began = time.monotonic()

        async def three_more_have_failed() -> bool:
            await try_until_refused_early(watched)
            return watched.count(ServerFailed) == 4

        await eventually(three_more_have_failed)
        assert time.monotonic() - began >= 3 * 0.2
    assert (tmp_path / "starts").stat().st_size == 4 + 3


@pytest.mark.parametrize("how", ["a call", "an applied configuration"])
async def test_a_pause_is_short_again_after(how: str, tmp_path: Path) -> None:
    backoff = Backoff(first_s=0.01, after_giving_up_s=0.05, longest_s=60, early_s=0.01)
    async with running(failing(tmp_path, max_retries=0), backoff) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 6)  # the next pause is 0.8 s at least
        if how == "a call":
            await try_until_refused_early(watched)
        else:
            watched.supervisor.reconfigure(watched.supervisor.config)
        began = time.monotonic()
        await watched.until(lambda: watched.count(ServerFailed) == 9)
        assert time.monotonic() - began < 0.8 + 2


async def test_an_applied_configuration_has_a_given_up_server_tried_at_once(tmp_path: Path) -> None:
    backoff = Backoff(first_s=30, cap_s=30, after_giving_up_s=60, early_s=30)
    async with running(failing(tmp_path, times=1, max_retries=0), backoff) as watched:
        await watched.until(lambda: watched.count(ServerFailed) == 1)
        watched.supervisor.reconfigure(watched.supervisor.config)
        await watched.until(lambda: watched.supervisor.status is ServerStatus.CONNECTED)


async def test_an_applied_configuration_leaves_a_connected_server_alone() -> None:
    async with running(scripted()) as watched:
        session = await watched.supervisor.ready()
        watched.supervisor.reconfigure(watched.supervisor.config)
        await watched.supervisor.lists.settled.wait()
        assert await watched.supervisor.ready() is session


@pytest.mark.requirement("S0/ECO-201")
async def test_a_disabled_server_is_never_started(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with running(scripted(options={"log": str(log)}, enabled=False)) as watched:
        assert watched.supervisor.lists.settled.is_set()
        with pytest.raises(GatewayFailure) as caught:
            await watched.supervisor.ready()
        assert server_row(watched.supervisor)["status"] == "disabled"
    assert caught.value.kind is Kind.UNKNOWN_TOOL
    assert watched.events == []
    assert not log.exists()


@pytest.mark.requirement("S0/ECO-200")
async def test_a_server_that_does_not_list_is_connected_without_tools_and_the_reason_is_kept(tmp_path: Path) -> None:
    async with running(scripted(options={"hang": "list"}, request_timeout_ms=1000)) as watched:
        async with asyncio.timeout(10):
            await watched.supervisor.lists.settled.wait()
        row = server_row(watched.supervisor)
    assert (row["status"], row["toolCount"], row["lastDiscoveredAt"]) == ("connected", 0, None)
    assert "list" in row["lastError"]


@pytest.mark.requirement("S0/ECO-001")
async def test_a_flood_of_change_notices_costs_a_few_lists(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with running(scripted(options={"log": str(log)})) as watched:
        session = await watched.supervisor.ready()
        await watched.supervisor.lists.settled.wait()
        arguments: dict[str, Any] = {"name": Raw(b'"change"'), "arguments": Raw(b'{"name":"extra","times":2000}')}
        await session.peer.request("tools/call", arguments)
        await watched.until(lambda: len(watched.supervisor.lists.found.tools) == 11)
    assert methods(log).count("tools/list") <= 3


async def test_a_server_that_exits_at_the_probe_is_met_with_a_handshake() -> None:
    async with running(scripted(options={"exit_on_probe": True}, max_retries=0)) as watched:
        session = await watched.supervisor.ready()
        assert session.identity.era == "legacy"


async def test_stopping_during_a_hanging_attempt_leaves_no_process_and_tells_who_waits() -> None:
    config = scripted(options={"hang": "handshake"}, era="legacy")
    async with running(config) as watched:
        waiting = asyncio.create_task(watched.supervisor.ready())
        await watched.until(lambda: watched.count(ServerConnecting) == 1)
        await asyncio.wait_for(watched.supervisor.stop(), 10)
        with pytest.raises(GatewayFailure):
            await waiting
        assert running_children() == []
        assert watched.supervisor.status is ServerStatus.DISCONNECTED


async def test_what_happened_to_a_server_is_kept_with_the_reason_of_each_failure(tmp_path: Path) -> None:
    options = {"fail_first": {"file": str(tmp_path / "starts"), "times": 1}}
    async with running(scripted(options=options, max_retries=3, era="legacy")) as watched:
        await watched.until(lambda: watched.supervisor.status is ServerStatus.CONNECTED)
        history = server_row(watched.supervisor)["history"]
    assert [step["event"] for step in history] == ["attempt began", "attempt failed", "attempt began", "connected"]
    assert [bool(step.get("reason")) for step in history] == [False, True, False, False]
    assert all(step["time"] <= history[-1]["time"] for step in history)


async def test_the_history_of_a_server_is_bounded() -> None:
    watched = Watched(scripted(), QUICK)
    for _ in range(MAX_HISTORY):
        watched.supervisor.enable()
        await watched.supervisor.disable()
    assert len(server_row(watched.supervisor)["history"]) == MAX_HISTORY
    await watched.client.close()
    await watched.child_reaper.close()
