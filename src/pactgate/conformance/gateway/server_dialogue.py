"""What clients say to a scripted server that is more than one request: cancellations, log levels, capabilities, answers to questions.

Legacy clients say it once for a session, or in a message of its own; modern clients with each request. Must not: send, or record.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STATE: Final = 'gwp \u00e9 "quoted" \\ /+=&#'
"""The state of an input-required result begins so, and ends with the number of the round."""
NOT_ASKED: Final = "the client can not be asked"
"""What a server says instead of asking a client that has not declared the capability."""
PREFIX: Final = "io.modelcontextprotocol/"
_NEEDED: Final = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
_MAX_SESSIONS: Final = 10_000

Send = Callable[[str], None]
"""Puts one message on the stream of the request."""


class ScriptedCall(Struct):
    """One request that is being answered. `is_gone` says whether the connection that it came on is closed."""

    message: dict[str, Any]
    is_modern: bool
    send: Send
    exchange: str
    session: str = ""
    is_gone: Callable[[], bool] = lambda: False
    status: int = 200
    rounds: int = 0
    """How many times it has come to a question."""
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def id(self) -> str:
        return json.dumps(self.message["id"])

    @property
    def params(self) -> dict[str, Any]:
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def label(self) -> str:
        label = self.params.get("name") or self.params.get("uri") or self.message["method"]
        return label if isinstance(label, str) else ""


class Question(Struct):
    """A request of ours that a client has not answered yet."""

    label: str
    answered: threading.Event = field(default_factory=threading.Event)


class Dialogue:
    """The state of one server. A legacy session is known by its id; over stdio there is one, without an id."""

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self._running: dict[tuple[str, str], ScriptedCall] = {}
        self._levels: dict[str, str] = {}
        self._capabilities: dict[str, dict[str, Any]] = {}

    def begin(self, call: ScriptedCall) -> None:
        self._running[call.session, call.id] = call

    def end(self, call: ScriptedCall) -> None:
        self._running.pop((call.session, call.id), None)

    def cancel(self, notice: ScriptedCall) -> str:
        """Act on `notifications/cancelled`. What the cancelled call is about, or nothing if none runs."""
        call = self._running.get((notice.session, json.dumps(notice.params.get("requestId"))))
        if call is None:
            return ""
        call.cancelled.set()
        return call.label

    def open(self, call: ScriptedCall) -> None:
        capabilities = call.params.get("capabilities")
        if len(self._capabilities) < _MAX_SESSIONS and isinstance(capabilities, dict):
            self._capabilities[call.session] = capabilities

    def set_level(self, call: ScriptedCall) -> bool:
        """Whether there is such a level."""
        level = call.params.get("level")
        if level not in LEVELS or len(self._levels) >= _MAX_SESSIONS:
            return False
        self._levels[call.session] = level
        return True

    def takes(self, call: ScriptedCall, level: str) -> bool:
        """Whether the client wants log messages of this level: a modern one that asks for none gets none."""
        wanted = call.meta.get(f"{PREFIX}logLevel") if call.is_modern else self._levels.get(call.session, LEVELS[0])
        return wanted in LEVELS and LEVELS.index(wanted) <= LEVELS.index(level)

    def missing(self, call: ScriptedCall, questions: Mapping[str, Raw]) -> dict[str, Any]:
        """The capabilities that the questions need and the client has not declared."""
        own = call.meta.get(f"{PREFIX}clientCapabilities") if call.is_modern else self._capabilities.get(call.session)
        declared = own if isinstance(own, dict) else {}
        needed: dict[str, Any] = {}
        for question in questions.values():
            message = json.loads(bytes(question))
            name = _NEEDED[message["method"]]
            mode = "url" if message.get("params", {}).get("mode") == "url" else ""
            if name not in declared or (mode and mode not in declared[name]):
                needed[name] = {mode: {}} if mode else {}
        return needed


def questions_of(data: str) -> dict[str, Raw]:
    """The requests of a step, by their keys."""
    return msgspec.json.decode(data.encode(), type=dict[str, Raw])


def rounds_done(call: ScriptedCall) -> int:
    """How many rounds of questions a modern client has been through, by the state that it brings back."""
    state = call.params.get("requestState")
    number = state.removeprefix(STATE) if isinstance(state, str) else ""
    return int(number) if number.isdigit() else 0
