"""GWP-017."""

from __future__ import annotations

from pactgate.conformance.gateway.check import DefinitionCheck
from pactgate.conformance.gateway.script import ScriptedTool


class DefinitionMembersVanish(DefinitionCheck):
    """A tool definition arrives with members that nobody knows.

    What it checks
        A definition has a member `x-gwp`; it is listed with it.

    Why
        Extensions describe tools by further members, and clients that know them rely on them.

    How to fix
        Pass the definition on as the server wrote it; change its name only.

    Reference
        Schema reference, Tool; all revisions.
    """

    code = "GWP-017"
    spec = "schema#tool"
    tools = (ScriptedTool(name="gwp017_@", members='"inputSchema":{"type":"object"},"x-gwp":{"kept":[1,null]}'),)
    pointers = ("/x-gwp",)
