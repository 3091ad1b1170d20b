"""GW-028."""

from __future__ import annotations

from typing import Any

from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage
from pactgate.conformance.methods import INPUT_METHODS, INPUT_TAKERS
from pactgate.conformance.rule import ModernRule, pointer, quoted


class InputRequiredMisused(ModernRule):
    """A result asks for input only where that is allowed, and says what it wants.

    What it checks
        `input_required` answers only `tools/call`, `prompts/get` and `resources/read`; it has `inputRequests` or
        `requestState`, asks only for elicitation, sampling or roots, without ids of their own, and has no cache hints.

    Why
        Elsewhere no client looks for it, and without one of the two members it can't go on.

    How to fix
        Ask only from these three methods, and give each question a key.

    Reference
        Multi Round-Trip Requests, Server Requirements; revision 2026-07-28.
    """

    code = "GW-028"
    spec = "basic/patterns/mrtr#server-requirements-basic-workflow"
    category = "input"
    selects = RESPONSES & FROM_SERVER

    def on_message(self, message: RecordedMessage) -> None:
        result = message.result
        if result.get("resultType") != "input_required":
            return
        self.seen += 1
        if message.method not in INPUT_TAKERS:
            self.fault(
                message, "/result/resultType", f"{quoted(message.method)} can't be answered with input_required."
            )
        if result.get("inputRequests") is None and result.get("requestState") is None:
            self.fault(message, "/result", "The result has neither inputRequests nor requestState.")
        if not isinstance(result.get("requestState", ""), str):
            self.fault(message, "/result/requestState", "The requestState is not a string.")
        for hint in ("ttlMs", "cacheScope"):
            if hint in result:
                self.fault(message, f"/result/{hint}", "A result that asks for input can't be cached.")
        self._check_questions(message, result.get("inputRequests"))

    def _check_questions(self, message: RecordedMessage, questions: Any) -> None:
        if questions is None:
            return
        if not isinstance(questions, dict):
            self.fault(message, "/result/inputRequests", f"inputRequests is {quoted(questions)}, not an object.")
            return
        for name, question in questions.items():
            place = pointer("result", "inputRequests", name)
            method = question.get("method") if isinstance(question, dict) else None
            if not isinstance(method, str) or method not in INPUT_METHODS:
                self.fault(message, place, f"The question {quoted(name)} has the method {quoted(method)}.")
            elif "id" in question or "jsonrpc" in question:
                self.fault(message, place, f"The question {quoted(name)} is written as a message of its own.")
