"""The gateway signs in to a server that a real authorization server (oidc-provider) guards: another gateway.

It registers, gets a grant of a person, uses it, and renews it with a refresh token that rotates: once, whatever happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.sign_ins import credential_store
from pactgate.upstreams.oauth.browser_sign_in import sign_in_by_browser
from tests.interop.identity_gateway import RealProvider, start_gateway, why_no_provider
from tests.interop.processes import free_port
from tests.interop.refreshing import Guarded, check_killed_with_the_answer, check_twelve_processes
from tests.support.eventually import eventually

pytestmark = [pytest.mark.interop, pytest.mark.skipif(why_no_provider() is not None, reason=str(why_no_provider()))]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server that wants tokens of the provider."""
    port = free_port()
    resource = f"http://127.0.0.1:{port}/mcp"
    provider = RealProvider(tmp_path, resource)
    provider.start()
    try:
        issuer = {"issuer": provider.issuer, "audiences": [resource]}
        server = start_gateway(tmp_path, port, {"resource": resource, "issuers": [issuer]})
        try:
            yield resource
        finally:
            server.stop()
    finally:
        provider.stop()


def browse(url: str) -> None:
    """A browser with cookies, whose user agrees to everything."""
    with build_opener(HTTPCookieProcessor(CookieJar())).open(url, timeout=10) as answer:
        answer.read()


async def test_the_whole_way_with_a_real_authorization_server(url: str, tmp_path: Path) -> None:
    server = ServerConfig(id="guarded", url=url)
    config = Config(servers={"guarded": server}, credential_file=str(tmp_path / "own.credentials"))
    store = credential_store(config)
    assert store is not None
    pages: list[asyncio.Future[None]] = []
    loop = asyncio.get_running_loop()
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        assert "needs sign-in" in str(gateway.connections.servers["guarded"].last_error)
        grant = await sign_in_by_browser(
            server, store, lambda page: pages.append(loop.run_in_executor(None, browse, page))
        )
        await asyncio.gather(*pages)
        assert grant.refresh_token
        await eventually(lambda: gateway.connections.servers["guarded"].lists.found.tools)
        answer = await gateway.invoke("guarded__files__look")
        assert answer["success"], answer
    guarded = Guarded(url, tmp_path / "own.credentials")
    await asyncio.to_thread(check_twelve_processes, guarded)
    await asyncio.to_thread(check_killed_with_the_answer, guarded)
