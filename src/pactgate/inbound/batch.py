"""Arrays of messages, which only revision 2025-03-26 knows: taken apart here, each element then goes its ordinary way.

Must not: run anything. Bounds the number of elements; every element is decoded by the same rules as a message alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from pactgate.protocol import messages
from pactgate.protocol.json_limits import MAX_VALUES, check_shape, has_more_values
from pactgate.protocol.messages import Message, Rejection, Request

MAX_ELEMENTS: Final = 100

_elements: Final = msgspec.json.Decoder(list[Raw])


def is_batch(text: bytes) -> bool:
    return text[:64].lstrip().startswith(b"[")


def read_batch(text: bytes) -> list[Message | Rejection] | Rejection:
    """The elements in order; a bad one is a `Rejection` among good ones, as JSON-RPC asks."""
    if has_more_values(text, MAX_VALUES):
        return Rejection(messages.PARSE_ERROR, f"A batch may have at most {MAX_VALUES} values.")
    misshapen = check_shape(text, messages.MAX_DEPTH + 1)
    if misshapen is not None:
        return Rejection(messages.PARSE_ERROR, misshapen)
    try:
        text.decode()
        elements = _elements.decode(text)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return Rejection(messages.PARSE_ERROR, "The batch is not JSON.")
    if not elements:
        return Rejection(messages.INVALID_REQUEST, "The batch is empty.")
    if len(elements) > MAX_ELEMENTS:
        return Rejection(messages.INVALID_REQUEST, f"A batch may have at most {MAX_ELEMENTS} messages.")
    seen: set[str | int] = set()
    return [_judge(messages.decode(bytes(element)), seen) for element in elements]


def _judge(message: Message | Rejection, seen: set[str | int]) -> Message | Rejection:
    if isinstance(message, Request):
        if message.method == "initialize":
            return Rejection(messages.INVALID_REQUEST, "initialize can't be part of a batch.", message.id)
        if message.key in seen:
            return Rejection(messages.INVALID_REQUEST, "Two requests of the batch have the same id.", message.id)
        seen.add(message.key)
    return message


def needs_answer(elements: list[Message | Rejection]) -> bool:
    return any(isinstance(element, Request | Rejection) for element in elements)


def join(answers: list[bytes]) -> bytes:
    return b"[" + b",".join(answers) + b"]"


class BatchAnswers:
    """Collects the answers to one array in the order of its messages. `on_complete` gets them once, or None where there are none."""

    def __init__(self, on_complete: Callable[[bytes | None], None]) -> None:
        self._on_complete = on_complete
        self._answers: list[bytes | None] = []
        self._missing = 0
        self._is_closed = False

    def expect(self) -> int:
        """The place of the next answer."""
        self._missing += 1
        self._answers.append(None)
        return len(self._answers) - 1

    def put(self, place: int, body: bytes | None) -> None:
        """An answer, or None for a request that was cancelled, which is never answered."""
        self._missing -= 1
        self._answers[place] = body
        self._complete()

    def close(self) -> None:
        """Nothing more is expected."""
        self._is_closed = True
        self._complete()

    def _complete(self) -> None:
        if self._is_closed and not self._missing:
            wanted = [body for body in self._answers if body is not None]
            self._on_complete(join(wanted) if wanted else None)
