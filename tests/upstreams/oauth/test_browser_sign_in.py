"""Sign-ins that a page begins: one for each server, the last one; what went wrong is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.browser_sign_in import BrowserSignIns
from pactgate.upstreams.oauth.stored_grants import all_grants
from tests.support.eventually import eventually
from tests.support.sign_in_server import SignInServer, agree, sign_in_server


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        yield state


@asynccontextmanager
async def signing_in(folder: Path) -> AsyncIterator[tuple[BrowserSignIns, CredentialStore, list[str]]]:
    store, told = CredentialStore.in_file(str(folder / "pactgate.credentials"), None), list[str]()
    sign_ins = BrowserSignIns(store, lambda server, reason: told.append(f"{server}: {reason}"))
    try:
        yield sign_ins, store, told
    finally:
        await sign_ins.close()


def vault(server: SignInServer) -> ServerConfig:
    return ServerConfig(id="vault", url=server.url)


async def test_whoever_agrees_at_the_url_has_signed_in(server: SignInServer, tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (sign_ins, store, told):
        await asyncio.to_thread(agree, await sign_ins.begin(vault(server)))
        await eventually(lambda: [found[0] for found in all_grants(store)] == ["vault"])
        assert told == []


async def test_the_last_sign_in_at_a_server_takes_the_place_of_the_one_before(
    server: SignInServer, tmp_path: Path
) -> None:
    async with signing_in(tmp_path) as (sign_ins, store, told):
        first, second = await sign_ins.begin(vault(server)), await sign_ins.begin(vault(server))
        assert first != second
        await asyncio.to_thread(agree, second)
        await eventually(lambda: len(list(all_grants(store))) == 1)
        assert told == []


async def test_a_client_that_is_not_known_any_more_is_registered_anew(server: SignInServer, tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (sign_ins, store, told):
        await asyncio.to_thread(agree, await sign_ins.begin(vault(server)))
        await eventually(lambda: len(all_grants(store)) == 1)
        server.forgotten_clients, server.client_id = {"made-here"}, "made-later"
        await asyncio.to_thread(agree, await sign_ins.begin(vault(server)))
        await eventually(lambda: told)
        assert "Try again" in told[0]
        await asyncio.to_thread(agree, await sign_ins.begin(vault(server)))
        await eventually(lambda: [one.stored.grant.client.id for one in all_grants(store)] == ["made-later"])


async def test_a_server_that_does_not_answer_is_told_at_once(server: SignInServer, tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (sign_ins, _, told):
        with pytest.raises(GatewayFailure):
            await sign_ins.begin(ServerConfig(id="vault", url="http://127.0.0.1:1/mcp"))
        assert [one.partition(":")[0] for one in told] == ["vault"]


async def test_where_no_person_signs_in_nothing_begins(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (sign_ins, _, told):
        with pytest.raises(GatewayFailure, match="no person"):
            await sign_ins.begin(ServerConfig(id="files", command="files"))
        assert told == []
