"""What clients without a token are told: metadata (RFC 9728) and challenges (RFC 6750, 3; MCP 2026-07-28, basic/authorization)."""

from __future__ import annotations

import pytest

from pactgate.inbound.auth import Guard
from tests.support.facing import credentials, modern, serving
from tests.support.identity_provider import AUDIENCE, IdentityProvider
from tests.support.raw_http import get
from tests.support.token_guard import auth_for, token_frontend

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("", AUDIENCE),
        ("/mcp", AUDIENCE),
        ("/mcp/files", AUDIENCE + "/files"),
        ("/mcp/v/desk", AUDIENCE + "/v/desk"),
    ],
)
async def test_servers_must_serve_metadata_at_the_root_and_at_the_path_of_each_resource(
    path: str, resource: str
) -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        answer = await served.ask(get(WELL_KNOWN + path))
        assert answer.status == 200
        assert answer.json["resource"] == resource
        assert answer.json["authorization_servers"] == [provider.issuer]
        assert answer.json["scopes_supported"] == ["mcp:read"], "the least that is needed, and never offline_access"
        assert answer.json["bearer_methods_supported"] == ["header"]
        assert "dpop_signing_alg_values_supported" in answer.json


@pytest.mark.parametrize(
    "path",
    [
        WELL_KNOWN + "/other",
        WELL_KNOWN + "/mcp/a/b",
        WELL_KNOWN + "/mcp/A",
        WELL_KNOWN + "/mcp/v/A",
        WELL_KNOWN + "/mcp/v/a/b",
        WELL_KNOWN + "/mcp/" + "a" * 51,
        "/.well-known/x",
    ],
)
async def test_other_well_known_paths_are_not_there(path: str) -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        assert (await served.ask(get(path))).status == 404


@pytest.mark.parametrize("guard", [Guard(host="127.0.0.1", anonymous=True), None])
async def test_while_there_is_no_oauth_nothing_is_well_known_also_where_tokens_are_needed(guard: Guard | None) -> None:
    tokens = credentials({"x" * 20: ("ops", frozenset())})
    async with serving(guard=guard or Guard(host="127.0.0.1", credentials=tokens)) as served:
        for path in (WELL_KNOWN, WELL_KNOWN + "/mcp", "/.well-known/oauth-authorization-server"):
            answer = await served.ask(get(path))
            assert (answer.status, answer.header("www-authenticate")) == (404, None)


async def test_a_request_without_a_token_is_told_where_the_metadata_is_and_which_scope_is_needed() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        for path in ("", "/files", "/v/desk"):
            answer = await served.ask(modern("tools/list", "/mcp" + path))
            assert answer.status == 401
            where = f'resource_metadata="https://gateway.example{WELL_KNOWN}/mcp{path}"'
            assert answer.header("www-authenticate") == f'Bearer {where}, scope="mcp:read"', (
                "no error: nothing was sent"
            )


async def test_without_a_configured_resource_the_address_that_the_client_used_counts() -> None:
    async with IdentityProvider() as provider:
        auth = auth_for(provider)
        auth = type(auth)(issuers=auth.issuers)
        async with token_frontend(auth) as served:
            host = f"localhost:{served.port}"
            answer = await served.ask(get(WELL_KNOWN + "/mcp", host=host))
            assert answer.json["resource"] == f"http://{host}/mcp"
            refused = await served.ask(modern("server/discover", host=host))
            assert f'resource_metadata="http://{host}{WELL_KNOWN}/mcp"' in (refused.header("www-authenticate") or "")


async def test_a_public_path_of_another_name_is_told_as_clients_see_it() -> None:
    async with IdentityProvider() as provider:
        auth = auth_for(provider)
        auth = type(auth)(issuers=auth.issuers, resource="https://example.org/gateway")
        async with token_frontend(auth) as served:
            answer = await served.ask(get(WELL_KNOWN + "/gateway/files"))
            assert answer.json["resource"] == "https://example.org/gateway/files"
            challenge = (await served.ask(modern("server/discover", "/mcp/files"))).header("www-authenticate") or ""
            assert f'"https://example.org{WELL_KNOWN}/gateway/files"' in challenge


async def test_without_the_scope_for_reading_the_api_is_refused() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        nothing = {"authorization": f"Bearer {provider.token(scope='openid')}"}
        answer = await served.ask(get("/api/tools", **nothing))
        assert answer.status == 403
        assert 'error="insufficient_scope", scope="mcp:read"' in (answer.header("www-authenticate") or "")
        reader = {"authorization": f"Bearer {provider.token(scope='mcp:run')}"}
        assert (await served.ask(get("/api/tools", **reader))).status == 200


async def test_pages_of_an_allowed_origin_may_read_the_metadata() -> None:
    async with IdentityProvider() as provider, token_frontend(auth_for(provider)) as served:
        own = f"http://127.0.0.1:{served.port}"
        answer = await served.ask(get(WELL_KNOWN, host=own[7:], origin=own))
        assert (answer.status, answer.header("access-control-allow-origin")) == (200, own)
        assert (await served.ask(get(WELL_KNOWN, origin="https://evil.example"))).status == 403
