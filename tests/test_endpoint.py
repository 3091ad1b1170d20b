"""The HTTP endpoint of a gateway: who gets in at the address it opens."""

from __future__ import annotations

import asyncio
from urllib.request import Request, urlopen

import pytest

from pactgate.app import build
from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.listen import ListenSection
from pactgate.core.events import ServerFailed

ANYWHERE = ListenSection(port=0)


def get(url: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urlopen(Request(url, headers=headers), timeout=5) as answer:
        return int(answer.status)


async def test_beyond_loopback_a_token_is_made_and_required() -> None:
    gateway = build(Config(listen=ListenSection(host="0.0.0.0", port=0)), lambda event: None)
    address = (await gateway.serve_http()).replace("0.0.0.0", "127.0.0.1")
    try:
        assert gateway.http.generated_token is not None
        assert len(gateway.http.generated_token) >= 32
        with pytest.raises(OSError, match="401"):
            await asyncio.to_thread(get, f"{address}/api/status")
        assert await asyncio.to_thread(get, f"{address}/api/status", gateway.http.generated_token) == 200
    finally:
        await gateway.stop(grace_s=0)


async def test_the_token_that_was_made_is_masked_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    gateway = build(Config(listen=ListenSection(host="0.0.0.0", port=0)), lambda event: None)
    await gateway.serve_http()
    try:
        assert gateway.http.generated_token is not None
        gateway.report(ServerFailed("crm", 1, f"401 for {gateway.http.generated_token}", "MCP_ECO_CONNECTION_FAILED"))
        assert (
            caplog.records[-1].getMessage()
            == "crm: no connection after 1 attempts: 401 for *** (MCP_ECO_CONNECTION_FAILED)"
        )
    finally:
        await gateway.stop(grace_s=0)


@pytest.mark.parametrize("token", [None, "wrong-token-of-some-length"])
async def test_with_tokens_and_no_anonymous_callers_every_other_caller_is_turned_away(token: str | None) -> None:
    auth = Auth(tokens={"ops": Token(token="a-token-of-some-length")})
    gateway = build(Config(listen=ANYWHERE, auth=auth), lambda event: None)
    address = await gateway.serve_http()
    try:
        with pytest.raises(OSError, match="401"):
            await asyncio.to_thread(get, f"{address}/api/status", token)
        assert await asyncio.to_thread(get, f"{address}/api/status", "a-token-of-some-length") == 200
    finally:
        await gateway.stop(grace_s=0)
