"""GW-027."""

from __future__ import annotations

from typing import Final

from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage, as_object
from pactgate.conformance.rule import ModernRule, quoted
from pactgate.protocol.modern import CAPABILITIES_KEY

_CORE: Final = ("complete", "input_required")
_TASKS: Final = "io.modelcontextprotocol/tasks"


class ResultTypeMissing(ModernRule):
    """Every modern result says in resultType what it is.

    What it checks
        `resultType` is `complete` or `input_required`, or a value of an extension that the request declared: `task` needs
        `io.modelcontextprotocol/tasks`.

    Why
        A client has to treat an unknown kind of result as an invalid answer.

    How to fix
        Write `"resultType": "complete"` into every result that is one.

    Reference
        Base protocol, Result Types; revision 2026-07-28.
    """

    code = "GW-027"
    spec = "basic#resulttype"
    category = "envelope"
    selects = RESULTS & FROM_SERVER

    def on_message(self, message: RecordedMessage) -> None:
        kind = message.result.get("resultType")
        extensions = as_object(as_object(message.request_meta().get(CAPABILITIES_KEY)).get("extensions"))
        is_foreign = isinstance(kind, str) and kind not in (*_CORE, "task")
        if is_foreign and set(extensions) - {_TASKS}:
            self.unjudged(f"The resultType {quoted(kind)} may belong to an extension the checker does not know.")
            return
        self.seen += 1
        if "resultType" not in message.result:
            self.fault(message, "/result", "The result has no resultType.")
        elif kind == "task":
            if _TASKS not in extensions:
                self.fault(
                    message, "/result/resultType", f"The result is a task, but the request did not declare {_TASKS}."
                )
        elif kind not in _CORE:
            self.fault(message, "/result/resultType", f"The resultType {quoted(kind)} is not known.")
