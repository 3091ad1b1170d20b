"""INV-005."""

from __future__ import annotations

from pactgate.capture.format import Body
from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage
from pactgate.conformance.rule import SessionRule, quoted

_TASKS = "2025-11-25"


class ToolResultMisshapen(SessionRule):
    """A successful tools/call result carries a content array or a structuredContent object, and a boolean isError when present.

    What it checks
        Each result of `tools/call` has an array `content` or an object `structuredContent`, which from 2026-07-28 on may be
        any JSON value; `isError`, where it is there, is true or false. Handles of tasks (2025-11-25) and modern results
        that ask for input or name a task are no tool results yet.

    Why
        Clients pass `content` on to the model. A result without it is silence, and a text in place of a boolean turns a
        failure into a success.

    How to fix
        Always send `content`, an empty array if there is nothing to say, and write `isError` as a boolean.

    Reference
        Tools, Tool Result; all revisions.
    """

    code = "INV-005"
    spec = "server/tools#tool-result"
    category = "result-shape"
    if_nothing = "No tools/call was answered with a result."
    selects = RESULTS & FROM_SERVER
    methods = frozenset({"tools/call"})

    def on_message(self, message: RecordedMessage) -> None:
        if self._is_other_kind(message):
            return
        self.seen += 1
        result = message.body["result"]
        if not isinstance(result, dict):
            self.fault(message, "/result", f"The result of tools/call is {quoted(result)}, not an object.")
            return
        if not isinstance(result.get("content"), list) and not self._has_structure(result, message.is_modern):
            self.fault(
                message,
                "/result",
                "The result of tools/call has neither a content array nor a structuredContent object.",
            )
        if "isError" in result and not isinstance(result["isError"], bool):
            self.fault(message, "/result/isError", f"isError is {quoted(result['isError'])}, not a boolean.")

    @staticmethod
    def _has_structure(result: Body, is_modern: bool) -> bool:
        if is_modern:
            return "structuredContent" in result
        return isinstance(result.get("structuredContent"), dict)

    @staticmethod
    def _is_other_kind(message: RecordedMessage) -> bool:
        if message.is_modern:
            return message.result.get("resultType") in ("input_required", "task")
        return (
            message.version in (_TASKS, None)
            and "task" in message.request_params()
            and isinstance(message.result.get("task"), dict)
        )
