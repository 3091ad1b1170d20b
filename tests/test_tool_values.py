"""What a call can do without a runner is in `test_tools.py`; here: what it does with the answer to a question."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from pactgate.tool_values import Call, NotAnswered


class Person:
    """A host whose client answers at once."""

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, message: str) -> None: ...

    def ask(self, question: str, kind: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_result(f"{question} {kind.__name__}")
        return answer


def test_a_plain_tool_waits_for_the_answer() -> None:
    assert Call(Person()).ask("How many?", int) == "How many? int"


async def test_an_async_tool_awaits_it() -> None:
    assert await Call(Person()).ask("Which?") == "Which? str"


def test_a_cancelled_call_asks_nobody() -> None:
    call = Call(Person())
    call.cancel()
    with pytest.raises(NotAnswered) as told:
        call.ask("How many?")
    assert told.value.reason == "cancelled"
