"""GW-048."""

from __future__ import annotations

from pactgate.conformance.rule import SessionRule


class CapabilitiesDisagree(SessionRule):
    """The capture's capability block is what the server itself advertised.

    What it checks
        `server_capabilities` equals the `capabilities` in the answer to `initialize`, or, in a session without a handshake,
        in the latest answer to `server/discover`.

    Why
        The invariants about capabilities go by the block. If it is not the server's own, they judge somebody else.

    How to fix
        Let the recorder copy the block from the answer; if it does, look for two servers behind one label.

    Reference
        Capture format, server_capabilities; Lifecycle, Capability Negotiation; all revisions.
    """

    code = "GW-048"
    spec = "basic/lifecycle#capability-negotiation"
    category = "capability"
    if_nothing = "Neither initialize nor server/discover was answered with a result."

    def at_end(self) -> None:
        session = self.session
        answer = session.handshake or session.discovery
        if answer is None:
            return
        said = answer.result.get("capabilities")
        if not isinstance(said, dict):
            self.fault(answer, "/result", "The answer says nothing of the server's capabilities.")
        elif session.head.capabilities is None:
            self.unjudged("The capture has no server_capabilities.")
        else:
            self.seen += 1
            if said != session.head.capabilities:
                self.fault(answer, "/result/capabilities", "server_capabilities of the capture says something else.")
