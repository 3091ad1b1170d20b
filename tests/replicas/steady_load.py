"""Calls at a steady rate through the balancer, by modern clients and by legacy ones that initialize again where they have to."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import Any

from tests.support.eventually import elapsed
from tests.support.facing import call, initialize, modern_call, notification
from tests.support.raw_http import Answer, RawClient, post

RATE = 300
"""Calls per second."""
LEGACY_CLIENTS = 6
_LEGACY = "2025-11-25"


class Outcome:
    """One call: `verdict` is what the gateway said of a failed one, `status` what HTTP said of it."""

    def __init__(self, era: str) -> None:
        self.era = era
        self.begun_at = time.monotonic()
        self.ended_at = 0.0
        self.status = 0
        self.is_good = False
        self.verdict: str | None = None

    def was_under_way(self, since: float, until: float) -> bool:
        return self.begun_at <= until and self.ended_at >= since


class SteadyLoad:
    """Every third call is one of a legacy client. The argument `text` of each is its name in `outcomes`."""

    def __init__(self, address: str, tool: str) -> None:
        self._port = int(address.rpartition(":")[2])
        self._tool = tool
        self._idle: list[RawClient] = []
        self._sessions = [""] * LEGACY_CLIENTS
        self._opening = [asyncio.Lock() for _ in range(LEGACY_CLIENTS)]
        self.opened_again = 0
        self.outcomes: dict[str, Outcome] = {}

    async def open(self) -> None:
        for number in range(LEGACY_CLIENTS):
            await self._initialize(number)

    async def run(self, seconds: float) -> None:
        """Calls begin when it is their turn, whether or not others have ended."""
        first, begun_at = len(self.outcomes), time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(int(seconds * RATE)):
                await elapsed(max(0.0, begun_at + number / RATE - time.monotonic()))
                tasks.create_task(self._one(first + number))

    async def close(self) -> None:
        for client in self._idle:
            await client.close()

    def p99_ms(self, since: float, until: float) -> float:
        """Of one second as of most: a pause of the machine makes one second slow, and not the others."""
        seconds: dict[int, list[float]] = {}
        for one in self.outcomes.values():
            if one.is_good and since <= one.begun_at < until:
                seconds.setdefault(int(one.begun_at - since), []).append((one.ended_at - one.begun_at) * 1000)
        return statistics.median(statistics.quantiles(took, n=100)[98] for took in seconds.values() if len(took) > 1)

    async def _one(self, number: int) -> None:
        text, client = f"call-{number}", number // 3 % LEGACY_CLIENTS
        is_legacy = number % 3 == 0
        outcome = self.outcomes[text] = Outcome("legacy" if is_legacy else "modern")
        arguments = {"text": text}
        if is_legacy:
            session = self._sessions[client]
            answer = await self._ask(call(self._tool, arguments, number), **_headers(session))
            if answer.status == 404:
                async with self._opening[client]:
                    if self._sessions[client] == session:
                        await self._initialize(client)
                        self.opened_again += 1
                answer = await self._ask(call(self._tool, arguments, number), **_headers(self._sessions[client]))
        else:
            mirrored = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": self._tool}
            answer = await self._ask(modern_call(self._tool, arguments), **mirrored)
        outcome.ended_at, outcome.status = time.monotonic(), answer.status
        if answer.status == 502:
            return  # the balancer has lost the replica before it had an answer of it
        body = json.loads(answer.body.rpartition(b"data: ")[2])
        outcome.is_good = "result" in body and not body["result"].get("isError")
        if "error" in body:
            outcome.verdict = body["error"]["data"]["verdict"]

    async def _initialize(self, client: int) -> None:
        session = (await self._ask(initialize())).header("mcp-session-id")
        assert session is not None
        await self._ask(notification("notifications/initialized"), **_headers(session))
        self._sessions[client] = session

    async def _ask(self, body: dict[str, Any], **headers: str) -> Answer:
        client = self._idle.pop() if self._idle else await RawClient(self._port).__aenter__()
        try:
            answer = await client.ask(post(body, **headers))
        except BaseException:
            await client.close()
            raise
        if answer.header("connection") == "close":
            await client.close()
        else:
            self._idle.append(client)
        return answer


def _headers(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": _LEGACY}
