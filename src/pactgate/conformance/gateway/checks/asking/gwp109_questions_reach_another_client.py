"""GWP-109."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    CAPABILITIES,
    ELICIT,
    answers_at,
    ask,
    asking,
    calls,
    questions,
)
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.exact_json import MISSING, at
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, ScriptedSide
from pactgate.conformance.rule import Evidence

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
    family = Family.ASKING
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
