"""What definitions cost a client that lists them: bytes, and tokens by the rule of thumb of four bytes each.

The limits are those that clients are known to have; a gateway does not have them, so what is beyond one is a hint and no problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

BYTES_PER_TOKEN: Final = 4
MAX_TOOLS: Final = {"Cursor": 40, "VS Code": 128}
"""Tools that a client passes to its model at most; it leaves out the rest."""
MANY_BYTES: Final = 50 * 1024
"""From here on, definitions take so much of a model's context that a view or a search surface is worth it."""


class Cost(NamedTuple):
    """What a group of tools costs. `kind` is tool, server, view or all."""

    kind: str
    name: str
    tools: int
    bytes: int

    @property
    def tokens(self) -> int:
        return -(-self.bytes // BYTES_PER_TOKEN)

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "tools": self.tools, "bytes": self.bytes, "tokens": self.tokens}


def costs_of(tools: Iterable[Mapping[str, Any]], views: Iterable[Mapping[str, Any]] = ()) -> list[Cost]:
    """All tools together, each view, each server and each tool, the largest of each kind first."""
    rows = list(tools)
    servers: dict[str, list[int]] = {}
    for row in rows:
        servers.setdefault(str(row.get("serverId")), []).append(_size(row))
    everything = Cost("all", "all tools", len(rows), sum(map(_size, rows)))
    groups = (
        [
            Cost("view", str(row.get("view")), int(row.get("toolCount") or 0), int(row.get("bytes") or 0))
            for row in views
        ],
        [Cost("server", name, len(sizes), sum(sizes)) for name, sizes in servers.items()],
        [Cost("tool", str(row.get("exposedName")), 1, _size(row)) for row in rows],
    )
    return [everything, *(cost for group in groups for cost in sorted(group, key=lambda one: (-one.bytes, one.name)))]


def hints_of(cost: Cost) -> list[str]:
    """What clients make of so many tools."""
    hints = [
        f"{client} passes {most} of these {cost.tools} tools to its model at most."
        for client, most in MAX_TOOLS.items()
        if cost.tools > most
    ]
    if cost.bytes > MANY_BYTES:
        hints.append(f"The definitions have {cost.bytes} bytes, about {cost.tokens} tokens, in every conversation.")
    if hints:
        hints.append("A view shows each client what it needs, or lets it search: see docs/views.md.")
    return hints


def _size(row: Mapping[str, Any]) -> int:
    size = row.get("definitionBytes")
    return size if isinstance(size, int) else 0
