"""GWP-071."""

from __future__ import annotations

from pactgate.conformance.gateway.checks.names.change import ChangeCheck
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep


class ChangeNotToldToModernClient(ChangeCheck):
    """A modern client hears that a list of tools has changed.

    What it checks
        A server adds a tool and notifies; within five seconds the client gets `notifications/tools/list_changed` on
        `subscriptions/listen`, and then finds the new tool in the list.

    Why
        Without it clients show the tools of yesterday until they are started again. A gateway that does not announce `listChanged`
        is not asked.

    How to fix
        Pass the notification on, and read the list of the server again before.

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
