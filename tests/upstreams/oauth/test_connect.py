"""The sign-ins of callers below their pages: for whom there is a link, and that a changed configuration ends one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pactgate.config.sections.sign_in import SignIn
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.state.credential_store import CredentialStore
from pactgate.state.handoffs import MemoryHandoffs
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.connect import CallerSignIns
from pactgate.upstreams.oauth.grants import GrantMaker
from tests.support.sign_in_server import SignInServer, sign_in_server

ALICE = Principal("alice")


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        yield state


@pytest.fixture
async def servers(server: SignInServer) -> dict[str, ServerConfig]:
    return {"vault": ServerConfig(id="vault", url=server.url, auth=SignIn(type="oauth", who="user"))}


@pytest.fixture
async def sign_ins(servers: dict[str, ServerConfig], tmp_path: Path) -> AsyncIterator[CallerSignIns]:
    client = HttpClient()
    maker = GrantMaker(client, CredentialStore.in_file(str(tmp_path / "credentials")), lambda secrets: None)
    yield CallerSignIns(
        lambda: servers, maker, MemoryHandoffs(), {}, base=lambda: "https://gw.example", document=lambda: ""
    )
    await client.close()


@pytest.mark.parametrize("kind", [PrincipalKind.ANONYMOUS, PrincipalKind.LOCAL, PrincipalKind.SOCKET])
async def test_whom_no_browser_can_show_has_no_link(kind: PrincipalKind, sign_ins: CallerSignIns) -> None:
    assert await sign_ins.link("vault", replace(ALICE, kind=kind)) is None


async def test_a_link_says_nothing_and_is_another_for_everybody(sign_ins: CallerSignIns) -> None:
    links = [await sign_ins.link("vault", principal) for principal in (ALICE, ALICE, Principal("bob"))]
    assert links[0] == links[1] != links[2]
    assert "alice" not in str(links)
    name = str(links[0]).rpartition("/")[2]
    ticket = await sign_ins.find(name)
    assert ticket is not None
    assert (ticket.server, ticket.principal) == ("vault", "alice")


async def test_a_server_that_is_gone_or_shared_by_now_is_not_signed_in_to(
    sign_ins: CallerSignIns, servers: dict[str, ServerConfig]
) -> None:
    link = await sign_ins.link("vault", ALICE)
    servers["vault"] = replace(servers["vault"], auth=None)
    with pytest.raises(GatewayFailure, match="the configuration has changed"):
        await sign_ins.begin(str(link).rpartition("/")[2], "browser")


async def test_a_used_link_begins_nothing(sign_ins: CallerSignIns, server: SignInServer) -> None:
    name = str(await sign_ins.link("vault", ALICE)).rpartition("/")[2]
    url = await sign_ins.begin(name, "browser")
    assert url.startswith(f"{server.origin}/authorize?")
    with pytest.raises(GatewayFailure, match="used already"):
        await sign_ins.begin(name, "browser")
    assert await sign_ins.link("vault", ALICE) != f"https://gw.example/connect/{name}"


async def test_an_answer_to_nothing_is_none_of_ours(sign_ins: CallerSignIns) -> None:
    assert await sign_ins.finish({}, "browser") is None
    assert await sign_ins.finish({"state": "x", "code": "y"}, "") is None
