"""What the checks of faults share: a call that goes wrong, and calls beside and after it. Must not: wait without a bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import ClassVar, Final

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, ScriptedExchange
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence

AT_ONCE_S: Final = 3.0
"""A call that nothing is wrong with is answered within this time, on a busy machine too."""
FAULTY: Final = "faulty"
BESIDE: Final = "beside"
AFTER: Final = "after"
FAULTY_S: Final = 4.0
"""How long a call waits that goes wrong."""
BACK_S: Final = 20.0
"""How long a server may take to come back."""
UNDER_WAY_S: Final = 0.3
_PAUSE_S: Final = 0.3


class FaultCheck(Check):
    """The first tool goes wrong on one server. The second one is called beside it on `beside`, and after it on the same server.

    Reference
        Nothing in the specification says how servers share a gateway.
    """

    spec = "server/tools#calling-tools"
    needs_gateway = True
    runs_alone = True
    server: ClassVar[str] = "ls"
    beside: ClassVar[str] = "lh"
    faulty_succeeds: ClassVar[bool] = False
    """Whether the faulty call itself has a result, whatever the server says beside it."""
    comes_back: ClassVar[bool] = False
    """Whether the faulty server is asked again, until it answers or its time to come back is over."""

    async def play(self, lab: Lab) -> None:
        lab.require_gateway("Without a gateway between, servers have nothing to do with each other.")
        lab.require(*dict.fromkeys((self.server, self.beside)))
        era = next((era for era in self.eras if self._is_there(lab, era)), None)
        if era is None:
            raise NotApplicableError(lab.reason(self.eras, (self.server, self.beside)))
        route = ClientRoute(era, self.server)
        client, record = await lab.new_client(route), lab.record_on(route)
        faulty = asyncio.create_task(_call(client, lab, route, self.tools[0], FAULTY, FAULTY_S))
        await asyncio.sleep(UNDER_WAY_S)
        beside = ClientRoute(era, self.beside)
        await _call(client, lab, beside, self.tools[1], BESIDE, AT_ONCE_S)
        await faulty
        ends = time.monotonic() + BACK_S
        while self.comes_back:
            frame = await client.request(
                record, "tools/call", *_params(lab, route, self.tools[1]), label=AFTER, timeout_s=AT_ONCE_S
            )
            if has_succeeded(plain_value(frame)) or time.monotonic() > ends:
                break
            await asyncio.sleep(_PAUSE_S)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges(FAULTY) if self.faulty_succeeds else ():
            if not has_succeeded(plain_value(exchange.response)):
                yield self.evidence(exchange.index, "", f"the call has no result: {_shown(exchange)}")
        for exchange in recording.exchanges(BESIDE):
            if not has_succeeded(plain_value(exchange.response)):
                where = "the same server" if self.beside == self.server else "another server"
                yield self.evidence(
                    exchange.index, "", f"a call of {where} has no result within {AT_ONCE_S:g} s: {_shown(exchange)}"
                )
        after = list(recording.exchanges(AFTER))
        if after and not has_succeeded(plain_value(after[-1].response)):
            yield self.evidence(after[-1].index, "", f"the server did not come back: {_shown(after[-1])}")

    def _is_there(self, lab: Lab, era: str) -> bool:
        return all(lab.gateway.is_listed(ClientRoute(era, server)) for server in (self.server, self.beside))


def has_succeeded(message: dict[str, object]) -> bool:
    result = message.get("result")
    return isinstance(result, dict) and not result.get("isError")


def fails_soon(check: Check, recording: CheckRecording) -> Iterator[Evidence]:
    """The faulty call ends with an error instead of waiting for ever."""
    for exchange in recording.exchanges(FAULTY):
        message = plain_value(exchange.response)
        if has_succeeded(message) or not ("error" in message or "result" in message):
            yield check.evidence(exchange.index, "", f"the call does not end with an error: {_shown(exchange)}")


async def _call(
    client: ScriptedClient, lab: Lab, route: ClientRoute, tool: ScriptedTool, label: str, limit_s: float
) -> None:
    name, params = _name(lab, route, tool), _params(lab, route, tool)
    await client.request(lab.record_on(route), "tools/call", *params, name=name, label=label, timeout_s=limit_s)


def _name(lab: Lab, route: ClientRoute, tool: ScriptedTool) -> str:
    return lab.exposed(route, tool.name)


def _params(lab: Lab, route: ClientRoute, tool: ScriptedTool) -> tuple[str]:
    return (f'"name":"{_name(lab, route, tool)}","arguments":{{}}',)


def _shown(exchange: ScriptedExchange) -> str:
    response = exchange.response
    return "nothing came back" if response is None else response.data[:120] or response.label
