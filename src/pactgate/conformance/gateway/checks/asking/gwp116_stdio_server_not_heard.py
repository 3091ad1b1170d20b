"""GWP-116."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.asking.questions import (
    ANSWERS,
    CAPABILITIES,
    ELICIT,
    FORM,
    ask,
    asking,
    judge_answers,
    judge_questions,
)
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import named
from pactgate.conformance.gateway.server_dialogue import NOT_ASKED
from pactgate.conformance.rule import Evidence


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
    family = Family.ASKING
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
