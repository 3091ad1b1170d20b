"""Checks tokens that are no JWT by asking their provider (RFC 7662).

Equal tokens are asked about once at a time. Answers are remembered for a minute at most by the guard, refusals shortly and here, so that
neither a popular nor a made-up token makes a request of its own each time. Must not: keep a token, or log one.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_plus

from pactgate.config.sections.oauth import Introspection
from pactgate.core.failures import GatewayFailure
from pactgate.inbound.oauth.provider import Provider
from pactgate.inbound.oauth.token_form import TokenRefusedError

MAX_AGE_S: Final = 60.0
INACTIVE_S: Final = 10.0
MAX_INACTIVE: Final = 10_000
DOWN_S: Final = 2.0


class ProviderDownError(Exception):
    """The provider can't be asked, so nobody knows what the token is worth."""


class Introspector:
    """Asks one provider, as the client that the settings name."""

    def __init__(
        self, provider: Provider, settings: Introspection, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._provider = provider
        self._clock = clock
        user = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"  # RFC 6749, 2.3.1
        self._authorization = "Basic " + base64.b64encode(user.encode()).decode()
        self._inactive: OrderedDict[bytes, float] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[dict[str, Any]]] = {}
        self._down_until = 0.0

    def is_inactive(self, digest: bytes) -> bool:
        """Whether the provider has just said that it does not know this token."""
        return self._inactive.get(digest, 0.0) > self._clock()

    async def ask(self, token: str, digest: bytes) -> dict[str, Any]:
        """The claims of a token that is active. Raises `TokenRefusedError` or `ProviderDownError`."""
        if self.is_inactive(digest):
            raise _inactive()
        if self._clock() < self._down_until:
            raise ProviderDownError("it could not be asked a moment ago")
        task = self._asking.get(digest)
        if task is None:
            task = self._asking[digest] = asyncio.get_running_loop().create_task(self._ask(token))
            task.add_done_callback(lambda ended: self._asked(digest, ended))
        answer = await asyncio.shield(task)
        if answer.get("active") is not True:
            raise _inactive()
        return answer

    def close(self) -> None:
        for task in self._asking.values():
            task.cancel()

    async def _ask(self, token: str) -> dict[str, Any]:
        form = f"token={quote_plus(token)}&token_type_hint=access_token".encode()
        try:
            return await self._provider.introspect(form, self._authorization)
        except (GatewayFailure, TimeoutError) as fault:
            self._down_until = self._clock() + DOWN_S
            why = fault.message if isinstance(fault, GatewayFailure) else "it did not answer in time"
            raise ProviderDownError(why) from None

    def _asked(self, digest: bytes, task: asyncio.Task[dict[str, Any]]) -> None:
        del self._asking[digest]
        if task.cancelled() or task.exception() is not None or task.result().get("active") is True:
            return
        self._inactive[digest] = self._clock() + INACTIVE_S
        self._inactive.move_to_end(digest)
        if len(self._inactive) > MAX_INACTIVE:
            self._inactive.popitem(last=False)


def _inactive() -> TokenRefusedError:
    return TokenRefusedError("its provider says that it is not active", is_guess=True)
