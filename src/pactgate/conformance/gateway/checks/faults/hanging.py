"""Calls and servers that hang hurt nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pactgate.conformance.gateway.check import plain_value
from pactgate.conformance.gateway.checks.faults.neighbours import AT_ONCE_S, UNDER_WAY_S, FaultCheck
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence


class HangingCallBlocksItsServer(FaultCheck):
    """A call that hangs does not block the other calls of its server.

    What it checks
        A tool of a stdio server never answers. Another tool of the same server is called meanwhile, and has its result within three
        seconds.

    Why
        With one request at a time, the slowest tool decides for all. Servers answer in any order; nothing has to wait.

    How to fix
        Send requests as they come, and match the answers by id.
    """

    code = "GWP-160"
    tools = (ScriptedTool(name="gwp160_@", steps=(ScriptStep("hang"),)), ScriptedTool(name="gwp160ok_@"))
    beside = "ls"


class HangingCallBlocksOthers(FaultCheck):
    """A call that hangs does not block other servers.

    What it checks
        A tool of a stdio server never answers. A tool of another server is called meanwhile, and has its result within three
        seconds.

    Why
        Then one bad server takes down all of them.

    How to fix
        Give each server a connection, a queue and a limit of its own.
    """

    code = "GWP-161"
    tools = (ScriptedTool(name="gwp161_@", steps=(ScriptStep("hang"),)), ScriptedTool(name="gwp161ok_@"))


class FrozenServerHurtsOthers(FaultCheck):
    """A server that stands still hurts no other, and is used again when it goes on.

    What it checks
        A stdio server does nothing for two seconds. A call of another server has its result within three seconds, and afterwards
        the frozen one answers.

    Why
        A laptop that swaps, a garbage collector, a debugger: servers stand still, and go on.

    How to fix
        Never wait for one server on the way of another.
    """

    code = "GWP-167"
    tools = (ScriptedTool(name="gwp167_@", steps=(ScriptStep("freeze", seconds=2.0),)), ScriptedTool(name="gwp167ok_@"))
    comes_back = True


class HangingCallHidesTheList(FaultCheck):
    """The list of tools does not wait for a call that hangs.

    What it checks
        A tool of a stdio server never answers. Meanwhile the tools are listed, and the list comes within three seconds.

    Why
        A client that connects meanwhile would see nothing.

    How to fix
        List from what is known, or ask beside the call.
    """

    code = "GWP-169"
    servers = ("ls",)
    tools = (ScriptedTool(name="gwp169_@", steps=(ScriptStep("hang"),)), ScriptedTool(name="gwp169ok_@"))

    async def play(self, lab: Lab) -> None:
        lab.require_gateway("Without a gateway between, lists are those of the server.")
        route = next(iter(lab.routes(self)))
        client, record = await lab.new_client(route), lab.record_on(route)
        tool = lab.exposed(route, self.tools[0].name)
        hanging = asyncio.create_task(
            client.request(
                record, "tools/call", f'"name":"{tool}","arguments":{{}}', name=tool, timeout_s=2 * UNDER_WAY_S + 1
            )
        )
        await asyncio.sleep(UNDER_WAY_S)
        await (await lab.new_client(route)).request(record, "tools/list", label="list", timeout_s=AT_ONCE_S)
        await hanging

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("list"):
            if "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"the list did not come within {AT_ONCE_S:g} s")
