"""The kinds of requests that are recorded, counted and bounded: those that make a server do something or give something out.

Lists and greetings are answered from what the gateway knows, and have no kind. Must not: decide what a kind means; audit and rates do.
"""

from __future__ import annotations

from typing import Final

from pactgate.protocol.versions import METHODS, is_foreign

CALL: Final = "call"
READ: Final = "read"
PROMPT: Final = "prompt"
COMPLETION: Final = "completion"
SUBSCRIPTION: Final = "subscription"
TASK: Final = "task"
EXTENSION: Final = "extension"

KINDS: Final = {
    "tools/call": CALL,
    "resources/read": READ,
    "prompts/get": PROMPT,
    "completion/complete": COMPLETION,
    "resources/subscribe": SUBSCRIPTION,
    "resources/unsubscribe": SUBSCRIPTION,
    "subscriptions/listen": SUBSCRIPTION,
    **{method: TASK for method in METHODS if method.startswith("tasks/")},
}
"""The methods of the protocol that have a kind."""


def kind_of(method: str) -> str | None:
    """The kind of a request; None where it has none."""
    return KINDS.get(method) or (EXTENSION if is_foreign(method) else None)
