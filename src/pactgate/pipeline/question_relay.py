"""Relays questions of a server (elicitation, sampling, roots) to the legacy client of one call, within the input time of that call.

Must not: ask what the client did not declare, or ask another client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from pactgate.core.unanswered import UnansweredError
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol import era_bridge
from pactgate.protocol.era_bridge import Question


class QuestionRelay:
    """Puts questions to the legacy caller of one call (`upstreams.server_request_router.Asker`)."""

    def __init__(self, request: UpstreamRequest, capabilities: Mapping[str, Any]) -> None:
        self.owner = request.caller.session
        self._request = request
        self._capabilities = capabilities
        self._count = 0

    async def ask(self, question: Question) -> bytes:
        refusal = era_bridge.why_not(question, self._capabilities)
        if refusal is not None:
            raise UnansweredError(refusal[1], code=refusal[0])
        request = self._request
        request.on_asked()
        self._count += 1
        params = era_bridge.for_legacy(question, request.caller.version, f"{request.server}-{id(self):x}-{self._count}")
        with request.deadline.waiting_for_client():
            return await request.caller.channel.ask(question.method, params)

    def tell(self, method: str, params: bytes) -> None:
        self._request.caller.channel.notify(method, params)

    async def ask_for_round(self, question: Question) -> bytes:
        """The same for a modern server, which knows no refusal: a form nobody fills in is cancelled, anything else ends the call."""
        try:
            return await self.ask(question)
        except UnansweredError as failure:
            if question.method == era_bridge.ELICIT:
                return era_bridge.CANCELLED_BY_CALLER
            failure.message = (
                f"{self._request.server} asked for {question.method}, and the client refused: {failure.reply.message}. "
                "A server of this protocol version can't be told so; the call has ended."
            )
            failure.server, failure.operation = self._request.server, self._request.method
            raise


async def all_of(asking: Iterable[Coroutine[Any, Any, bytes]]) -> list[bytes]:
    """Every answer; the first failure ends the others."""
    tasks = [asyncio.get_running_loop().create_task(each) for each in asking]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
