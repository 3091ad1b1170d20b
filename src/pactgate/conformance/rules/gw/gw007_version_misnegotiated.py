"""GW-007."""

from __future__ import annotations

from pactgate.conformance.message import RecordedMessage, Role, as_list, as_object
from pactgate.conformance.methods import REVISIONS
from pactgate.conformance.rule import LegacyRule, quoted
from pactgate.protocol.versions import KNOWN_VERSIONS


class VersionMisnegotiated(LegacyRule):
    """initialize agrees on a known revision, the requested one if the server has it, and nothing later goes beyond it.

    What it checks
        The `protocolVersion` in the answer to `initialize` is a known revision; it is the requested one if the server served
        that elsewhere in the capture or listed it among its supported ones; and no later message has a method that the
        agreed revision does not know. A request for a revision that does not exist gets another one as the answer, or an
        error that lists the supported ones.

    Why
        Both sides choose fields and methods by the agreed revision. A wrong one breaks calls that have nothing to do with it.

    How to fix
        Answer with the requested revision if you have it, else with the newest you have; guard new methods by the revision.

    Reference
        Lifecycle, Version Negotiation; revisions 2024-11-05 to 2025-11-25.
    """

    code = "GW-007"
    spec = "basic/lifecycle#version-negotiation"
    category = "lifecycle"

    def prepare(self) -> None:
        self._refused: list[tuple[RecordedMessage, str]] = []
        self._served: set[str] = set()

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.RESPONSE:
            if message.method == "initialize" and not message.is_from_client:
                self._on_handshake(message)
            return
        revisions = REVISIONS.get(message.method)
        if revisions is None or message.version is None or message.method == "initialize":
            return
        self.seen += 1
        if message.version not in revisions:
            self.fault(
                message,
                "/method",
                f"The {message.sender} uses {message.method}, which {message.version} does not have.",
            )

    def _on_handshake(self, message: RecordedMessage) -> None:
        requested = message.request_params().get("protocolVersion")
        if message.is_error:
            supported = as_list(as_object(message.error.get("data")).get("supported"))
            self._served |= {version for version in supported if isinstance(version, str)}
            if isinstance(requested, str) and requested not in KNOWN_VERSIONS:
                self.seen += 1
                if not supported:
                    text = f"The server refuses {quoted(requested)} and names no revision that it supports."
                    self.fault(message, "/error", text)
            return
        self.seen += 1
        answered = message.result.get("protocolVersion")
        if not isinstance(answered, str) or answered not in KNOWN_VERSIONS:
            self.fault(
                message, "/result/protocolVersion", f"The negotiated revision is {quoted(answered)}, which is none."
            )
            return
        self._served.add(answered)
        if isinstance(requested, str) and requested != answered:
            self._refused.append((message, requested))

    def at_end(self) -> None:
        for message, requested in self._refused:
            if requested in self._served:
                self.fault(
                    message,
                    "/result/protocolVersion",
                    f"The client asked for {requested}, which the server has, and got another revision.",
                )
