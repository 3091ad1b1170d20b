"""GW-035."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.message import FROM_SERVER, RESPONSES, RecordedMessage, as_list, as_object
from pactgate.conformance.rule import ModernRule, quoted
from pactgate.protocol.messages import MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION
from pactgate.protocol.modern import CAPABILITIES_KEY, PROTOCOL_VERSION_KEY


class ErrorDataIncomplete(ModernRule):
    """The errors about versions and capabilities carry what the client needs to do better.

    What it checks
        -32022 has `data.supported`, a list that is not empty, without the requested version and within what
        `server/discover` lists; and `data.requested`, the version of the request. -32021 has `data.requiredCapabilities`,
        an object that the request did not already declare.

    Why
        The client picks its next version from the list. Without it, or with a wrong one, it can only guess.

    How to fix
        Build the data from the request and from the same list that discovery shows.

    Reference
        Schema, UnsupportedProtocolVersionError, MissingRequiredClientCapabilityError; revision 2026-07-28.
    """

    code = "GW-035"
    spec = "schema#unsupportedprotocolversionerror"
    category = "errors"
    selects = RESPONSES & FROM_SERVER

    def prepare(self) -> None:
        self._listed: BoundedDict[list[object]] = BoundedDict(limit=100)

    def on_message(self, message: RecordedMessage) -> None:
        data = as_object(message.error.get("data"))
        if message.code == UNSUPPORTED_VERSION:
            self.seen += 1
            self._check_version(message, data.get("supported"), data.get("requested"))
        elif message.code == MISSING_CLIENT_CAPABILITY:
            self.seen += 1
            wanted = data.get("requiredCapabilities")
            declared = as_object(message.request_meta().get(CAPABILITIES_KEY))
            if not isinstance(wanted, dict):
                self.fault(message, "/error/data", "-32021 has no object requiredCapabilities.")
            elif _covers(declared, wanted):
                self.fault(
                    message, "/error/data/requiredCapabilities", "The request declared all that -32021 asks for."
                )

    def _check_version(self, message: RecordedMessage, supported: object, requested: object) -> None:
        versions = as_list(supported)
        if not versions or not all(isinstance(version, str) for version in versions):
            self.fault(message, "/error/data/supported", "-32022 does not list the supported versions.")
        elif requested in versions:
            self.fault(message, "/error/data/supported", f"{quoted(requested)} is refused, and listed as supported.")
        else:
            self._listed[message] = versions
        sent = message.request_meta().get(PROTOCOL_VERSION_KEY)
        if message.request is not None and requested != sent:
            text = f"requested is {quoted(requested)}, but the request names {quoted(sent)}."
            self.fault(message, "/error/data/requested", text)

    def at_end(self) -> None:
        discovery = self.session.discovery
        known = None if discovery is None else discovery.result.get("supportedVersions")
        for message, versions in self._listed.items():
            if isinstance(known, list) and any(version not in known for version in versions):
                text = "-32022 lists a version that server/discover does not list."
                self.fault(message, "/error/data/supported", text)


def _covers(declared: object, wanted: object) -> bool:
    """Whether everything wanted is among the declared, at every depth."""
    if not isinstance(wanted, dict):
        return True
    held = as_object(declared)
    return bool(wanted) and all(name in held and _within(held[name], below) for name, below in wanted.items())


def _within(declared: object, wanted: object) -> bool:
    return not isinstance(wanted, dict) or not wanted or _covers(declared, wanted)
