"""GW-001."""

from __future__ import annotations

from pactgate.conformance.message import ExchangeView, RecordedMessage, Role
from pactgate.conformance.rule import SessionRule, quoted


class MalformedMessage(SessionRule):
    """Every message is JSON-RPC 2.0: a request, a notification, or an answer with either a result or an error.

    What it checks
        `jsonrpc` is "2.0"; a message with a `method` has a text there and neither result nor error, and `params` are an
        object; one without has exactly one of result and error; `notifications/*` has no id, and whatever has no id gets no
        answer.

    Why
        The other side can't tell what a message is if it is two things at once, or none.

    How to fix
        Let one encoder write the envelope of every message.

    Reference
        Base protocol, Messages; all revisions.
    """

    code = "GW-001"
    spec = "basic#messages"
    category = "messages"

    def on_exchange(self, view: ExchangeView) -> None:
        request = view.exchange.request
        if isinstance(request, dict) and request.get("id") is None and "method" in request:
            answered = view.exchange.response
            if answered is not None:
                self.fault(view, "/response", "A message without an id was answered.")

    def on_message(self, message: RecordedMessage) -> None:
        self.seen += 1
        body = message.body
        if body.get("jsonrpc") != "2.0":
            self.fault(message, "/jsonrpc", f'jsonrpc is {quoted(body.get("jsonrpc"))}, not "2.0".')
        if message.role is Role.RESPONSE:
            self._check_answer(message)
            return
        method = body["method"]
        if not isinstance(method, str):
            self.fault(message, "/method", f"The method is {quoted(method)}, not a text.")
        elif method.startswith("notifications/") and "id" in body:
            self.fault(message, "/id", f"The notification {quoted(method)} has an id.")
        if "result" in body or "error" in body:
            self.fault(message, "", "The message is a request and an answer at once.")
        if "params" in body and not isinstance(body["params"], dict):
            self.fault(message, "/params", f"The params are {quoted(body['params'])}, not an object.")

    def _check_answer(self, message: RecordedMessage) -> None:
        if "result" in message.body and "error" in message.body:
            self.fault(message, "", "The answer has both a result and an error.")
        elif "result" not in message.body and "error" not in message.body:
            self.fault(message, "", "The message has neither a method nor a result nor an error.")
        elif "result" in message.body and not isinstance(message.body["result"], dict):
            self.fault(message, "/result", f"The result is {quoted(message.body['result'])}, not an object.")
