"""GWP-201."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.ownership.ending import EndCheck

import signal
from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks.ownership.ending import judge_end, play_end
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence


class ServersOutliveAKilledGateway(EndCheck):
    """No server is left when its gateway is killed.

    What it checks
        The gateway gets SIGKILL. Ten seconds later no process of its stdio servers is left.

    Why
        A gateway that is out of memory gets no chance to clean up; what it started must not need it.

    How to fix
        Hold the input of servers yourself, so that it ends with you, and give none of it to other processes.

    Reference
        Nothing in the specification; a server ends when its input ends.
    """

    code = "GWP-201"
    tools = (ScriptedTool(name="gwp201_@"),)
    by = signal.SIGKILL
