"""Facts about the gateway as a client sees them: what does not exist for it is neither listed nor counted nor named (D24).

Must not: know what the facts are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pactgate.catalog.catalog import Catalog
from pactgate.config.selectors import matches

_BY_TOOL: Final = (("rateLimits", "tools"), ("limits", "toolArrayLimits"), ("timeouts", "toolOverrides"))
"""Settings by full name or pattern of tools."""
_OF_ALL: Final[Mapping[str, Any]] = {"leftOut": [], "hazards": [], "definitionsChanged": 0}
"""In the row of a server, what names or counts entries whoever may have them."""


def shown_facts(facts: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """The members `servers`, `tools` and those with settings for tools, as callers of the catalog see them; all others as they are."""
    shown = dict(facts)
    if catalog.access is None:
        return shown
    tools = catalog.access.tools
    if "servers" in facts:
        shown["servers"] = [_server(row, catalog) for row in facts["servers"] if row["serverId"] in catalog.servers]
    if "tools" in facts:
        shown["tools"] = [row for row in facts["tools"] if row["fullName"] in tools]
    for section, member in _BY_TOOL:
        if section in facts:
            own = {
                pattern: one
                for pattern, one in facts[section][member].items()
                if any(matches(pattern, tool) for tool in tools)
            }
            shown[section] = {**facts[section], member: own}
    return shown


def _server(row: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    server = row["serverId"]
    return {
        **row,
        **{name: value for name, value in _OF_ALL.items() if name in row},
        "toolCount": len(catalog.tools.entries(server)),
        "promptCount": len(catalog.prompts.entries(server)),
        "resourceCount": len(catalog.resources.entries(server)),
    }
