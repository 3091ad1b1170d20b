"""The token of one server: refreshed once for everybody, never presented twice, and asked for when only a person can help."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from pactgate.config.sections.sign_in import SignIn
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth import fetcher as fetcher_module
from pactgate.upstreams.oauth import server_grant as module
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.grants import GrantMaker, server_grant
from pactgate.upstreams.oauth.server_grant import ServerGrant
from pactgate.upstreams.oauth.sign_in import SignInGrant
from pactgate.upstreams.oauth.stored_grants import StoredGrants
from tests.support.deaf_socket import deaf_socket
from tests.support.eventually import eventually, eventually_blocking
from tests.support.sign_in_server import SignInServer, sign_in_server

PROCESSES = 12
CHILD = """
import asyncio, sys
from pactgate.config.sections.sign_in import SignIn
from pactgate.config.server_settings import ServerConfig
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.grants import GrantMaker, server_grant

async def main(url, path):
    client = HttpClient()
    grant = server_grant(ServerConfig(id="vault", url=url), GrantMaker(client, CredentialStore.in_file(path), lambda secrets: None))
    await grant.prepare()
    print("ready", flush=True)
    sys.stdin.readline()
    await grant.renew(grant.token)
    print(grant.token, flush=True)
    await client.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        yield state


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "pactgate.credentials")


@pytest.fixture
def store(path: str) -> CredentialStore:
    return CredentialStore.in_file(path)


def keep_grant(server: SignInServer, store: CredentialStore, *, age_s: float = 60.0, left_s: float = 3600.0) -> str:
    """A sign-in that happened a while ago. Returns its access token."""
    given, now = server.give({"act"}), time.time()
    grant = SignInGrant(
        resource=server.url,
        client=OAuthClient(server.origin, "made-here"),
        token_endpoint=f"{server.origin}/token",
        access_token=given["access_token"],
        refresh_token=given["refresh_token"],
        expires_at=now + left_s,
        requested=("act",),
        signed_in_at=now - age_s,
    )
    StoredGrants(store, "vault", server.url).write(grant)
    return grant.access_token


def service_of(server: SignInServer) -> SignIn:
    return SignIn(type="oauth", who="service", issuer=server.origin, client_id="robot", client_secret="robot-secret")


@asynccontextmanager
async def opened(
    server: SignInServer, store: CredentialStore, auth: SignIn | None = None
) -> AsyncIterator[ServerGrant]:
    client = HttpClient()
    grant = server_grant(ServerConfig(id="vault", url=server.url, auth=auth), GrantMaker(client, store, lambda _: None))
    assert grant is not None
    try:
        yield grant
    finally:
        await grant.close()
        await client.close()


async def test_a_hundred_callers_that_were_refused_cause_one_refresh(
    server: SignInServer, store: CredentialStore
) -> None:
    old = keep_grant(server, store)
    async with opened(server, store) as grant:
        await grant.prepare()
        assert grant.issuer == server.origin
        await asyncio.gather(*(grant.renew(old) for _ in range(100)))
        assert grant.token != old
    assert len(server.refreshes) == 1
    assert server.forms[0]["resource"] == server.url


async def test_a_token_that_ends_is_refreshed_before_a_connection_is_opened(
    server: SignInServer, store: CredentialStore
) -> None:
    old = keep_grant(server, store, left_s=1.0)
    async with opened(server, store) as grant:
        await grant.prepare()
        assert grant.token not in ("", old)


async def test_a_caller_who_leaves_does_not_lose_the_answer(server: SignInServer, store: CredentialStore) -> None:
    old = keep_grant(server, store)
    async with opened(server, store) as grant:
        await grant.prepare()
        server.hold.clear()
        leaving = asyncio.create_task(grant.renew(old))
        await eventually(lambda: server.refreshes)
        leaving.cancel()
        server.hold.set()
        await eventually(lambda: grant.token != old)
    kept = StoredGrants(store, "vault", server.url).read()
    assert kept is not None
    assert kept.grant.access_token in server.tokens
    assert kept.grant.unanswered == 0


def test_twelve_processes_and_one_rotating_token_refresh_exactly_once(
    server: SignInServer, store: CredentialStore, path: str
) -> None:
    keep_grant(server, store)
    words = [sys.executable, "-c", CHILD, server.url, path]
    children = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        found = {child.communicate("\n", timeout=20)[0].strip() for child in children}
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert len(server.refreshes) == 1
    assert len(found) == 1
    assert found <= set(server.tokens)


def test_a_process_that_is_killed_in_the_middle_of_a_refresh_ends_in_one_more_try_and_then_a_sign_in(
    server: SignInServer, store: CredentialStore, path: str
) -> None:
    keep_grant(server, store)
    server.hold.clear()
    words = [sys.executable, "-c", CHILD, server.url, path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
        eventually_blocking(lambda: server.refreshes)
        child.send_signal(signal.SIGKILL)
    server.hold.set()

    async def later() -> list[Kind]:
        kinds = []
        async with opened(server, store) as grant:
            await grant.prepare()
            for _ in range(5):
                with pytest.raises(GatewayFailure) as refused:
                    await grant.renew(grant.token)
                kinds.append(refused.value.kind)
        return kinds

    assert asyncio.run(later()) == [Kind.AUTHORIZATION_REQUIRED] * 5
    assert len(server.refreshes) == 2, "the token whose answer was lost is presented once more, and never again"


async def test_a_lost_answer_is_recovered_where_the_authorization_server_had_not_rotated(
    server: SignInServer, store: CredentialStore
) -> None:
    old = keep_grant(server, store)
    grants = StoredGrants(store, "vault", server.url)
    kept = grants.read()
    assert kept is not None
    grants.write(replace(kept.grant, unanswered=1))
    async with opened(server, store) as grant:
        await grant.prepare()
        await grant.renew(old)
        assert grant.token in server.tokens
    kept = grants.read()
    assert kept is not None
    assert kept.grant.unanswered == 0


async def test_an_authorization_server_that_is_down_does_not_end_the_sign_in(
    server: SignInServer, store: CredentialStore
) -> None:
    assert await failures_at(server, store, "http://127.0.0.1:9/token") == [Kind.CONNECTION_FAILED] * 3


async def test_an_authorization_server_that_can_not_be_reached_in_time_does_not_end_the_sign_in(
    server: SignInServer, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "CONNECT_S", 0.1)
    monkeypatch.setattr(fetcher_module, "FETCH_S", 0.3)
    with deaf_socket() as address:
        found = await failures_at(server, store, f"http://{address}/token")
    assert found == [Kind.CONNECT_TIMEOUT] * 3


async def failures_at(server: SignInServer, store: CredentialStore, token_endpoint: str) -> list[Kind]:
    """The failures of three refreshes there; none of them took the refresh token."""
    old = keep_grant(server, store)
    grants = StoredGrants(store, "vault", server.url)
    kept, kinds = grants.read(), []
    assert kept is not None
    grants.write(replace(kept.grant, token_endpoint=token_endpoint))
    async with opened(server, store) as grant:
        await grant.prepare()
        for _ in range(3):
            with pytest.raises(GatewayFailure) as refused:
                await grant.renew(old)
            assert refused.value.verdict is Verdict.DID_NOT_RUN
            kinds.append(refused.value.kind)
    after = grants.read()
    assert after is not None
    assert after.grant.unanswered == 0
    assert after.grant.refresh_token == kept.grant.refresh_token
    return kinds


async def test_a_refresh_of_a_client_that_is_not_known_any_more_says_what_to_do(
    server: SignInServer, store: CredentialStore
) -> None:
    old = keep_grant(server, store)
    grants = StoredGrants(store, "vault", server.url)
    kept = grants.read()
    assert kept is not None
    registered = replace(kept.grant.client, redirect_uri="http://127.0.0.1:7000/callback")
    grants.write(replace(kept.grant, client=registered))
    server.forgotten_clients = {"made-here"}
    async with opened(server, store) as grant:
        await grant.prepare()
        with pytest.raises(GatewayFailure, match=r"not know.*Run `pactgate login vault`"):
            await grant.renew(old)
    known = grants.client(server.origin)
    assert known is not None
    assert known.redirect_uri == "", "the next sign-in registers another one"


async def begun_refresh(server: SignInServer, store: CredentialStore, grant: ServerGrant) -> asyncio.Task[None]:
    """A refresh whose answer waits for `server.hold`."""
    old = keep_grant(server, store)
    await grant.prepare()
    server.hold.clear()
    renewing = asyncio.create_task(grant.renew(old))
    await eventually(lambda: server.refreshes)
    return renewing


async def test_who_signs_out_in_the_middle_of_a_refresh_stays_signed_out(
    server: SignInServer, store: CredentialStore
) -> None:
    async with opened(server, store) as grant:
        renewing = await begun_refresh(server, store, grant)
        store.remove("vault")
        await grant.reread()
        server.hold.set()
        with pytest.raises(GatewayFailure, match="needs sign-in"):
            await renewing
        assert grant.token == ""
    assert StoredGrants(store, "vault", server.url).read() is None


async def test_a_new_sign_in_in_the_middle_of_a_refresh_is_the_one_that_counts(
    server: SignInServer, store: CredentialStore
) -> None:
    async with opened(server, store) as grant:
        renewing = await begun_refresh(server, store, grant)
        newer = keep_grant(server, store, age_s=0.0)
        server.hold.set()
        await renewing
        assert grant.token == newer


async def test_a_refreshed_grant_that_could_not_be_kept_is_used_and_kept_as_soon_as_it_can_be(
    server: SignInServer, store: CredentialStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_YOUNG_S", 0.0)
    async with opened(server, store) as grant:
        renewing = await begun_refresh(server, store, grant)
        Path(path).chmod(0o666)  # noqa: ASYNC240 - a store that refuses to be used
        server.hold.set()
        await renewing
        assert grant.token in server.tokens
        await grant.prepare()
        assert grant.token in server.tokens
        Path(path).chmod(0o600)  # noqa: ASYNC240
        await grant.reread()
        await grant.renew(grant.token)
        assert grant.token in server.tokens, "the refresh token that was rotated is not presented again"
    kept = StoredGrants(store, "vault", server.url).read()
    assert kept is not None
    assert kept.grant.access_token == grant.token
    assert len(server.refreshes) == 2


async def test_a_sign_in_of_another_process_is_taken_without_a_refresh(
    server: SignInServer, store: CredentialStore
) -> None:
    async with opened(server, store) as grant:
        await grant.prepare()
        with pytest.raises(GatewayFailure, match="Run `pactgate login vault`"):
            await grant.renew("")
        assert grant.is_wanted
        token = keep_grant(server, store)
        await grant.renew("")
        assert grant.token == token
    assert server.refreshes == []


async def test_a_server_that_nobody_signed_in_to_is_not_asked_again(
    server: SignInServer, store: CredentialStore
) -> None:
    async with opened(server, store) as grant:
        with pytest.raises(GatewayFailure):
            await grant.renew("")
        with pytest.raises(GatewayFailure) as refused:
            await grant.prepare()
    assert refused.value.kind is Kind.AUTHORIZATION_REQUIRED
    assert refused.value.verdict is Verdict.DID_NOT_RUN


async def test_a_grant_is_only_for_the_url_it_was_made_for(server: SignInServer, store: CredentialStore) -> None:
    keep_grant(server, store)
    client = HttpClient()
    elsewhere = ServerConfig(id="vault", url=f"{server.origin}/elsewhere")
    grant = server_grant(elsewhere, GrantMaker(client, store, lambda _: None))
    assert grant is not None
    await grant.prepare()
    assert grant.token == ""
    await client.close()


async def test_a_young_token_that_is_refused_is_not_refreshed_again_and_again(
    server: SignInServer, store: CredentialStore
) -> None:
    token = keep_grant(server, store, age_s=0.0)
    async with opened(server, store) as grant:
        await grant.prepare()
        for _ in range(3):
            with pytest.raises(GatewayFailure):
                await grant.renew(token)
    assert server.refreshes == []


async def test_more_scopes_want_a_person_and_are_remembered_for_the_next_sign_in(
    server: SignInServer, store: CredentialStore
) -> None:
    token = keep_grant(server, store)
    header = 'Bearer error="insufficient_scope", scope="act admin"'
    async with opened(server, store) as grant:
        await grant.prepare()
        with pytest.raises(GatewayFailure, match="it wants more scopes \\(act admin\\)"):
            await grant.widen(token, header)
        assert not await grant.widen(token, 'Bearer error="insufficient_scope", scope="act"'), "it has that one"
        assert not await grant.widen(token, 'Bearer error="invalid_request"')
    wanted = StoredGrants(store, "vault", server.url).challenge()
    assert wanted is not None
    assert wanted.scopes == ("act", "admin")


async def test_scopes_that_nobody_may_have_do_not_cost_a_service_those_it_has(
    server: SignInServer, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_YOUNG_S", 0.0)
    server.refused_scope = "everything"
    async with opened(server, store, service_of(server)) as grant:
        await grant.prepare()
        with pytest.raises(GatewayFailure):
            await grant.widen(grant.token, 'Bearer error="insufficient_scope", scope="everything"')
        await grant.renew(grant.token)
        assert grant.token in server.tokens
        assert await grant.widen(grant.token, 'Bearer error="insufficient_scope", scope="more"')
    assert server.forms[-1]["scope"] == "more"


async def test_calls_that_want_more_scopes_at_once_are_all_sent_again(
    server: SignInServer, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_YOUNG_S", 0.0)
    async with opened(server, store, service_of(server)) as grant:
        await grant.prepare()
        used, header = grant.token, 'Bearer error="insufficient_scope", scope="more"'
        assert await asyncio.gather(*(grant.widen(used, header) for _ in range(10))) == [True] * 10
    assert len(server.forms) == 2


async def test_a_service_asks_for_its_token_itself_and_widens_it_at_most_three_times(
    server: SignInServer, store: CredentialStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_YOUNG_S", 0.0)
    async with opened(server, store, service_of(server)) as grant:
        await grant.prepare()
        first = grant.token
        assert first in server.tokens
        widened = [
            await grant.widen(grant.token, f'Bearer error="insufficient_scope", scope="s{number}"')
            for number in range(5)
        ]
        assert widened == [True, True, True, False, False]
        await grant.renew(grant.token)
        assert grant.token in server.tokens
    assert not store.exists, "nothing of it has to be kept"
    assert server.forms[-1]["scope"] == "s0 s1 s2"
    assert "robot-secret" not in str(server.forms), "the secret goes as client_secret_basic"
