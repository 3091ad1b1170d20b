"""GWP-086."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.progress.cancelling import CancellationCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import RequirementLevel


class CancellationByClosingLost(CancellationCheck):
    """A call whose stream a modern client closes is cancelled at the server.

    What it checks
        A modern client closes the stream of its call while a server works; within four seconds the server sees its own stream closed, or
        gets `notifications/cancelled` (over stdio, or legacy).

    Why
        Closing the stream is the only way for a modern client to cancel over HTTP. Otherwise the server goes on with work that nobody
        wants.

    How to fix
        Watch the connection of the client, and cancel at the server in the words of its era.

    Reference
        Streamable HTTP, Cancellation: closing the response stream must be treated as cancellation; 2026-07-28.
    """

    code = "GWP-086"
    spec = "basic/utilities/cancellation"
    level = RequirementLevel.MUST
    since = "2026-07-28"
    eras = ("modern",)
    tools = (ScriptedTool(name="gwp086_@", steps=(ScriptStep("until_cancelled", seconds=6),)),)
