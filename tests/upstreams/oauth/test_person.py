"""A person signs in at an identity provider: only at one with `login`, and only once for each answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from pactgate.config.sections.oauth import Issuer, Login, Quirks
from pactgate.core.failures import GatewayFailure
from pactgate.state.handoffs import MemoryHandoffs
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.person import METADATA_S, PersonSignIn
from tests.support.sign_in_server import Browser, SignInServer, sign_in_server

METADATA = "/.well-known/oauth-authorization-server"


@asynccontextmanager
async def person_at(
    server: SignInServer, handoffs: MemoryHandoffs | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[PersonSignIn]:
    client = HttpClient()
    issuers = [Issuer(issuer=server.origin, login=Login(client_id="gateway"))]
    try:
        yield PersonSignIn(lambda: issuers, client, handoffs or MemoryHandoffs(), clock=clock)
    finally:
        await client.close()


async def answer_of(person: PersonSignIn, server: SignInServer, browser: str, link: str = "link") -> dict[str, str]:
    """What a browser brings back when its person has agreed."""
    url = await person.begin(server.origin, link, f"{server.origin}/nowhere", browser)
    page = await asyncio.to_thread(Browser("Alice", follows=False).open, url)
    return {name: held[0] for name, held in parse_qs(urlsplit(page.url).query).items()}


async def test_an_answer_is_taken_once_and_from_the_browser_that_began() -> None:
    with sign_in_server() as server:
        async with person_at(server) as person:
            mine, other = [await answer_of(person, server, browser) for browser in ("browser", "other")]
            assert await person.finish(other, "browser") is None
            assert await person.finish(other, "other") is None, "it was looked at"
            found = await person.finish(mine, "browser")
            assert found is not None
            assert (found.link, found.client_id) == ("link", "gateway")
            assert "eyJ" not in repr(found), "the token is not shown"
            assert await person.finish(mine, "browser") is None


async def test_a_browser_that_begins_again_replaces_its_own_sign_in_and_nobody_elses() -> None:
    with sign_in_server() as server:
        async with person_at(server, MemoryHandoffs(most=3)) as person:
            other = await answer_of(person, server, "other")
            of_link = await answer_of(person, server, "browser", "another link")
            first, *_, last = [await answer_of(person, server, "browser") for _ in range(5)]
            assert await person.finish(first, "browser") is None
            found = [
                await person.finish(other, "other"),
                *[await person.finish(one, "browser") for one in (of_link, last)],
            ]
            assert [one and one.link for one in found] == ["link", "another link", "link"]


async def test_the_metadata_of_a_provider_is_asked_for_once_in_five_minutes() -> None:
    now = [0.0]
    with sign_in_server() as server:
        async with person_at(server, clock=lambda: now[0]) as person:
            await person.begin(server.origin, "", server.origin, "browser")
            server.documents[METADATA] = (404, {}, b"")
            await person.begin(server.origin, "", server.origin, "another")
            now[0] = METADATA_S
            with pytest.raises(GatewayFailure):
                await person.begin(server.origin, "", server.origin, "browser")
            del server.documents[METADATA]
            await person.begin(server.origin, "", server.origin, "browser")


@pytest.mark.parametrize(("methods", "is_refused"), [(None, False), (["S256"], False), (["plain"], True), ([], True)])
async def test_a_provider_may_keep_quiet_about_pkce_but_not_promise_another_kind(
    methods: list[str] | None, is_refused: bool
) -> None:
    with sign_in_server() as server:
        server.more_metadata = {"code_challenge_methods_supported": methods}
        async with person_at(server) as person:
            if is_refused:
                with pytest.raises(GatewayFailure, match="PKCE"):
                    await person.begin(server.origin, "", server.origin, "browser")
                return
            mine = await answer_of(person, server, "browser")
            assert await person.finish(mine, "browser") is not None, "the challenge was sent all the same"


async def test_an_answer_that_comes_too_late_or_after_too_many_others_is_none() -> None:
    now = [0.0]
    with sign_in_server() as server:
        async with person_at(server, MemoryHandoffs(lambda: now[0], most=2)) as person:
            late = await answer_of(person, server, "browser")
            now[0] += 600.0
            assert await person.finish(late, "browser") is None
            oldest, *others = [await answer_of(person, server, str(number)) for number in range(3)]
            assert await person.finish(oldest, "0") is None
            assert None not in [await person.finish(one, str(number)) for number, one in enumerate(others, 1)]


@pytest.mark.parametrize(("quirks", "scope"), [(None, "openid mcp:read"), ("entra", "openid profile mcp:read")])
async def test_the_claim_that_names_a_person_is_asked_for(quirks: Quirks | None, scope: str) -> None:
    client = HttpClient()
    with sign_in_server() as server:
        issuers = [Issuer(issuer=server.origin, login=Login(client_id="gateway"), quirks=quirks)]
        person = PersonSignIn(lambda: issuers, client, MemoryHandoffs())
        url = await person.begin(server.origin, "", f"{server.origin}/nowhere", "browser", scopes=("mcp:read",))
        assert parse_qs(urlsplit(url).query)["scope"] == [scope]
    await client.close()


async def test_only_issuers_with_a_client_for_it_can_say_who_somebody_is() -> None:
    client = HttpClient()
    person = PersonSignIn(lambda: [Issuer(issuer="https://idp.example")], client, MemoryHandoffs())
    assert not person.knows("https://idp.example")
    assert not person.knows("")
    await client.close()
