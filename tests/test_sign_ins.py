"""The sign-ins of a gateway, wired: where they are kept, and where browsers reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.sign_in import SignIn
from pactgate.config.server_settings import ServerConfig
from pactgate.core.principal import Principal
from pactgate.sign_ins import SignIns, credential_store
from pactgate.state.handoffs import MemoryHandoffs
from pactgate.upstreams.http.client import HttpClient

PUBLIC = Auth(resource="https://gw.example/team/mcp")
OWN = ServerConfig(id="vault", url="https://vault.example/mcp", auth=SignIn(type="oauth", who="user"))
SHARED = ServerConfig(id="vault", url="https://vault.example/mcp")


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


def made(config: Config, client: HttpClient, address: str | None = "http://127.0.0.1:7411") -> SignIns:
    return SignIns(lambda: config, client, MemoryHandoffs(), know=lambda tokens: None, address=lambda: address)


@pytest.mark.parametrize(
    ("config", "address", "base"),
    [
        (Config(), "http://127.0.0.1:7411", "http://127.0.0.1:7411/connect/"),
        (Config(auth=PUBLIC), "http://127.0.0.1:7411", "https://gw.example/team/connect/"),
        (Config(listen=ListenSection(host="0.0.0.0")), "http://0.0.0.0:7411", None),
        (Config(), "unix:/run/pactgate.sock", None),
        (Config(), None, None),
    ],
)
async def test_links_lead_to_where_browsers_reach_the_gateway(
    config: Config, address: str | None, base: str | None, client: HttpClient, tmp_path: Path
) -> None:
    config = Config(auth=config.auth, listen=config.listen, credential_file=str(tmp_path / "credentials"))
    sign_ins = made(config, client, address)
    bridge = sign_ins.bridge
    assert bridge is not None
    link = await sign_ins.links.link("vault", Principal("alice"))
    assert link is base is None or str(link).startswith(str(base))


async def test_only_servers_with_a_sign_in_of_each_client_have_a_place_for_those(client: HttpClient) -> None:
    sign_ins = made(Config(), client)
    shared, of_callers = sign_ins.grants_of(OWN)
    assert shared is not None
    assert of_callers is not None
    assert sign_ins.grants_of(SHARED)[1] is None, "the server has other settings now"
    stdio = ServerConfig(id="files", command="serve-files")
    assert sign_ins.grants_of(stdio) == (None, None)
    await sign_ins.close()


def test_without_a_configuration_file_nothing_is_kept() -> None:
    assert credential_store(Config()) is None
