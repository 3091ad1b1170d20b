"""INV-007."""

from __future__ import annotations

import re
from typing import Final

from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.capabilities import is_advertised
from pactgate.conformance.message import RESPONSES, RecordedMessage, as_object
from pactgate.conformance.methods import REVISIONS
from pactgate.conformance.rule import SessionRule, quoted
from pactgate.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

_SHOWN_CHARS: Final = 1000
_SAYS_SO: Final = re.compile(
    r"\bmethod[\s_-]*not[\s_-]*found\b"
    r"|\b(?:unknown|unsupported|unrecogni[sz]ed|unhandled|undefined|no such)\s+(?:json-?rpc\s+|rpc\s+|mcp\s+)?method\b"
    r"|\bmethod\b[^.;,\n]{0,80}?\b(?:was |is |could )?not (?:be )?(?:found|supported|implemented|recogni[sz]ed|known)\b"
    r"|\bmethod\b[^.;,\n]{0,80}?\b(?:does not|doesn't) exist\b"
    r"|\bno handler\b[^.;,\n]{0,40}?\bmethod\b|\bno method (?:named|called)\b",
    re.IGNORECASE,
)
_OTHER_THINGS: Final = re.compile(
    r"\b(?:tool|resource|prompt|template|uri|file|task|cursor|session)s?\b", re.IGNORECASE
)
_GENERAL_CODES: Final = frozenset({INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR})


class MethodNotFoundCode(SessionRule):
    """A method-not-found error uses JSON-RPC code -32601.

    What it checks
        An error that says the method is unknown has the code -32601. It says so by its message ("Method not found", "Unknown
        method", ...), or by what it answers: a method that no revision knows, that nothing advertised, that never succeeded
        in this session, answered with one of the general codes -32600, -32602 or -32603. A tool, prompt or resource that
        was not found is another matter.

    Why
        -32601 is how a client learns what a server can't do: it stops asking, or falls back to another revision.

    How to fix
        Answer every method you don't implement with -32601, before looking at its parameters.

    Reference
        JSON-RPC 2.0, section 5.1; Base protocol, Responses; all revisions.
    """

    code = "INV-007"
    spec = "https://www.jsonrpc.org/specification#error_object"
    category = "error-envelope"
    if_nothing = "No error says that a method is unknown."
    selects = RESPONSES

    def prepare(self) -> None:
        self._suspects: BoundedDict[RecordedMessage] = BoundedDict(limit=1000)
        self._working: BoundedDict[bool] = BoundedDict(limit=1000)

    def on_message(self, message: RecordedMessage) -> None:
        if message.is_success:
            if message.method not in REVISIONS:
                self._working[message.method] = True
            return
        code = message.code
        if code is None:
            return
        if code == METHOD_NOT_FOUND:
            self.seen += 1
        elif _says_so(message.error.get("message")):
            self.fault(message, "/error/code", f"The error says that the method is unknown, but its code is {code}.")
        elif code in _GENERAL_CODES and self._is_foreign(message):
            self._suspects[message.method] = message

    def _is_foreign(self, message: RecordedMessage) -> bool:
        is_open = message.is_modern or self.session.handshake is not None
        return bool(message.method) and message.method not in REVISIONS and is_open

    def at_end(self) -> None:
        for method, message in self._suspects.items():
            if method in self._working or self._is_announced(method):
                continue
            self.fault(
                message,
                "/error/code",
                f"No revision knows the method {quoted(method)} and nothing advertised it, but the code is {message.code}.",
            )

    def _is_announced(self, method: str) -> bool:
        advertised = self.session.advertised or {}
        family = method.partition("/")[0]
        extensions = [as_object(advertised.get(name)) for name in ("experimental", "extensions")]
        return is_advertised(advertised.get(family)) or any(extensions)


def _says_so(text: object) -> bool:
    if not isinstance(text, str):
        return False
    start = text[:_SHOWN_CHARS]
    found = _SAYS_SO.search(start)
    return found is not None and not _OTHER_THINGS.search(start[: found.start()] + _between(found[0]))


def _between(found: str) -> str:
    """What stands between "method" and the verdict, without a quoted name: `method "tools/x" not found` is about a method."""
    return re.sub(r"[\"'`][^\"'`]*[\"'`]|\S*/\S*", "", found)
