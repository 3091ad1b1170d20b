"""GW-036."""

from __future__ import annotations

from typing import Any, Final

from pactgate.conformance.message import RESPONSES, RecordedMessage, as_list, as_object
from pactgate.conformance.rule import SessionRule
from pactgate.protocol.messages import (
    HEADER_MISMATCH,
    MISSING_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
)

_URL_ELICITATION: Final = -32042
_URL_ELICITATION_VERSION: Final = "2025-11-25"
_DEFINED: Final = frozenset({HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION})
_RESERVED: Final = range(-32099, -32019)


class ErrorCodeReserved(SessionRule):
    """Error codes that the protocol reserves are used only where it defines them.

    What it checks
        Modern traffic has neither -32002 nor -32042, nor another undefined code from -32020 to -32099. Before, -32042 occurs
        only in 2025-11-25, and lists elicitations by URL, each with its id.

    Why
        A reserved code will mean something else to the next client.

    How to fix
        Use -32603, or a number outside of -32768 to -32000, and say in `data` what happened.

    Reference
        Base protocol, Error Codes; Elicitation; all revisions.
    """

    code = "GW-036"
    spec = "https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes"
    category = "errors"
    selects = RESPONSES

    def on_message(self, message: RecordedMessage) -> None:
        code = message.code
        if code is None:
            return
        self.seen += 1
        if message.is_modern:
            if code == RESOURCE_NOT_FOUND or (code in _RESERVED and code not in _DEFINED):
                self.fault(message, "/error/code", f"Modern traffic must not have the code {code}.")
        elif code == _URL_ELICITATION:
            self._check_elicitations(message)

    def _check_elicitations(self, message: RecordedMessage) -> None:
        if message.version is None:
            self.unjudged("The capture does not tell which revision was negotiated.")
        elif message.version != _URL_ELICITATION_VERSION:
            self.fault(message, "/error/code", f"-32042 does not exist in {message.version}.")
        else:
            asked = as_list(as_object(message.error.get("data")).get("elicitations"))
            if not asked or not all(map(_is_url_elicitation, asked)):
                text = "-32042 lists no elicitations by URL with their ids."
                self.fault(message, "/error/data/elicitations", text)


def _is_url_elicitation(value: Any) -> bool:
    asked = as_object(value)
    return asked.get("mode") == "url" and all(isinstance(asked.get(name), str) for name in ("url", "elicitationId"))
