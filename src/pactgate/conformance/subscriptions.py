"""One `subscriptions/listen` of a modern session: what was requested, what was granted, whether it has ended.

Must not: check anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pactgate.conformance.message import RecordedMessage, as_list, as_object

FILTER_OF: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
UPDATED: Final = "notifications/resources/updated"
_BOUNDARIES: Final = "/?#"
_LONGEST: Final = 8192


class RecordedSubscription:
    def __init__(self, requested: Any) -> None:
        self.is_granted = False
        self.has_ended = False
        self._requested = as_object(requested)
        self._granted: dict[str, Any] = {}
        self._uris: frozenset[str] = frozenset()

    def grant(self, notifications: Any) -> list[str]:
        """Take the acknowledgement. Returns the names of filters that it grants beyond the request."""
        self.is_granted = True
        self._granted = as_object(notifications)
        self._uris = _texts(self._granted.get("resourceSubscriptions"))
        return [name for name, value in self._granted.items() if _exceeds(value, self._requested.get(name))]

    def covers(self, notice: RecordedMessage) -> bool:
        """Whether this subscription allows a notification."""
        if notice.method == UPDATED:
            uri = notice.params.get("uri")
            return isinstance(uri, str) and any(place in self._uris for place in around(uri))
        if notice.method == "notifications/tasks":
            return notice.params.get("taskId") in as_list(self._granted.get("taskIds"))
        if notice.method == "notifications/cancelled":
            return True  # one of the two ways to end a subscription
        return bool(self._granted.get(FILTER_OF.get(notice.method, "")))


def around(uri: str) -> Iterator[str]:
    """The URI and the URIs that enclose it: `a://b/c` lies in `a://b/` and `a://b`."""
    yield uri
    if len(uri) <= _LONGEST:
        for end, letter in enumerate(uri):
            if letter in _BOUNDARIES and end:
                yield uri[:end]
                yield uri[: end + 1]


def _exceeds(granted: Any, requested: Any) -> bool:
    if isinstance(granted, list):
        return not _texts(granted) <= _texts(requested)
    return bool(granted) and not requested


def _texts(value: Any) -> frozenset[str]:
    return frozenset(text for text in as_list(value) if isinstance(text, str))
