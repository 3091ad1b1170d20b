"""INV-003."""

from __future__ import annotations

from pactgate.conformance.capabilities import is_advertised
from pactgate.conformance.message import FROM_SERVER, RESULTS, RecordedMessage
from pactgate.conformance.rule import SessionRule, quoted
from pactgate.protocol.versions import Era

_CAPABILITY_OF = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}


class ListWithoutCapability(SessionRule):
    """A server that answers tools/list, resources/list, or prompts/list advertised the matching capability at initialize.

    What it checks
        For each of the three lists that was answered with a result, `server_capabilities` of the capture has the capability;
        null and false do not count. In a modern session without that block, the answer to `server/discover` takes its place,
        and where there is none either, nothing can be said. Error answers claim nothing.

    Why
        Clients ask only for what was advertised. What is not advertised is never seen, or is a sign of two servers behind
        one name.

    How to fix
        Advertise the capability in the answer to `initialize` or `server/discover`, or answer the list with -32601.

    Reference
        Lifecycle, Capability Negotiation; Tools, Resources, Prompts, Capabilities; all revisions.
    """

    code = "INV-003"
    spec = "basic/lifecycle#capability-negotiation"
    category = "capability"
    if_nothing = "No list was answered with a result."
    selects = RESULTS & FROM_SERVER
    methods = frozenset(_CAPABILITY_OF)

    def prepare(self) -> None:
        self._answered: dict[str, RecordedMessage] = {}

    def on_message(self, message: RecordedMessage) -> None:
        self._answered.setdefault(message.method, message)

    def at_end(self) -> None:
        block = self.session.declared
        if self._answered and block is None and self.session.era is Era.MODERN:
            self.unjudged("The capture has neither server_capabilities nor an answer to server/discover.")
            return
        for method, answer in self._answered.items():
            self.seen += 1
            capability = _CAPABILITY_OF[method]
            value = None if block is None else block.get(capability)
            if not is_advertised(value):
                self.fault(answer, "", f"{method} was answered, but the capability {capability} was not advertised.")
            elif not isinstance(value, dict):
                self.note(f"The capability {capability} should be an object, not {quoted(value)}.")
        self._compare()

    def _compare(self) -> None:
        block, handshake = self.session.head.capabilities, self.session.handshake
        said = None if handshake is None else handshake.result.get("capabilities")
        if isinstance(said, dict) and (block or {}) != said:
            self.note("server_capabilities of the capture differs from the capabilities in the answer to initialize.")
