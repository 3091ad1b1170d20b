"""Who is asked: the client of the call, nobody who can not be, and nobody waits for the answer but the call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    ASK_ROOTS,
    CAPABILITIES,
    ELICIT,
    FORM,
    SAMPLING,
    answers_at,
    ask,
    asking,
    calls,
    judge_answers,
    judge_questions,
    play_asking,
    questions,
)
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.exact_json import MISSING, at
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.gateway.server_dialogue import NOT_ASKED
from pactgate.conformance.rule import Evidence, RequirementLevel

_FORM = '{{"method":"elicitation/create","params":{{"message":"for {who}","requestedSchema":{{"type":"object","properties":{{}}}}}}}}'


class QuestionsReachAnotherClient(Check):
    """Only the client of a call is asked, and only its answer counts.

    What it checks
        Two clients with the same capabilities call two tools of each server at the same time, with equal ids; each tool asks a question
        of its own. Each client gets the question of its own call only, and each tool the answer of its own client, or an error.

    Why
        A question that reaches another user tells what the first one does, and lets a stranger answer for him.

    How to fix
        Keep which call a question of a server belongs to, and ask on the stream of that call; where this can't be known, do not ask.

    Reference
        Elicitation, Security Considerations, and Streamable HTTP, Sending Messages: requests of a server relate to the request on whose
        stream they are; all revisions.
    """

    code = "GWP-109"
    spec = "client/elicitation#security-considerations"
    tools = (asking("gwp109a_@", _FORM.format(who="a")), asking("gwp109b_@", _FORM.format(who="b")))

    async def play(self, lab: Lab) -> None:
        async with (
            lab.listeners(self, capabilities=CAPABILITIES) as one,
            lab.listeners(self, capabilities=CAPABILITIES) as other,
        ):
            await lab.in_turn(self._both(lab, route, (one[route], other[route])) for route in one)

    async def _both(self, lab: Lab, route: ClientRoute, clients: tuple[ScriptedClient, ...]) -> None:
        for tool, client in zip(self.tools, clients, strict=True):
            client.answers = {ELICIT: f'"result":{{"action":"accept","content":{{"who":"{tool.name[6]}"}}}}'}
        asked = [ask(lab, route, client, tool.name) for tool, client in zip(self.tools, clients, strict=True)]
        await asyncio.gather(*asked)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        callers = {who: label[6] for _, who, label, _ in calls(recording)}
        for asked in questions(recording, ScriptedSide.CLIENT):
            own, message = callers[asked.frame.who], at(asked.value, "/message")
            if message != f"for {own}":
                yield self.evidence(
                    asked.index,
                    "/params/message",
                    f"{asked.frame.route}: the client that called {own} got {message!r:.60}",
                )
        for label in {frame.label for frame in recording.frames if frame.side is ScriptedSide.SERVER}:
            for server in self.servers:
                for answer in answers_at(recording, server, label):
                    result = at(answer.value, "/result")
                    if result is not MISSING and at(result, "/content/who") != label[6]:
                        yield self.evidence(answer.index, "/result", f"{label} got the answer of another client")


class ClientWithoutCapabilityAsked(Check):
    """A client that can't be asked is not asked, and its call ends.

    What it checks
        A client that declares no capabilities calls tools that ask for sampling, for a form and for roots. It gets no question, and each
        call ends with a result or an error.

    Why
        A client without the capability can't answer: the call hangs, or the user sees an error that he can't explain.

    How to fix
        Declare to a server what the client of the call declares; answer a question that comes anyway with an error.

    Reference
        Lifecycle, Operation: only capabilities that were negotiated may be used; in 2026-07-28, input requests of kinds that the
        request declares.
    """

    code = "GWP-110"
    spec = "basic/lifecycle#operation"
    level = RequirementLevel.MUST
    tools = (asking("gwp110s_@", SAMPLING), asking("gwp110e_@", FORM), asking("gwp110r_@", ASK_ROOTS))

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS, capabilities="{}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for asked in questions(recording, ScriptedSide.CLIENT):
            yield self.evidence(asked.index, "", f"{asked.frame.route}: the client was asked {asked.method}")
        for exchange in recording.exchanges():
            if '"tools/call"' in exchange.request.data and not plain_value(exchange.response):
                label = exchange.response.label if exchange.response is not None else "no response"
                yield self.evidence(exchange.index, "", f"{exchange.route}: {label}")


class MissingCapabilityHidden(Check):
    """A modern client learns which capability a call needs.

    What it checks
        A modern client without capabilities calls a tool of a modern server that needs sampling; it gets HTTP 400 and the error -32021
        with `requiredCapabilities` that has `sampling`.

    Why
        With this error a client can offer the capability and call again. With any other it has to give up.

    How to fix
        Pass the error on with its code and data, and with the status that belongs to it.

    Reference
        Base protocol, Error Codes: -32021 with `requiredCapabilities`, and 400 over HTTP; 2026-07-28.
    """

    code = "GWP-111"
    spec = "basic/index#error-codes"
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    servers = ("mh", "dh", "ms")
    tools = (asking("gwp111_@", SAMPLING),)

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS, capabilities="{}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            if '"tools/call"' not in exchange.request.data:
                continue
            response, found = exchange.response, plain_value(exchange.response).get("error")
            error = found if isinstance(found, dict) else {}
            data = error.get("data")
            required = data.get("requiredCapabilities") if isinstance(data, dict) else None
            if error.get("code") != -32021 or response is None or response.status != 400:
                status = 0 if response is None else response.status
                came = f"HTTP {status} with the code {error.get('code')}"
                yield self.evidence(exchange.index, "/error", f"{exchange.route}: it answers {came}")
            elif not isinstance(required, dict) or "sampling" not in required:
                yield self.evidence(
                    exchange.index, "/error/data", f"{exchange.route}: requiredCapabilities lacks sampling"
                )


class StdioServerNotHeard(Check):
    """A legacy server over stdio may ask, too.

    What it checks
        A tool of a legacy server over stdio asks for a form, while no other call is under way; the client of the call gets the question,
        and the server the answer. A gateway that shares the server among its clients, and so declares no capabilities to it, is not
        asked.

    Why
        Most servers are of this kind.

    How to fix
        Give each client a process of its own, or have one call under way at a time: such a question does not say which call it is about.

    Reference
        Transports, stdio, and Elicitation; 2025-06-18 and 2025-11-25.
    """

    code = "GWP-116"
    spec = "basic/transports#stdio"
    servers = ("ls",)
    needs_gateway = True
    runs_alone = True
    tools = (asking("gwp116_@", FORM),)

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self, capabilities=CAPABILITIES) as clients:
            for route, client in clients.items():
                client.answers = ANSWERS
                await ask(lab, route, client, self.tools[0].name)
        label = named(self.tools[0].name, "ls")
        if not await lab.until_server(label, lambda frame: frame.is_sent and NOT_ASKED not in frame.data, 0.2):
            raise NotApplicableError("It shares the server among its clients, and declares no capabilities to it.")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_questions(self, recording)
        yield from judge_answers(self, recording, ANSWERS, (ELICIT,))


_ASKED_S = 5.0
_OTHER_S = 8.0


class OpenQuestionBlocksOthers(Check):
    """While a user thinks about a question, the server goes on serving others.

    What it checks
        A client is asked and does not answer yet; another client calls another tool of the same server, and gets its result before the
        first one answers.

    Why
        Users take minutes. A gateway that lets the server wait with them stops everybody.

    How to fix
        Do not hold a lock, a connection or the only session of a server while a client is asked.

    Reference
        Elicitation, User Interaction Model: answers depend on a user; all revisions with elicitation.
    """

    code = "GWP-115"
    spec = "client/elicitation"
    runs_alone = True
    tools = (asking("gwp115_@", FORM), ScriptedTool(name="gwp115other_@"))

    async def play(self, lab: Lab) -> None:
        async with lab.listeners(self, capabilities=CAPABILITIES) as clients, lab.listeners(self) as others:
            for route, client in clients.items():
                client.answers = ANSWERS
                await self._one(lab, route, client, others[route])

    async def _one(self, lab: Lab, route: ClientRoute, client: ScriptedClient, other: ScriptedClient) -> None:
        client.may_answer.clear()
        client.was_asked.clear()
        calling = lab.start(ask(lab, route, client, self.tools[0].name))
        asked = lab.start(client.was_asked.wait())
        await asyncio.wait([calling, asked], timeout=_ASKED_S, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        name = self.tools[1].name
        tool, label = lab.exposed(route, name), named(name, route.server)
        await other.call(lab.record_on(route), tool, label=label, timeout_s=_OTHER_S)
        client.may_answer.set()
        await calling

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            is_other = exchange.request.label == named(self.tools[1].name, exchange.route.server)
            if is_other and "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.route}: the other client waits")
