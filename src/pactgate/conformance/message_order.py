"""Restores the order in which messages passed. An exchange pairs a request with its response, but other messages may lie between.

Where the recorder numbered the messages (`seq`), the number decides; elsewhere an exchange ends before the next begins.
Must not: hold back more than a bounded number of messages.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from pactgate.conformance.message import ExchangeView, RecordedMessage, messages_of

_MAX_WAITING: Final = 10_000


class MessageOrder:
    """Takes exchanges in the order of their requests and returns messages in the order in which they passed."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, RecordedMessage]] = []
        self._count = 0

    def take(self, view: ExchangeView) -> list[RecordedMessage]:
        """The messages up to and including this exchange's request."""
        messages = messages_of(view)
        begun = view.exchange.seq
        if begun is None:
            return self.rest() + messages
        due = self._before(begun)
        latest = begun
        for message in messages:
            if message.pointer.startswith("/request"):
                due.append(message)
                continue
            latest = max(latest, message.seq) if message.seq is not None else latest
            self._count += 1
            heappush(self._waiting, (message.seq if message.seq is not None else latest, self._count, message))
        while len(self._waiting) > _MAX_WAITING:
            due.append(heappop(self._waiting)[2])
        return due

    def rest(self) -> list[RecordedMessage]:
        return self._before(None)

    def _before(self, seq: int | None) -> list[RecordedMessage]:
        due = []
        while self._waiting and (seq is None or self._waiting[0][0] < seq):
            due.append(heappop(self._waiting)[2])
        return due
