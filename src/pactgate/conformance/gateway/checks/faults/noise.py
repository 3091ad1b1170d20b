"""What servers write that is no answer hurts nobody."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.faults.neighbours import FaultCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class GarbageEndsTheServer(FaultCheck):
    """Lines that are no messages do not end a server.

    What it checks
        A tool of a stdio server writes three lines that are not JSON before it answers. Its call has its result, and so has a call
        of another server.

    Why
        Programs print: a warning of a library, a progress bar. Servers are not to do it, and do.

    How to fix
        Skip and log what can't be read.
    """

    code = "GWP-164"
    tools = (
        ScriptedTool(name="gwp164_@", steps=(ScriptStep("raw", "Downloading model ... 34 %", count=3),)),
        ScriptedTool(name="gwp164ok_@"),
    )
    faulty_succeeds = True


class AnswerToNobodyBreaks(FaultCheck):
    """An answer to a question that nobody asked is ignored.

    What it checks
        A tool of a stdio server first sends a response with an unknown id, then its own. Its call has its result, and so has a call
        of another server.

    Why
        Late answers after a timeout look just like this.

    How to fix
        Drop responses whose id you do not wait for.
    """

    code = "GWP-165"
    tools = (
        ScriptedTool(name="gwp165_@", steps=(ScriptStep("raw", '{"jsonrpc":"2.0","id":"gwp165-nobody","result":{}}'),)),
        ScriptedTool(name="gwp165ok_@"),
    )
    faulty_succeeds = True


class FloodHurtsOthers(FaultCheck):
    """A server that floods hurts no other.

    What it checks
        A tool of a stdio server writes 20,000 notifications before it answers. A call of another server has its result within three
        seconds, and afterwards the flooding server answers too.

    Why
        A loop in one server must not take the processor, or the memory, of all of them.

    How to fix
        Bound what is kept for each server, and drop notifications nobody waits for.
    """

    code = "GWP-166"
    tools = (
        ScriptedTool(
            name="gwp166_@",
            steps=(
                ScriptStep(
                    "raw",
                    '{"jsonrpc":"2.0","method":"notifications/gwp166","params":{"filler":"0123456789"}}',
                    count=20_000,
                ),
            ),
        ),
        ScriptedTool(name="gwp166ok_@"),
    )
    comes_back = True


class StrangeNotificationsBreak(FaultCheck):
    """Notifications about nothing are ignored.

    What it checks
        A tool of a stdio server cancels a request that nobody sent, and tells the progress of an unknown token. Its call has its
        result.

    Why
        Servers of other revisions, and servers with bugs, send such messages.

    How to fix
        Drop what belongs to nothing.
    """

    code = "GWP-168"
    tools = (
        ScriptedTool(
            name="gwp168_@",
            steps=(
                ScriptStep(
                    "raw", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gwp168"}}'
                ),
                ScriptStep(
                    "raw",
                    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"gwp168","progress":1}}',
                ),
            ),
        ),
        ScriptedTool(name="gwp168ok_@"),
    )
    faulty_succeeds = True
