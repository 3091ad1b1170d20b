"""Finds the `input_required` result that a retry of a modern session belongs to. Bounded.

All rules about retries share it, so that they agree. Must not: check anything.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pactgate.conformance.bounded import BoundedDict, Key, digest
from pactgate.conformance.message import RecordedMessage, as_object
from pactgate.conformance.methods import INPUT_TAKERS

_MAX_ASKED: Final = 1000


class InputRequired(Struct, frozen=True):
    """The parts of an `input_required` result that its retry is compared with."""

    method: str
    target: str
    arguments: str
    key: Key | None
    state: str | None
    kinds: dict[str, str]


class InputRequiredTracker:
    """The `input_required` results of a session so far."""

    def __init__(self) -> None:
        self._asked: BoundedDict[list[InputRequired]] = BoundedDict(_MAX_ASKED)
        self._states: BoundedDict[InputRequired] = BoundedDict(_MAX_ASKED)

    @property
    def has_forgotten(self) -> bool:
        return self._asked.has_forgotten or self._states.has_forgotten

    def ask(self, answer: RecordedMessage) -> None:
        """Add an `input_required` result."""
        request = answer.request
        if request is None or request.method not in INPUT_TAKERS:
            return
        state = answer.result.get("requestState")
        question = InputRequired(
            method=request.method,
            target=target_of(request),
            arguments=arguments_of(request),
            key=request.key,
            state=state if isinstance(state, str) else None,
            kinds={
                name: method
                for name, wanted in as_object(answer.result.get("inputRequests")).items()
                if isinstance(method := as_object(wanted).get("method"), str)
            },
        )
        place = (question.method, question.target)
        self._asked[place] = [*self._asked.get(place, [])[-9:], question]
        if question.state is not None:
            self._states[digest(question.state)] = question

    def issued(self, state: Any) -> InputRequired | None:
        """The result that issued this state."""
        return self._states.get(digest(state)) if isinstance(state, str) else None

    def parent(self, retry: RecordedMessage) -> InputRequired | None:
        """The latest result for the same target with the same state as the retry, or without one if the retry has none."""
        state = retry.params.get("requestState")
        asked = self._asked.get((retry.method, target_of(retry)), [])
        fitting = [question for question in asked if question.state == state]
        return next(
            (q for q in reversed(fitting) if q.arguments == arguments_of(retry)), fitting[-1] if fitting else None
        )


def is_retry(message: RecordedMessage) -> bool:
    return "inputResponses" in message.params or "requestState" in message.params


def target_of(request: RecordedMessage) -> str:
    value = request.params.get(INPUT_TAKERS.get(request.method, ""))
    return value if isinstance(value, str) else ""


def arguments_of(request: RecordedMessage) -> str:
    return digest(request.params.get("arguments"))
