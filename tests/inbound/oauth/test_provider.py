from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pactgate.config.sections.oauth import Issuer
from pactgate.core.failures import GatewayFailure
from pactgate.inbound.oauth.provider import Provider
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.documents import MAX_DOCUMENT_BYTES, DocumentClient
from tests.support.identity_provider import JWKS, METADATA, IdentityProvider

OPENID = "/.well-known/openid-configuration"


@asynccontextmanager
async def asking(server: IdentityProvider, *, jwks_uri: str | None = None) -> AsyncIterator[Provider]:
    client = HttpClient()
    issuer = Issuer(issuer=server.issuer, audiences=("a",), jwks_uri=jwks_uri)
    try:
        yield Provider(issuer, DocumentClient(client, "auth.issuers", [server.issuer]).fetch)
    finally:
        await client.close()


@pytest.mark.parametrize("path", ["", "/realms/x"])
async def test_keys_are_found_by_the_metadata(path: str) -> None:
    async with IdentityProvider(path=path) as server, asking(server) as provider:
        document = await provider.load_keys()
        assert document.keys == server.key_set()
        await provider.load_keys()
        assert server.asked == [METADATA + path, JWKS, JWKS], "metadata is kept"


async def test_openid_metadata_will_do() -> None:
    async with IdentityProvider(path="/x") as server, asking(server) as provider:
        server.responses[METADATA + "/x"] = 404, b"{}"
        facts = {"issuer": server.issuer, "jwks_uri": f"http://127.0.0.1:{server.port}{JWKS}"}
        server.responses[f"/x{OPENID}"] = 200, json.dumps(facts).encode()
        assert (await provider.load_keys()).keys == server.key_set()


@pytest.mark.parametrize("suffix", ["/", "/other", "?x"])
async def test_metadata_about_another_issuer_is_not_believed(suffix: str) -> None:
    async with IdentityProvider() as server, asking(server) as provider:
        facts = {"issuer": server.issuer + suffix, "jwks_uri": f"{server.issuer}{JWKS}"}
        server.responses[METADATA] = 200, json.dumps(facts).encode()
        with pytest.raises(GatewayFailure, match="another issuer"):
            await provider.load_keys()


@pytest.mark.parametrize(
    "uri", ["http://127.0.0.2:1/keys", "http://idp.example/keys", "https://10.0.0.1/keys", "file:///etc/passwd"]
)
async def test_keys_elsewhere_must_be_at_a_public_address(uri: str) -> None:
    async with IdentityProvider() as server, asking(server) as provider:
        server.responses[METADATA] = 200, json.dumps({"issuer": server.issuer, "jwks_uri": uri}).encode()
        with pytest.raises(GatewayFailure, match="not public"):
            await provider.load_keys()


@pytest.mark.parametrize(
    "answer",
    [(200, b"<html>"), (200, b"[]"), (500, b"{}"), (302, b"{}"), (200, b"{" + b" " * MAX_DOCUMENT_BYTES + b"}")],
    ids=["html", "list", "error", "redirect", "large"],
)
async def test_what_is_no_key_set_is_an_error(answer: tuple[int, bytes]) -> None:
    async with IdentityProvider() as server, asking(server, jwks_uri=f"{server.issuer}{JWKS}") as provider:
        server.responses[JWKS] = answer
        with pytest.raises(GatewayFailure):
            await provider.load_keys()


async def test_the_age_of_keys_is_read() -> None:
    async with IdentityProvider() as server, asking(server) as provider:
        server.max_age_s = 77
        assert (await provider.load_keys()).max_age_s == 77
