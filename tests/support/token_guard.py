"""A guard that accepts access tokens of identity providers of a test, over the gateway's own HTTP client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pactgate.config.sections.auth import Auth
from pactgate.inbound.auth import Guard
from pactgate.inbound.oauth.access_tokens import AccessTokens
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.documents import DocumentClient
from tests.support.facing import Served, serving
from tests.support.identity_provider import AUDIENCE, IdentityProvider


def auth_for(provider: IdentityProvider, **settings: Any) -> Auth:
    """The section `auth` with one issuer, whose `settings` are as in a file."""
    issuer = {"issuer": provider.issuer, "audiences": [AUDIENCE], **settings}
    return msgspec.convert({"resource": AUDIENCE, "issuers": [issuer]}, Auth)


@asynccontextmanager
async def accepting(*sections: Auth) -> AsyncIterator[AccessTokens]:
    """The issuers of all these sections."""
    issuers = tuple(issuer for section in sections for issuer in section.issuers)
    auth = msgspec.structs.replace(sections[0], issuers=issuers)
    client = HttpClient()
    documents = DocumentClient(client, "auth.issuers", [one.issuer for one in issuers])
    tokens = AccessTokens(auth, documents.fetch)
    try:
        yield tokens
    finally:
        tokens.close()
        await client.close()


@asynccontextmanager
async def token_frontend(*sections: Auth) -> AsyncIterator[Served]:
    async with accepting(*sections) as tokens:
        guard = Guard(host="127.0.0.1", hosts=["gateway.example"], sources=[tokens], resource=tokens.resource)
        tokens.on_keys_removed(lambda: served.frontend.check_again())
        async with serving(guard=guard) as served:
            yield served
