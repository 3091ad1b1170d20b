"""GWP-085."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.progress.cancelling import CancellationCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import RequirementLevel


class CancellationByNoticeLost(CancellationCheck):
    """A call that a legacy client cancels is cancelled at the server.

    What it checks
        A legacy client sends `notifications/cancelled` while a server works; within four seconds the server gets one for its request,
        or sees its stream closed (modern, over HTTP).

    Why
        Otherwise the server goes on with work that nobody wants, and that may change things.

    How to fix
        Cancel the request that you sent to the server, in the words of its era, with its own id.

    Reference
        Cancellation, Behavior Requirements: receivers should stop processing the cancelled request; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-085"
    spec = "basic/utilities/cancellation"
    level = RequirementLevel.SHOULD
    eras = ("legacy",)
    tools = (ScriptedTool(name="gwp085_@", steps=(ScriptStep("until_cancelled", seconds=6),)),)
