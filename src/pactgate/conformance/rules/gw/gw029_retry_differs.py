"""GW-029."""

from __future__ import annotations

from typing import Any, Final

from pactgate.conformance.input_required import InputRequired, arguments_of, is_retry
from pactgate.conformance.message import FROM_CLIENT, REQUESTS, RecordedMessage, as_object
from pactgate.conformance.rule import ModernRule, RequirementLevel, pointer, quoted

_SHAPES: Final = {
    "elicitation/create": ("action", str),
    "sampling/createMessage": ("role", str),
    "roots/list": ("roots", list),
}


class RetryDiffers(ModernRule):
    """A request that answers questions repeats the one that was asked about, with a new id.

    What it checks
        A request with `inputResponses` or `requestState` has the method, name and arguments of an earlier request that was
        answered with `input_required`, and another id; it answers all questions and no others (a SHOULD), and each answer
        has the shape its question asks for.

    Why
        The server remembers nothing: what differs from the first request is a different call.

    How to fix
        Keep the original parameters, add the answers and the state as it came, and take a new id.

    Reference
        Multi Round-Trip Requests, Client Requirements; revision 2026-07-28.
    """

    code = "GW-029"
    spec = "basic/patterns/mrtr#client-requirements-basic-workflow"
    category = "input"
    selects = REQUESTS & FROM_CLIENT

    def on_message(self, message: RecordedMessage) -> None:
        if not is_retry(message):
            return
        self.seen += 1
        question = self.session.input_required.parent(message)
        if question is not None:
            self._compare(message, question)
        elif self.session.input_required.has_forgotten:
            self.unjudged("There were more questions than the checker remembers.")
        elif "requestState" not in message.params:
            self.fault(message, "/params/inputResponses", "The request answers questions that were not asked about it.")

    def _compare(self, message: RecordedMessage, question: InputRequired) -> None:
        if message.key == question.key:
            self.fault(message, "/id", "The retry has the id of the request it repeats.")
        if arguments_of(message) != question.arguments:
            self.fault(message, "/params/arguments", "The retry has other arguments than the request it repeats.")
        answers = as_object(message.params.get("inputResponses"))
        for name in (name for name in question.kinds if name not in answers):
            self.fault(message, "/params", f"The question {quoted(name)} is not answered.", RequirementLevel.SHOULD)
        for name, answer in answers.items():
            self._check_answer(message, name, answer, question.kinds.get(name))

    def _check_answer(self, message: RecordedMessage, name: str, answer: Any, kind: str | None) -> None:
        place = pointer("params", "inputResponses", name)
        if kind is None:
            self.fault(message, place, f"There was no question {quoted(name)}.", RequirementLevel.SHOULD)
        elif kind in _SHAPES:
            member, wanted = _SHAPES[kind]
            if not isinstance(as_object(answer).get(member), wanted):
                self.fault(message, place, f"The answer to {kind} has no {member}.")
