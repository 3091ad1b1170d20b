"""Reads capabilities: whether one is advertised, and the settings inside it; and the base of rules about messages that need one."""

from __future__ import annotations

from typing import Any, ClassVar

from pactgate.conformance.message import RecordedMessage, as_object
from pactgate.conformance.rule import RequirementLevel, SessionRule


def is_advertised(value: Any) -> bool:
    """A capability is advertised by a member that is neither null nor false."""
    return value is not None and value is not False


def has(capabilities: Any, *path: str) -> bool:
    """Whether a path such as `resources.subscribe` is advertised."""
    value: Any = capabilities
    for name in path:
        value = as_object(value).get(name)
    return is_advertised(value)


class NeededCapabilityRule(SessionRule):
    """A rule about the first message of each method in `needed`: the server must advertise the capability, early or late."""

    needed: ClassVar[dict[str, tuple[str, ...]]]
    sentence: ClassVar[str]

    def prepare(self) -> None:
        self._first: dict[str, RecordedMessage] = {}

    def on_message(self, message: RecordedMessage) -> None:
        self._first.setdefault(message.method, message)

    def at_end(self) -> None:
        advertised = self.session.advertised
        for method, message in self._first.items():
            if advertised is None:
                self.unjudged("The capture does not tell what the server advertised.")
                continue
            self.seen += 1
            if not has(advertised, *self.needed[method]):
                text = self.sentence.format(method=method, capability=".".join(self.needed[method]))
                self.fault(message, "/method", text, self.level_of(method))

    def level_of(self, method: str) -> RequirementLevel | None:
        """The level of a breach by this method, where it is not that of the rule."""
        return None
