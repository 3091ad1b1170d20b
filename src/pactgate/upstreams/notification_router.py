"""What a server says beside its answers, and for whom: progress by token, log messages and changes by request.

A log message is passed on only where it is certain whose it is: on the stream of one request, or of the only one under way with nobody
else served lately; it may hold what another caller said. Must not: answer, or decide what anything means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import DecodeError, Raw
from msgspec.structs import replace

from pactgate.core.contract import REQUEST_KEY
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Notification, encode_json

OnProgress = Callable[[dict[str, Raw]], None]
OnNotice = Callable[[Notification], None]

LOG_MESSAGE: Final = "notifications/message"
_LATE_LOG_S: Final = 5.0
"""How long after another caller was served a log message may still be about that one."""


class NotificationRouter:
    """Who listens to what, on one conversation. `end_listen` is called for a subscription the server ends."""

    def __init__(self, end_listen: Callable[[str | int], None], clock: Callable[[], float]) -> None:
        self.unattributed_logs = 0
        self._end_listen = end_listen
        self._clock = clock
        self.has_listeners = False
        self.owner: str | None = None
        """Whose request was sent last."""
        self._owned_since = -_LATE_LOG_S
        self._progress: dict[str | int, OnProgress] = {}
        self._logs: dict[str | int, OnNotice] = {}
        self._listens: dict[str | int, OnNotice] = {}

    def note_owner(self, owner: str) -> None:
        """A request of another caller is sent. Where many clients call, this is nearly every request."""
        if self.owner is not None:
            self._owned_since = self._clock()
        self.owner = owner

    def listen(
        self, id_: int, on_progress: OnProgress | None, on_log: OnNotice | None, on_change: OnNotice | None = None
    ) -> None:
        """Note who hears what the server says about a request."""
        if on_progress is not None:
            self._progress[id_] = on_progress
        if on_log is not None:
            self._logs[id_] = on_log
        if on_change is not None:
            self._listens[id_] = on_change
        self._count()

    def forget(self, id_: str | int) -> None:
        """Nothing more is relayed about a request that has been answered or given up."""
        self._progress.pop(id_, None)
        self._logs.pop(id_, None)
        self._listens.pop(id_, None)
        self._count()

    def _count(self) -> None:
        self.has_listeners = bool(self._progress or self._logs or self._listens)

    def take(self, notification: Notification, for_request: int | None, pending: int) -> bool:
        """Whether it is about a request, and so was for one of these listeners or nobody."""
        if notification.method == "notifications/progress":
            self._relay_progress(notification)
            return True
        if notification.method == LOG_MESSAGE:
            self._relay_log(notification, for_request, pending)
            return True
        return bool(self._listens) and self._is_of_a_listen(notification, for_request)

    def _relay_progress(self, notification: Notification) -> None:
        try:
            members = messages.members(notification.params or b"{}")
            token = messages.id_key(bytes(members.pop("progressToken", Raw(b"null"))))
        except DecodeError:
            return
        relay = None if token is None else self._progress.get(token)
        if relay is not None:
            relay(members)

    def _relay_log(self, notification: Notification, for_request: int | None, pending: int) -> None:
        key: str | int | None = for_request
        if key is None and len(self._logs) == 1 and pending - len(self._listens) == 1:
            owned_s = self._clock() - self._owned_since
            key = next(iter(self._logs)) if owned_s >= _LATE_LOG_S else None
        relay = None if key is None else self._logs.get(key)
        if relay is not None:
            relay(notification)
        else:
            self.unattributed_logs += 1

    def _is_of_a_listen(self, notification: Notification, for_request: int | None) -> bool:
        """What came on the stream of a listen, is tagged with its id, or ends it."""
        key: str | int | None = for_request
        if notification.method == "notifications/cancelled":
            key = member_id(notification, "requestId")
            if key is None or key not in self._listens:
                return False
            self._end_listen(key)
            return True
        if key not in self._listens:
            key = _subscription(notification)
        relay = None if key is None else self._listens.get(key)
        if relay is None:
            return False
        relay(notification)
        return True


def attributed(notification: Notification) -> tuple[Notification, int | None]:
    """A log message of our own runner without the request that it names, and that request."""
    members = messages.members(notification.params or b"{}")
    meta = members.pop("_meta", None)
    held = None if meta is None else messages.value(bytes(meta))
    key = held.get(REQUEST_KEY) if isinstance(held, dict) else None
    return replace(notification, params=encode_json(members)), key if isinstance(key, int) else None


def member_id(notification: Notification, name: str) -> str | int | None:
    """The request id a notification names in one of its members."""
    try:
        raw = messages.members(notification.params or b"{}").get(name)
    except DecodeError:
        return None
    return None if raw is None else messages.id_key(bytes(raw))


def _subscription(notification: Notification) -> str | int | None:
    """The listen a notification is tagged with."""
    try:
        meta = messages.members(bytes(messages.members(notification.params or b"{}").get("_meta", Raw(b"{}"))))
    except DecodeError:
        return None
    raw = meta.get(modern.SUBSCRIPTION_ID_KEY)
    return None if raw is None else messages.id_key(bytes(raw))
