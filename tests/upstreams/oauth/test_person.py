"""A person signs in at an identity provider: only at one with `login`, and only once for each answer."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from pactgate.config.sections.oauth import Issuer, Login, Quirks
from pactgate.state.handoffs import MemoryHandoffs
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.person import PersonSignIn
from tests.support.sign_in_server import Browser, sign_in_server


async def test_an_answer_is_taken_once_and_from_the_browser_that_began() -> None:
    client = HttpClient()
    with sign_in_server() as server:
        issuers = [Issuer(issuer=server.origin, login=Login(client_id="gateway"))]
        person = PersonSignIn(lambda: issuers, client, MemoryHandoffs())
        redirect = f"{server.origin}/nowhere"
        answers = []
        for _ in range(2):
            url = await person.begin(server.origin, "link", redirect, "browser")
            page = await asyncio.to_thread(Browser("Alice", follows=False).open, url)
            answers.append(dict(pair.split("=") for pair in page.url.partition("?")[2].split("&")))
        mine, other = ({**one, "iss": server.origin} for one in answers)
        assert await person.finish(other, "another browser") is None
        found = await person.finish(mine, "browser")
        assert found is not None
        assert (found.link, found.client_id) == ("link", "gateway")
        assert "eyJ" not in repr(found), "the token is not shown"
        assert await person.finish(mine, "browser") is None
    await client.close()


async def test_an_answer_that_comes_too_late_or_after_too_many_others_is_none() -> None:
    client, now = HttpClient(), [0.0]
    with sign_in_server() as server:
        issuers = [Issuer(issuer=server.origin, login=Login(client_id="gateway"))]
        person = PersonSignIn(lambda: issuers, client, MemoryHandoffs(lambda: now[0], most=2))

        async def answer() -> dict[str, str]:
            url = await person.begin(server.origin, "", f"{server.origin}/nowhere", "browser")
            page = await asyncio.to_thread(Browser("Alice", follows=False).open, url)
            return {name: held[0] for name, held in parse_qs(urlsplit(page.url).query).items()}

        late = await answer()
        now[0] += 600.0
        assert await person.finish(late, "browser") is None
        oldest, *others = [await answer() for _ in range(3)]
        assert await person.finish(oldest, "browser") is None
        assert None not in [await person.finish(one, "browser") for one in others]
    await client.close()


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
