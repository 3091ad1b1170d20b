"""What the stdio frontend remembers of its caller: the era its first request chose, and what a handshake said.

Pure: judges messages, runs nothing. Both eras never mix in one conversation: the first admitted request locks it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pactgate.core.principal import Principal
from pactgate.core.values import Caller, CallerChannel, SessionNotifier
from pactgate.protocol import legacy, messages, modern, versions
from pactgate.protocol.legacy import Phase
from pactgate.protocol.messages import Notification, Rejection, Request
from pactgate.protocol.versions import Era

STDIO: Final = "stdio"
"""What the one session of a pipe goes by."""


class StdioSession:
    """`era` is None until a request has been admitted; `version` is what a handshake agreed on."""

    def __init__(self, principal: Principal, scope: str | None = None, view: str | None = None) -> None:
        self.era: Era | None = None
        self.version: str | None = None
        self.principal = principal
        self.scope = scope
        self.view = view
        self.standing: SessionNotifier | None = None
        """How the caller is told things outside its requests, once it is known."""
        self._phase = Phase.NEW
        self._client = ""
        self._capabilities: dict[str, Any] = {}

    def admit(self, request: Request, channel: CallerChannel) -> Caller | Rejection:
        """Who asks, as the kernel is to see it, or why the request has no place here."""
        is_enveloped = modern.has_envelope(request)
        if self.era is Era.LEGACY and is_enveloped:
            why = "This connection was opened with initialize; a request here has no modern envelope."
            return Rejection(messages.INVALID_REQUEST, why, request.id)
        if self.era is Era.MODERN and request.method == "initialize":
            return _not_in_this_era(request)
        if self.era is Era.MODERN or is_enveloped:
            return self._admit_modern(request, channel)
        return self._admit_legacy(request, channel)

    def take(self, notification: Notification) -> bool:
        """Note a lifecycle notification; True for one that somebody else should hear of."""
        if self.era is not Era.LEGACY:
            return False
        outcome = legacy.step(self._phase, notification)
        self._phase = outcome.phase
        return outcome.rejection is None and notification.method != legacy.INITIALIZED

    def reopen(self) -> None:
        """The handshake failed; another may be tried."""
        self.era = self.version = None
        self._phase = Phase.NEW

    @property
    def is_ready(self) -> bool:
        """Whether a handshake is complete: from then on the caller may be told things."""
        return self._phase is Phase.READY

    def caller(self, channel: CallerChannel) -> Caller:
        """The caller of a handshake era; before the handshake it is taken to speak the newest revision."""
        return Caller(
            principal=self.principal,
            era=Era.LEGACY,
            version=self.version or versions.LATEST_LEGACY,
            channel=channel,
            scope=self.scope,
            view=self.view,
            client=self._client,
            capabilities=self._capabilities,
            session=STDIO,
            standing=self.standing,
        )

    def _admit_modern(self, request: Request, channel: CallerChannel) -> Caller | Rejection:
        route = modern.classify(request, None)
        if isinstance(route, Rejection):
            return route
        self.era = Era.MODERN
        return Caller(
            principal=self.principal,
            era=Era.MODERN,
            version=route.version,
            channel=channel,
            scope=self.scope,
            view=self.view,
            client=route.client,
            capabilities=route.capabilities,
            log_level=route.log_level,
        )

    def _admit_legacy(self, request: Request, channel: CallerChannel) -> Caller | Rejection:
        outcome = legacy.step(self._phase, request)
        if outcome.rejection is not None:
            return outcome.rejection
        if request.method == legacy.INITIALIZE:
            offer = legacy.read_initialize(request)
            if isinstance(offer, Rejection):
                return offer
            self.era = Era.LEGACY
            self.version = versions.negotiate(offer.version)
            self._client, self._capabilities = offer.client, offer.capabilities
        self._phase = outcome.phase
        return self.caller(channel)


def _not_in_this_era(request: Request) -> Rejection:
    supported = list(versions.MODERN_VERSIONS)
    why = f"This connection speaks revision {supported[-1]}, which has no initialize."
    return Rejection(
        messages.UNSUPPORTED_VERSION, why, request.id, {"supported": supported, "requested": _requested(request)}
    )


def _requested(request: Request) -> str:
    asked = messages.value(messages.members(request.params or b"{}").get("protocolVersion", msgspec.Raw(b'""')))
    return asked[:256] if isinstance(asked, str) else ""
