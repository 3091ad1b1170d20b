"""GWP-144."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, Family, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording
from pactgate.conformance.gateway.script import ScriptedResource
from pactgate.conformance.rule import Evidence, RequirementLevel


class UnknownResourceSucceeds(UnknownEntryCheck):
    """A resource that does not exist is an error.

    What it checks
        A client sends `resources/read` for a resource that no server has. It gets an error of JSON-RPC.

    Why
        An empty result says that it exists and has nothing in it.

    How to fix
        Answer with an error for a resource that no server has.

    Reference
        Resources, Error Handling: -32602 in 2026-07-28, -32002 before.
    """

    code = "GWP-144"
    spec = "server/resources#error-handling"
    resources = (ScriptedResource(uri="gwp://gwp144/@"),)
    method = "resources/read"
    member = "uri"
    nobody = "gwp://gwp144/nobody"
