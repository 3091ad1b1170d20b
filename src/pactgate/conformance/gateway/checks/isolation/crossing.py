"""Nothing of one client reaches another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel

_CALLS = 6


def _said(text: str) -> str:
    return f'"content":[{{"type":"text","text":"{text}"}}]'


class AnswersCross(Check):
    """Two clients that use the same ids get their own answers.

    What it checks
        Two clients, whose requests have equal ids, call two tools twelve times at once. Each result is that of the tool that was
        called.

    Why
        Every client counts from one. A gateway that finds the caller by the client's id gives one person what another asked for.

    How to fix
        Number requests to servers yourself.

    Reference
        Base Protocol, Requests: an id is unique for its requestor alone; all revisions.
    """

    code = "GWP-150"
    spec = "basic/index#requests"
    level = RequirementLevel.MUST
    tools = (
        ScriptedTool(name="gwp150a_@", result=_said("for the first"), steps=(ScriptStep("wait", seconds=0.02),)),
        ScriptedTool(name="gwp150b_@", result=_said("for the second"), steps=(ScriptStep("wait", seconds=0.02),)),
    )

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            record = lab.record_on(route)
            clients = [await lab.new_client(route) for _ in self.tools]
            tools = [lab.exposed(route, tool.name) for tool in self.tools]
            calls = [
                client.call(record, tool, label=label)
                for _ in range(_CALLS)
                for client, tool, label in zip(clients, tools, ("for the first", "for the second"), strict=True)
            ]
            await asyncio.gather(*calls)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for label, other in (("for the first", "for the second"), ("for the second", "for the first")):
            for exchange in recording.exchanges(label):
                response = exchange.response
                if response is not None and f'"{other}"' in response.data:
                    yield self.evidence(
                        exchange.index, "", f"{exchange.route}: the answer is not what was called {label}"
                    )


def _telling(text: str) -> tuple[ScriptStep, ...]:
    message = f'{{"level":"error","data":"{text}"}}'
    return (
        ScriptStep("notify", f'{{"jsonrpc":"2.0","method":"notifications/message","params":{message}}}'),
        ScriptStep("wait", seconds=0.1),
    )


class MessagesCross(Check):
    """What a server says during a call is heard by nobody else.

    What it checks
        Two clients call tools that send log messages. Neither gets a message of the other's call on its own.

    Why
        Log messages quote arguments and results.

    How to fix
        Relay what belongs to a call on the stream of that call.

    Reference
        Streamable HTTP: messages on a stream relate to the request of this stream; all revisions.
    """

    code = "GWP-151"
    spec = "basic/transports/streamable-http"
    level = RequirementLevel.SHOULD
    tools = (
        ScriptedTool(name="gwp151a_@", steps=_telling("said to the first")),
        ScriptedTool(name="gwp151b_@", steps=_telling("said to the second")),
    )

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            record = lab.record_on(route)
            clients = [await lab.new_client(route) for _ in self.tools]
            names = [lab.exposed(route, tool.name) for tool in self.tools]
            await asyncio.gather(
                *(
                    client.call(record, name, label=label)
                    for client, name, label in zip(clients, names, ("first", "second"), strict=True)
                )
            )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for own, other in (("first", "second"), ("second", "first")):
            for exchange in recording.exchanges(own):
                if any(f"said to the {other}" in frame.data for frame in exchange.received):
                    yield self.evidence(exchange.index, "", f"{exchange.route}: a message of the other call came")


_UNDER_WAY_S = 0.2
_IDS = 5


class CancellationCrosses(Check):
    """A client can't cancel the request of another.

    What it checks
        While a legacy client waits for a slow tool, another one cancels a request of the same id. The first one gets its result.

    Why
        Ids are small numbers; anybody could end anybody's calls.

    How to fix
        Look the id up among the requests of the client that cancels.

    Reference
        Cancellation: only requests that were previously issued in the same direction; all legacy revisions.
    """

    code = "GWP-152"
    spec = "basic/utilities/cancellation"
    level = RequirementLevel.MUST
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp152_@", steps=(ScriptStep("wait", seconds=0.6),)),)

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            record = lab.record_on(route)
            one, other = await lab.new_client(route), await lab.new_client(route)
            call = asyncio.create_task(one.call(record, lab.exposed(route, self.tools[0].name), label="slow"))
            await asyncio.sleep(_UNDER_WAY_S)
            for id_ in range(1, _IDS):
                await other.notify(record, "notifications/cancelled", f'"requestId":{id_}')
            await call

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("slow"):
            if "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the call has no result")


class InventedSessionAccepted(Check):
    """A session that was never given out does not exist.

    What it checks
        A legacy client sends `tools/list` with an invented session id. It is refused with HTTP 4xx. Not applicable where no session
        id is given out.

    Why
        Where invented ids are as good as given ones, ids protect nothing.

    How to fix
        Answer HTTP 404 to a session id that you do not know.

    Reference
        Streamable HTTP, Session Management: 404 for what is no session any more; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-153"
    spec = "basic/transports#session-management"
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    needs_gateway = True

    async def play(self, lab: Lab) -> None:
        lab.require_gateway("Without a gateway between, the sessions are those of the server.")
        for route in lab.addresses(self):
            client, record = await lab.new_client(route), lab.record_on(route)
            if not client.has_session:
                raise NotApplicableError("It gives out no session ids.")
            headers = {"Mcp-Session-Id": "gwp153-nobody-gave-this-out"}
            await client.request(record, "tools/list", label="invented", headers=headers)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("invented"):
            response = exchange.response
            if response is None or not 400 <= response.status < 500:
                status = 0 if response is None else response.status
                yield self.evidence(exchange.index, "", f"an invented session is answered with HTTP {status}")
