"""What a server wants of somebody without a token."""

from __future__ import annotations

from pactgate.config.server_settings import ServerConfig
from pactgate.upstreams.http.client import HttpClient
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
