"""What a server wants of somebody without a token."""

from __future__ import annotations

import socket

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth import probe
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.probe import wanted_of
from tests.support.sign_in_server import sign_in_server


async def test_the_challenge_of_now_has_the_scopes_of_before_too() -> None:
    client = HttpClient()
    with sign_in_server() as server:
        config = ServerConfig(id="vault", url=server.url)
        where = f"{server.origin}/.well-known/oauth-protected-resource/mcp"
        assert await wanted_of(config, client, None) == Challenge(where, ("act",))
        before = Challenge("https://old.example", ("more",))
        assert await wanted_of(config, client, before) == Challenge(where, ("act", "more"))
        server.lists_for_nobody = True
        assert await wanted_of(config, client, before) == before
    await client.close()


async def test_a_server_that_says_nothing_is_a_failure_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_PROBE_S", 0.1)
    client = HttpClient()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        with pytest.raises(GatewayFailure, match="vault did not answer") as refused:
            await wanted_of(ServerConfig(id="vault", url=url), client, None)
        assert refused.value.kind is Kind.CONNECT_TIMEOUT
        await client.close()
