"""Calls whose answer is kept, known again by who asks and the exact bytes asked: answered without being judged again.

What reads, resolves, bounds and checks a call looks at nothing but those bytes, the caller's rights, the rules in force and the catalog:
for the same of each the verdict is the same, and a kept answer should cost little more than finding it. Rates, the cache itself
and the stamp are asked every time; an answer that needs more than its stamp goes the way of all calls. Must not: recognise a call across
a change of the catalog or of the rules.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pactgate.catalog.connections import Connections
from pactgate.catalog.index import ToolIndex
from pactgate.core.context import ExecutionContext
from pactgate.pipeline.call import FRAME_BYTES, Call
from pactgate.pipeline.post_gates import Stamp
from pactgate.pipeline.tool_policy import Rulebook, ToolRules
from pactgate.policy.cache_policy import Keys
from pactgate.policy.rate_limits import RatePolicy
from pactgate.policy.result_cache import Recall
from pactgate.protocol.messages import Request

_MOST: Final = 1024
_MAX_PARAMS_BYTES: Final = 4096
"""Together at most a few MiB."""


class _Known(Struct, frozen=True):
    """A call whose bytes passed every gate that judges bytes, and whose answer was kept."""

    index: ToolIndex
    book: Rulebook
    rules: ToolRules
    requested: str
    via: str | None
    keys: Keys


class Recognition:
    def __init__(self, connections: Connections, recall: Recall, rates: RatePolicy, stamp: Stamp) -> None:
        self._connections = connections
        self._recall = recall
        self._rates = rates
        self._stamp = stamp
        self._known: dict[tuple[str, frozenset[str], str | None, bytes | None], _Known] = {}

    def answer(self, ctx: ExecutionContext, request: Request, book: Rulebook) -> bytes | None:
        """The kept answer to a call that is known; None where it has to go the way of all calls. Raises RATE_LIMITED."""
        if not self._known:
            return None
        caller = ctx.caller
        known = self._known.get((caller.subject, caller.roles, caller.scope, request.params))
        if known is None or known.book is not book or known.index is not self._connections.catalog.tools:
            return None
        tool = known.rules.tool
        kept = self._recall.kept(known.keys, tool.server)
        if kept is None or not self._stamp.is_enough(kept.value, caller, known.rules, len(request.id) + FRAME_BYTES):
            return None
        ctx.requested, ctx.via, ctx.gate = known.requested, known.via, "rate"
        ctx.bind(tool)
        self._rates.admit(caller.subject, tool)
        self._recall.count_hit()
        ctx.gate = Stamp.name
        return self._stamp.again(ctx, tool, kept)

    def note(self, call: Call, keys: Keys) -> None:
        """A call that has just been answered from the cache. One that says more than name and arguments is read anew each time."""
        rules = call.bound
        if call.progress_token is not None or call.caller_limit_ms is not None or call.meta or rules.tool.header_params:
            return
        if len(call.params or b"") > _MAX_PARAMS_BYTES:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        caller = call.ctx.caller
        self._known[caller.subject, caller.roles, caller.scope, call.params] = _Known(
            self._connections.catalog.tools, call.book, rules, call.requested, call.ctx.via, keys
        )
