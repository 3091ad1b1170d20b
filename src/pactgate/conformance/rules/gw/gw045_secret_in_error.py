"""GW-045."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage, as_list, as_object
from pactgate.conformance.rule import SessionRule, pointer, texts_in

_KINDS: Final = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"),
    "an AWS key": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22,100})"),
    "a Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,100}"),
    "an API key": re.compile(r"\b(?:sk|rk|pk)[-_](?:live[-_]|test[-_]|proj-|ant-)?[A-Za-z0-9_-]{20,200}\b"),
    "a Google key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "a JSON web token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,1000}"),
    "a bearer token": re.compile(r"\bbearer\s+[A-Za-z0-9._~+/-]{16,2000}", re.IGNORECASE),
    "a password in a URL": re.compile(r"\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@]{1,200}:[^\s:/@]{3,200}@", re.IGNORECASE),
    "a password": re.compile(
        r"\b(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?token)[\"']?\s*[=:]\s*[\"']?[^\s\"',;*<{\[]{6,200}",
        re.IGNORECASE,
    ),
}
_SCANNED_CHARS: Final = 20_000
_MAX_TEXTS: Final = 1000


class SecretInError(SessionRule):
    """No error gives a secret away.

    What it checks
        The message and data of JSON-RPC errors, and the texts of tool results with `isError`, hold nothing that looks like a
        key, a token, or a password in a URL or a setting. What was found is named by its kind and place, never repeated.

    Why
        Errors go to models, logs and people who were never meant to hold the server's credentials.

    How to fix
        Write error texts yourself instead of passing on what a library says, and mask known secrets by value.

    Reference
        Tools, Security Considerations (sanitize outputs); all revisions.
    """

    code = "GW-045"
    spec = "server/tools#security-considerations"
    category = "security"
    selects = RESPONSES & FROM_SERVER

    def on_message(self, message: RecordedMessage) -> None:
        if message.is_error:
            self._check(message, texts_in(message.body.get("error"), "/error", _MAX_TEXTS))
        elif message.result.get("isError") is True:
            blocks = enumerate(as_list(message.result.get("content")))
            texts = [(pointer("result", "content", n, "text"), as_object(block).get("text")) for n, block in blocks]
            self._check(message, ((place, text) for place, text in texts if isinstance(text, str)))

    def _check(self, message: RecordedMessage, texts: Iterator[tuple[str, str]]) -> None:
        self.seen += 1
        for place, text in texts:
            for kind, pattern in _KINDS.items():
                if pattern.search(text[:_SCANNED_CHARS]):
                    self.fault(message, place, f"The error holds what looks like {kind}.")
                    break
