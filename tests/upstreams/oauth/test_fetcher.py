"""Documents of a sign-in come from where they may, whole and small, or are refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.discovery import find_authorization_server, find_resource
from pactgate.upstreams.oauth.fetcher import SignInFetcher
from tests.support.sign_in_server import SignInServer, sign_in_server

DOCUMENT = "/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        yield state


async def refusal(url: str, issuer: str, *named: str) -> str:
    """Why the metadata of an issuer, that the server at `url` named, was not fetched."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.7"] if host == "inside.example" else ["127.0.0.1"]

    client = HttpClient(resolve=resolve)
    try:
        with pytest.raises(GatewayFailure) as refused:
            await SignInFetcher(client, "vault", url, named).run(find_authorization_server("vault", issuer))
        return refused.value.message
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("issuer", "why"),
    [
        ("https://10.0.0.7", "not a public one"),
        ("https://169.254.169.254", "not a public one"),
        ("https://127.0.0.1", "not a public one"),
        ("https://localhost", "it is this machine"),
        ("https://2130706433", "not a public one"),
        ("https://inside.example", "leads to an address that is not public"),
        ("http://login.example", "over https only"),
        ("file:///etc/passwd", "neither http nor https"),
        ("https://user@login.example", "no host"),
    ],
)
async def test_a_remote_server_can_not_send_the_gateway_to_another_place(issuer: str, why: str) -> None:
    said = await refusal("https://api.example/mcp", issuer)
    assert why in said
    assert "write the authorization server into `auth` of vault as issuer" in said


async def test_an_issuer_that_the_operator_wrote_may_be_a_private_one(server: SignInServer) -> None:
    client = HttpClient()
    fetcher = SignInFetcher(client, "vault", "https://api.example/mcp", (server.origin,))
    found = await fetcher.run(find_authorization_server("vault", server.origin))
    assert found.token_endpoint == f"{server.origin}/token"
    await client.close()


async def fetched_resource(server: SignInServer) -> str:
    client = HttpClient()
    try:
        with pytest.raises(GatewayFailure) as refused:
            await SignInFetcher(client, "vault", server.url).run(find_resource("vault", server.url, Challenge()))
        return refused.value.message
    finally:
        await client.close()


async def test_a_redirect_is_not_followed(server: SignInServer) -> None:
    server.documents[DOCUMENT] = 302, {"Location": "https://evil.example/"}, b""
    assert "answers with a redirect, which is not followed" in await fetched_resource(server)


async def test_ten_megabytes_are_refused(server: SignInServer) -> None:
    server.documents[DOCUMENT] = 200, {"Content-Type": "application/json"}, b'"%b"' % (b"a" * 10_000_000)
    assert "more than 262144 bytes" in await fetched_resource(server)


async def test_a_document_of_another_resource_is_refused(server: SignInServer) -> None:
    server.documents[DOCUMENT] = (
        200,
        {},
        b'{"resource":"https://evil.example","authorization_servers":["https://evil.example"]}',
    )
    assert "its metadata is that of another resource, 'https://evil.example'" in await fetched_resource(server)
