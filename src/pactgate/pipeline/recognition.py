"""Calls that were answered from the cache, known again by who asks and the exact bytes asked.

What reads, resolves, bounds and checks a call looks at nothing but those bytes, the caller's rights, the rules in force and the catalog:
for the same of each the verdict is the same, and a kept answer should cost no more than finding it. Rates, the cache itself and
everything after it are asked every time. Must not: recognise a call across a change of the catalog or of the rules.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct

from pactgate.catalog.connections import Connections
from pactgate.catalog.index import ToolIndex
from pactgate.core.model import Tool
from pactgate.pipeline.call import Call
from pactgate.pipeline.rules import Rulebook
from pactgate.policy.cache import Keys

_MOST: Final = 1024
_MAX_PARAMS_BYTES: Final = 4096
"""Together at most a few MiB."""


class _Known(Struct, frozen=True):
    """A call whose bytes passed every gate that judges bytes."""

    index: ToolIndex
    book: Rulebook
    requested: str
    via: str | None
    tool: Tool
    members: dict[str, Raw]
    keys: Keys


class Recognition:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._known: dict[tuple[str, frozenset[str], str | None, bytes | None], _Known] = {}

    def find(self, call: Call) -> bool:
        """Whether this very call was admitted before; then the call knows what its gates had found."""
        if not self._known:
            return False
        caller = call.ctx.caller
        known = self._known.get((caller.subject, caller.roles, caller.scope, call.params))
        if known is None or known.book is not call.book or known.index is not self._connections.catalog.tools:
            return False
        call.requested = call.ctx.requested = known.requested
        call.ctx.via = known.via
        call.members = dict(known.members)
        call.keys = known.keys
        call.bind(known.tool)
        return True

    def note(self, call: Call, keys: Keys) -> None:
        """A call that has just been answered from the cache. One that says more than name and arguments is read anew each time."""
        tool = call.bound.tool
        if call.progress_token is not None or call.caller_limit_ms is not None or call.meta or tool.header_params:
            return
        if len(call.params or b"") > _MAX_PARAMS_BYTES:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        caller = call.ctx.caller
        self._known[caller.subject, caller.roles, caller.scope, call.params] = _Known(
            self._connections.catalog.tools, call.book, call.requested, call.ctx.via, tool, call.members, keys
        )
