"""What the gateway fetches from an identity provider: metadata (RFC 8414, OpenID Connect Discovery), keys, introspections.

Documents come through the gateway's own HTTP client, which bounds them and checks addresses. Must not: follow a document that is about
another issuer, or wait without a bound.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from pactgate.config.sections.oauth import Issuer
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.oauth.key_set import KeyDocument
from pactgate.protocol.oauth_metadata import metadata_urls

FETCH_TIMEOUT_S: Final = 5.0
METADATA_AGE_S: Final = 24 * 3600.0
_MAX_AGE: Final = re.compile(r"(?:^|[ ,])max-age=([0-9]{1,9})(?:$|[ ,])", re.IGNORECASE)


class FetchedDocument(Protocol):
    """A response, whole."""

    status: int
    body: bytes

    def header(self, name: bytes) -> str:
        """The value of a header, or nothing."""


class FetchDocument(Protocol):
    """Fetches one document; posts the form where there is one. Raises `GatewayFailure`; whoever calls it bounds the time."""

    async def __call__(self, url: str, *, form: bytes | None = None, authorization: str = "") -> FetchedDocument: ...


class Provider:
    """One identity provider, as its issuer's settings name it."""

    def __init__(self, issuer: Issuer, fetch: FetchDocument, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._metadata: dict[str, Any] = {}
        self._metadata_until = 0.0

    async def load_keys(self) -> KeyDocument:
        async with asyncio.timeout(FETCH_TIMEOUT_S):
            url = self._issuer.jwks_uri or await self._endpoint("jwks_uri")
            document = await self._fetch(url)
        found = _MAX_AGE.search(document.header(b"cache-control"))
        return KeyDocument(_json(document, "the key set"), float(found[1]) if found else None)

    async def introspect(self, form: bytes, authorization: str) -> dict[str, Any]:
        """What the provider says about a token."""
        own = self._issuer.introspection
        async with asyncio.timeout(FETCH_TIMEOUT_S):
            url = (own and own.url) or await self._endpoint("introspection_endpoint")
            return _json(await self._fetch(url, form=form, authorization=authorization), "the introspection")

    async def _endpoint(self, name: str) -> str:
        if self._clock() >= self._metadata_until:
            self._metadata = await self._discover()
            self._metadata_until = self._clock() + METADATA_AGE_S
        url = self._metadata.get(name)
        if not isinstance(url, str):
            raise _trouble(f"its metadata has no {name}")
        return url

    async def _discover(self) -> dict[str, Any]:
        trouble = ""
        for url in metadata_urls(self._issuer.issuer):
            document = await self._fetch(url)
            if document.status != 200:
                trouble = trouble or f"its metadata has the status {document.status}"
                continue
            metadata = _json(document, "its metadata")
            # Compared as it stands (RFC 8414, 3.3): otherwise one issuer of a provider could speak for another.
            if metadata.get("issuer") == self._issuer.issuer:
                return metadata
            trouble = "its metadata is about another issuer"
        raise _trouble(trouble)


def _json(document: FetchedDocument, what: str) -> dict[str, Any]:
    if document.status != 200:
        raise _trouble(f"{what} has the status {document.status}")
    try:
        value = msgspec.json.decode(document.body)
    except (msgspec.DecodeError, RecursionError):
        raise _trouble(f"{what} is not JSON") from None
    if not isinstance(value, dict):
        raise _trouble(f"{what} is not a JSON object")
    return value


def _trouble(why: str) -> GatewayFailure:
    return GatewayFailure(Kind.UPSTREAM_ERROR, why)
