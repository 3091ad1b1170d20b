"""GW-005."""

from __future__ import annotations

from pactgate.conformance.message import ExchangeView
from pactgate.conformance.rule import SessionRule
from pactgate.protocol.versions import BATCHING_VERSION


class BatchNotNegotiated(SessionRule):
    """Messages come in arrays only where revision 2025-03-26 was negotiated, and never with initialize among them.

    What it checks
        An array in the place of a message stands only after 2025-03-26 was negotiated, and none contains `initialize`.

    Why
        No other revision has batches; a peer refuses the whole array.

    How to fix
        Send messages one by one. That is legal everywhere.

    Reference
        Base protocol 2025-03-26, Batching; Lifecycle, Initialization; all revisions.
    """

    code = "GW-005"
    spec = "https://modelcontextprotocol.io/specification/2025-03-26/basic#batching"
    category = "messages"

    def on_exchange(self, view: ExchangeView) -> None:
        exchange = view.exchange
        for name, value, by in (
            ("request", exchange.request, exchange.sender),
            ("response", exchange.response, exchange.sender.other),
        ):
            if not isinstance(value, list):
                self.seen += value is not None
                continue
            if any(message.get("method") == "initialize" for message in value):
                self.fault(view, f"/{name}", "A batch contains initialize.", by=by)
            if view.version == BATCHING_VERSION:
                self.seen += 1
            elif view.version is None and self.session.handshake is None and self.session.initialize is None:
                self.unjudged("There is a batch, but the capture does not tell which revision was negotiated.")
            else:
                text = f"A batch was sent, and the revision is {view.version or 'not 2025-03-26'}."
                self.fault(view, f"/{name}", text, by=by)
