"""INV-006."""

from __future__ import annotations

from pactgate.conformance.message import RESPONSES, RecordedMessage
from pactgate.conformance.rule import SessionRule, quoted


class ErrorMisshapen(SessionRule):
    """Every JSON-RPC error envelope carries an integer code and a string message.

    What it checks
        Wherever an answer has the member `error`, it is an object with an integer `code` (no text, no fraction, no boolean)
        and a string `message`. An empty message is legal, and noted.

    Why
        Clients choose what to do next by the code, and people read the message.

    How to fix
        Build errors in one place, with a number for the code and a sentence for the message.

    Reference
        Base protocol, Responses; JSON-RPC 2.0, section 5.1; all revisions.
    """

    code = "INV-006"
    spec = "basic#responses"
    category = "error-envelope"
    if_nothing = "No answer is an error."
    selects = RESPONSES

    def on_message(self, message: RecordedMessage) -> None:
        if "error" not in message.body:
            return
        self.seen += 1
        error = message.body["error"]
        if "result" in message.body:
            self.note(f"The answer in exchange {message.index} has both a result and an error.")
        if not isinstance(error, dict):
            self.fault(message, "/error", f"The error is {quoted(error)}, not an object.")
            return
        code, text = error.get("code"), error.get("message")
        if "code" not in error:
            self.fault(message, "/error", "The error has no code.")
        elif not isinstance(code, int) or isinstance(code, bool):
            self.fault(message, "/error/code", f"The code of the error is {quoted(code)}, not an integer.")
        if "message" not in error:
            self.fault(message, "/error", "The error has no message.")
        elif not isinstance(text, str):
            self.fault(message, "/error/message", f"The message of the error is {quoted(text)}, not a string.")
        elif not text:
            self.note(f"The message of the error in exchange {message.index} is empty.")
