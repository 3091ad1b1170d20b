"""Fetches single documents for the gateway itself, such as the keys of an identity provider.

The addresses are those the operator wrote, and public ones over https (`egress.py`). No redirect is followed and no body beyond a bound is
read. Must not: decide what a document means; whoever asks bounds the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import EgressPolicy, named_origins
from pactgate.upstreams.http.proxy import NetworkSettings
from pactgate.upstreams.http.request_message import header_block
from pactgate.upstreams.http.response import HttpResponse

MAX_DOCUMENT_BYTES: Final = 512 * 1024
_FORM: Final = ("Content-Type", "application/x-www-form-urlencoded")


class DocumentClient:
    """`name` stands for whose documents they are in messages; `named` are the URLs the operator wrote."""

    def __init__(self, client: HttpClient, name: str, named: Iterable[str | None]) -> None:
        self._client = client
        self._egress = EgressPolicy(name, named_origins(named, ()), network=NetworkSettings(environ=os.environ))

    async def fetch(self, url: str, *, form: bytes | None = None, authorization: str = "") -> HttpResponse:
        """Get a document, or post a form. Raises `GatewayFailure`."""
        try:
            return await self._fetch(url, form, authorization)
        except GatewayFailure as failure:
            if failure.kind is not Kind.DESTINATION_REFUSED:
                raise
            why = "a document of it leads to an address that is not public; if you mean it, write that URL into the settings"
            raise GatewayFailure(failure.kind, why, server=failure.server) from None

    async def _fetch(self, url: str, form: bytes | None, authorization: str) -> HttpResponse:
        pairs = [("Accept", "application/json"), *([("Authorization", authorization)] if authorization else [])]
        if form is not None:
            pairs.append(_FORM)
        return await self._client.request(
            b"GET" if form is None else b"POST",
            self._egress.target(url),
            header_block(pairs),
            form or b"",
            max_body_bytes=MAX_DOCUMENT_BYTES,
            takes_any=True,
        )
