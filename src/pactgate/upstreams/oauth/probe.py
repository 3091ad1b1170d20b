"""Asks a server what it wants of somebody without a token, before a sign-in begins."""

from __future__ import annotations

import asyncio
from typing import Final

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.http.refusals import ACCEPT_BOTH, JSON_CONTENT, ConfiguredHeaders
from pactgate.upstreams.http.request_message import HttpTarget, header_block
from pactgate.upstreams.oauth.challenge import Challenge, read_challenge

_PROBE_S: Final = 10.0
_PROBE: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'


async def wanted_of(config: ServerConfig, client: HttpClient, before: Challenge | None) -> Challenge:
    """The challenge of now, with the scopes that a call was refused for `before`. Empty where the server wants nothing, or says nothing.

    Raises GatewayFailure."""
    assert config.url is not None
    target = HttpTarget(config.id, config.url, network=network_of(config))
    head = JSON_CONTENT + ACCEPT_BOTH + ConfiguredHeaders(config.id, config.headers).block
    mirrored = header_block([("Mcp-Method", "tools/list"), ("MCP-Protocol-Version", "2026-07-28")])
    try:
        async with asyncio.timeout(_PROBE_S):
            response = await client.request(b"POST", target, head + mirrored, _PROBE)
    except TimeoutError:
        raise GatewayFailure(
            Kind.CONNECT_TIMEOUT, f"{config.id} did not answer within {_PROBE_S:g} s.", server=config.id
        ) from None
    if response.stream is not None:
        response.stream.close()
    now = read_challenge(response.header(b"www-authenticate")) if response.status == 401 else Challenge()
    if before is None:
        return now
    return Challenge(now.resource_metadata or before.resource_metadata, (*now.scopes, *before.scopes), now.error)
