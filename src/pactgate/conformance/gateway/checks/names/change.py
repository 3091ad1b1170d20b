"""Changed lists: a server shows a hidden tool, and a client that listens is notified. Must not: wait without a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.checks.names.lists import names_in
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.gateway.under_test import is_named, read_list
from pactgate.conformance.rule import Evidence, RequirementLevel

WAIT_S: Final = 5.0
_OPEN_S: Final = 0.3
"""A stream of a session has no first message: this long it is given to open."""
CHANGED: Final = "notifications/tools/list_changed"


class ChangeCheck(Check):
    """The first tool shows the second one. A client that listens is notified, and finds it in the list.

    Why
        Without it clients show the tools of yesterday until they are started again. A gateway that does not announce
        `listChanged` is not asked.

    How to fix
        Pass the notification on, and read the list of the server again before.
    """

    spec = "server/tools#list-changed-notification"
    level = RequirementLevel.SHOULD
    runs_alone = True

    async def play(self, lab: Lab) -> None:
        route = lab.routes(self)[0]
        client = await lab.new_client(route)
        if '"listChanged":true' not in client.opening.replace(" ", ""):
            raise NotApplicableError("It does not announce that it notifies of changed lists.")
        record = lab.record_on(route)
        async with client.listening(record) as coming:
            opened = asyncio.create_task(coming.get())
            await asyncio.wait([opened], timeout=_OPEN_S)
            await client.call(record, lab.exposed(route, self.tools[0].name), label="change")
            try:
                async with asyncio.timeout(WAIT_S):
                    frame = await opened
                    while plain_value(frame).get("method") != CHANGED:
                        frame = await coming.get()
            except TimeoutError:
                opened.cancel()
            await read_list(client, "tools/list", record)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        new = self.tools[1].name.replace("@", self.servers[0])
        notices = [frame for exchange in recording.exchanges("listen") for frame in exchange.received]
        last = len(recording.frames) - 1
        if not any(plain_value(frame).get("method") == CHANGED for frame in notices):
            yield self.evidence(last, "", f"within {WAIT_S:g} s there was no {CHANGED}")
        for route, listed, index in names_in(recording):
            if not any(is_named(name, new) for name in listed):
                yield self.evidence(index, "/result/tools", f"{route}: the new tool {new} is not listed")


class ChangeNotToldToLegacyClient(ChangeCheck):
    """A legacy client hears that a list of tools has changed.

    What it checks
        A server adds a tool and notifies; within five seconds the client gets `notifications/tools/list_changed` on the stream of
        its session, and then finds the new tool in the list.

    Reference
        Tools, List Changed Notification; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-070"
    servers = ("lh",)
    eras = ("legacy",)
    tools = (
        ScriptedTool(name="gwp070_@", steps=(ScriptStep(do="show"),)),
        ScriptedTool(name="gwp070new_@", is_hidden=True),
    )


class ChangeNotToldToModernClient(ChangeCheck):
    """A modern client hears that a list of tools has changed.

    What it checks
        A server adds a tool and notifies; within five seconds the client gets `notifications/tools/list_changed` on
        `subscriptions/listen`, and then finds the new tool in the list.

    Reference
        Tools, List Changed Notification; 2026-07-28.
    """

    code = "GWP-071"
    servers = ("mh",)
    eras = ("modern",)
    tools = (
        ScriptedTool(name="gwp071_@", steps=(ScriptStep(do="show"),)),
        ScriptedTool(name="gwp071new_@", is_hidden=True),
    )
