"""INV-004."""

from __future__ import annotations

from collections import Counter

from pactgate.conformance.capabilities import is_advertised
from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage
from pactgate.conformance.rule import SessionRule

_CAPABILITY_OF = {
    "tools": "tools",
    "resources": "resources",
    "prompts": "prompts",
    "completion": "completions",
    "logging": "logging",
}


class CapabilityAlwaysFails(SessionRule):
    """A server that advertised a capability does not error on every call to it.

    What it checks
        For each advertised capability with at least one answered call (`tools/*`, `resources/*`, `prompts/*`, `completion/*`,
        `logging/*`), at least one answer is a result. A tool result with `isError` is a result. Requests without an answer
        are not counted. A single call that failed is enough to fail, and is marked as weak evidence.

    Why
        A capability that never works is worse than none: clients offer it to people and models.

    How to fix
        Don't advertise what is not there; or mend it.

    Reference
        Lifecycle, Capability Negotiation; all revisions.
    """

    code = "INV-004"
    spec = "basic/lifecycle#capability-negotiation"
    category = "capability"
    if_nothing = "The server advertised none of the capabilities this invariant is about."
    selects = RESPONSES & FROM_SERVER

    def prepare(self) -> None:
        self._answers: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._first_error: dict[str, RecordedMessage] = {}

    def on_message(self, message: RecordedMessage) -> None:
        capability = _CAPABILITY_OF.get(message.method.partition("/")[0])
        if capability is None:
            return
        self._answers[capability] += 1
        if message.is_error:
            self._errors[capability] += 1
            self._first_error.setdefault(capability, message)

    def at_end(self) -> None:
        declared = self.session.declared or {}
        for capability in _CAPABILITY_OF.values():
            if not is_advertised(declared.get(capability)):
                continue
            self.seen += 1
            errors = self._errors[capability]
            if not errors or errors < self._answers[capability]:
                continue
            calls = "the only call" if errors == 1 else f"each of {errors} calls"
            self.fault(
                self._first_error[capability],
                "/error",
                f"The capability {capability} was advertised, but {calls} to it was answered with an error.",
            )
            if errors == 1:
                self.note(f"Weak evidence: there was one call to {capability} only.")
