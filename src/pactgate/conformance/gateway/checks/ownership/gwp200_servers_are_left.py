"""GWP-200."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.ownership.ending import EndCheck

import signal
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.ownership.ending import judge_end, play_end
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep
from pactgate.conformance.rule import Evidence, RequirementLevel


class ServersAreLeft(EndCheck):
    """A server that does not want to end ends with its gateway.

    What it checks
        A stdio server ignores the end of its input and SIGTERM. The gateway gets SIGTERM; ten seconds later no process of this
        server is left.

    Why
        Processes that nobody owns hold ports, files and memory, and add up with every restart.

    How to fix
        Close its input, wait, send SIGTERM, wait, send SIGKILL, to the whole process group.

    Reference
        Lifecycle, Shutdown of stdio: close the input, then SIGTERM, then SIGKILL; all revisions.
    """

    code = "GWP-200"
    level = RequirementLevel.SHOULD
    tools = (ScriptedTool(name="gwp200_@", steps=(ScriptStep("stay"),)),)
    by = signal.SIGTERM
