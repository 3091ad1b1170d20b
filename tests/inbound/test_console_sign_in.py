"""A person signs in to the console at the identity provider: with which rights, for how long, and what is refused."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from msgspec.structs import replace

from pactgate.app import Gateway
from pactgate.config.load import load
from pactgate.core.events import ConsoleOpened, Event, RequestRefused
from pactgate.inbound.begin_rate import BEGINS
from tests.support.facing import modern
from tests.support.identity_provider import AUDIENCE, public_jwk, rsa_key, sign
from tests.support.raw_http import Answer, RawClient, get, request
from tests.support.sign_in_server import Browser, Page, SignInServer, sign_in_server

UPSTREAM = Path(__file__).parents[1] / "support" / "stdio_upstream.py"
LIFE_S = 300
SKEW_S = 30


class Place:
    """A running gateway, its identity provider, and what a person at a browser does."""

    def __init__(self, gateway: Gateway, address: str, server: SignInServer, events: list[Event]) -> None:
        self.gateway = gateway
        self.address = address
        self.server = server
        self.events = events

    async def issuers(self) -> list[str]:
        answer = await self.ask(get("/console/issuers", **self.page))
        found: list[str] = answer.json["issuers"]
        return found

    @property
    def page(self) -> dict[str, str]:
        """What the console's page sends."""
        return {"host": self.address[7:], "x_pactgate_console": "none", "sec_fetch_site": "same-origin"}

    async def ask(self, data: bytes) -> Answer:
        async with RawClient(int(self.address.rpartition(":")[2])) as client:
            return await client.ask(data)

    async def begin(self, browser: Browser, **headers: str) -> Page:
        """Press the button."""
        url = f"{self.address}/console/issuers/{quote(self.server.origin, safe='')}"
        given = {"Origin": self.address, "Content_Type": "application/json", **self.page, **headers}
        return await asyncio.to_thread(browser.open, url, {}, **given)

    async def at_provider(self, browser: Browser) -> Page:
        """Go there and agree; `url` is where it sends the browser."""
        begun = await self.begin(browser)
        assert begun.status == 200, begun.text
        (cookie,) = browser.cookies
        assert (cookie.get_nonstandard_attr("SameSite"), cookie.has_nonstandard_attr("HttpOnly")) == ("Lax", True)
        return await asyncio.to_thread(browser.open, json.loads(begun.text)["url"])

    async def sign_in(self, person: str = "Alice", change: Callable[[str], str] = str) -> Page:
        """All of it; `url` is where the browser ends up. `change` is what happens to the answer on its way."""
        browser = Browser(person, follows=False)
        answered = await self.at_provider(browser)
        return await asyncio.to_thread(browser.open, change(answered.url))

    async def session(self) -> dict[str, str]:
        """The headers of the page of somebody who has signed in."""
        browser = Browser("Alice", follows=False)
        answered = await self.at_provider(browser)
        done = await asyncio.to_thread(browser.open, answered.url)
        assert done.status == 303, done.text
        (cookie,) = browser.cookies
        sent = {"cookie": f"{cookie.name}={cookie.value}", "x_pactgate_console": key_of(done)}
        return {**self.page, **sent}


def key_of(page: Page) -> str:
    path, _, key = page.url.partition("#key=")
    assert path == "/console/"
    return key


@asynccontextmanager
async def served(
    folder: Path, more: dict[str, Any] | None = None, resource: str | None = None, **login: Any
) -> AsyncIterator[Place]:
    """`more` are further settings of the issuer, `login` those of the client."""
    with sign_in_server() as server:
        server.access_token = lambda asked: token_of(server, asked)
        keys = {"keys": [public_jwk(rsa_key(), kid="one", use="sig")]}
        issuer = {"issuer": server.origin, "audiences": [AUDIENCE], "jwks": keys, **(more or {})}
        entry = {"command": sys.executable, "args": [str(UPSTREAM), json.dumps({"tools": ["look", "write"]})]}
        settings = {
            "mcpServers": {"files": entry},
            "categories": {"*.look": "query", "*.write": "mutation"},
            "auth": {"issuers": [{**issuer, "login": {"clientId": "gateway", **login}}], "resource": resource},
            "listen": {"port": 0, "allowedHosts": ["gw.example"], "allowedOrigins": ["https://gw.example"]},
        }
        config = folder / "pactgate.json"
        config.write_text(json.dumps(settings))
        config.chmod(0o600)
        events: list[Event] = []
        gateway = Gateway(load(config, environ={}), events.append)
        address = await gateway.serve_http()
        await gateway.start()
        try:
            yield Place(gateway, address, server, events)
        finally:
            await gateway.stop(grace_s=1)


def token_of(server: SignInServer, asked: dict[str, str], **claims: Any) -> str:
    """The access token that a provider gives for what was asked."""
    scope = " ".join(one for one in asked["scope"].split() if one != "openid")
    good = {"iss": server.origin, "sub": asked["person"], "aud": AUDIENCE, "exp": int(time.time()) + LIFE_S}
    return sign({"alg": "RS256", "typ": "at+jwt", "kid": "one"}, {**good, "scope": scope, **claims}, rsa_key())


async def test_a_person_signs_in_with_exactly_the_rights_of_its_token(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        await place.gateway.connections.settle()
        assert await place.issuers() == [place.server.origin]
        session = await place.session()
        facts = (await place.ask(get("/console/session", **session))).json
        assert facts == {"subject": f"{place.server.origin}#Alice", "isAdmin": False, "needsToken": True}
        calls = [await place.ask(modern("tools/call", name=f"files__{tool}", **session)) for tool in ("look", "write")]
        assert [answer.status for answer in calls] == [200, 403]
        assert (await place.ask(get("/api/captures", **session))).status == 403
        assert [event.subject for event in place.events if isinstance(event, ConsoleOpened)] == [facts["subject"]]


async def test_the_provider_is_asked_for_the_scopes_of_the_settings_and_for_this_gateway(tmp_path: Path) -> None:
    for scopes, asked in (((), "openid mcp:read"), (("mcp:run",), "openid mcp:run")):
        async with served(tmp_path, scopes=scopes) as place:
            begun = await place.begin(Browser("Alice"))
            query = parse_qs(urlsplit(json.loads(begun.text)["url"]).query)
            assert query["scope"] == [asked]
            assert query["resource"] == [f"{place.address}/mcp"]
            assert query["redirect_uri"] == [f"{place.address}/connect/callback"]
            assert query["code_challenge_method"] == ["S256"]
    async with served(tmp_path, {"quirks": "entra"}, scopes=["api://x/mcp.read"]) as place:
        begun = await place.begin(Browser("Alice"))
        query = parse_qs(urlsplit(json.loads(begun.text)["url"]).query)
        assert (query["scope"], "resource" in query) == (["openid profile api://x/mcp.read"], False)


async def test_a_session_ends_with_the_token_whether_it_was_given_or_pasted(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        browser = Browser("Alice", follows=False)
        answered = await place.at_provider(browser)
        async with RawClient(int(place.address.rpartition(":")[2])) as client:
            cookie = "; ".join(f"{one.name}={one.value}" for one in browser.cookies)
            path = answered.url.removeprefix(place.address)
            given = await client.ask(get(path, host=place.address[7:], cookie=cookie))
        token = token_of(place.server, {"scope": "mcp:read", "person": "Alice"})
        head = {"authorization": f"Bearer {token}", "content-type": "application/json", "content-length": "0"}
        sent = {name.replace("_", "-"): value for name, value in place.page.items()}
        pasted = await place.ask(request("POST", "/console/session", {**sent, **head}))
        for answer in (given, pasted):
            line = next(value for name, value in answer.headers if name == "set-cookie" and "Strict" in value)
            age_s = int(line.partition("Max-Age=")[2].partition(";")[0])
            assert LIFE_S - 5 < age_s <= LIFE_S + SKEW_S
        ended = next(value for name, value in given.headers if name == "set-cookie" and "Lax" in value)
        assert "Max-Age=0" in ended, "the cookie of the sign-in ends with it"


async def test_an_answer_counts_once_and_in_the_browser_that_began(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        alice = Browser("Alice", follows=False)
        answered = await place.at_provider(alice)
        stolen = await asyncio.to_thread(Browser("Bob", follows=False).open, answered.url)
        assert (stolen.status, "not begun in this browser" in stolen.text) == (403, True)
        assert (await asyncio.to_thread(alice.open, answered.url)).status == 403, "it was looked at"
        answered = await place.at_provider(alice)
        before = list(alice.cookies)
        assert (await asyncio.to_thread(alice.open, answered.url)).status == 303
        for cookie in before:
            alice.cookies.set_cookie(cookie)
        again = await asyncio.to_thread(alice.open, answered.url)
        assert (again.status, "Back to the console" in again.text) == (403, True)
        assert len(place.server.forms) == 1, "no other code was redeemed"


def with_query(url: str, **members: str | None) -> str:
    base, _, query = url.partition("?")
    given = {**{name: held[0] for name, held in parse_qs(query).items()}, **members}
    return f"{base}?{urlencode({name: value for name, value in given.items() if value is not None})}"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"iss": "https://other.example"}, "(iss)"),
        ({"iss": None}, "(iss)"),
        ({"error": "access_denied", "code": None, "error_description": "<script>"}, "access_denied"),
        ({"error": "<script>", "code": None}, "unreadable error"),
        ({"code": None}, "no code"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_in_plain_words(
    members: dict[str, str | None], why: str, tmp_path: Path
) -> None:
    async with served(tmp_path) as place:
        page = await place.sign_in(change=lambda url: with_query(url, **members))
        assert (page.status, why in page.text, "Back to the console" in page.text) == (502, True, True), page.text
        assert "<script" not in page.text
        assert place.server.forms == []


@pytest.mark.parametrize(
    ("claims", "why"),
    [({"nonce": "another"}, "(nonce)"), ({"aud": "another"}, "(aud)"), ({"sub": "Bob"}, "different people")],
)
async def test_an_id_token_that_does_not_fit_opens_nothing(claims: dict[str, Any], why: str, tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        place.server.id_claims = claims
        page = await place.sign_in()
        assert (page.status, why in page.text) == (403, True), page.text


@pytest.mark.parametrize(
    ("claims", "logged"),
    [
        ({"aud": "https://other.example"}, "its audience is https://other.example"),
        ({"aud": f"{AUDIENCE}/files"}, "for a part of the gateway only"),
        ({"scope": "mail"}, "lacks the scope"),
        ({"exp": 1}, "it expired"),
    ],
)
async def test_an_access_token_that_is_not_accepted_opens_nothing_and_the_log_says_why(
    claims: dict[str, Any], logged: str, tmp_path: Path
) -> None:
    async with served(tmp_path) as place:
        place.server.access_token = lambda asked: token_of(place.server, asked, **claims)
        page = await place.sign_in()
        assert (page.status, "the gateway does not accept" in page.text) == (403, True), page.text
        reasons = [event.reason for event in place.events if isinstance(event, RequestRefused)]
        assert [logged in reason for reason in reasons] == [True], reasons


async def test_a_provider_that_is_down_is_named_before_and_after(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        browser = Browser("Alice", follows=False)
        gone = {"Content-Type": "text/plain"}
        place.server.documents["/.well-known/oauth-authorization-server"] = (500, gone, b"<script>")
        place.server.documents["/.well-known/openid-configuration"] = (500, gone, b"<script>")
        refused = await place.begin(browser)
        assert (refused.status, "script" in refused.text) == (502, False), refused.text
        place.server.documents.clear()
        answered = await place.at_provider(browser)
        place.server.codes.clear()  # the token endpoint fails
        page = await asyncio.to_thread(browser.open, answered.url)
        assert (page.status, "Back to the console" in page.text) == (502, True), page.text


async def test_only_the_page_of_the_console_at_its_own_address_begins(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        wrong: list[tuple[dict[str, str], int]] = [
            ({"sec_fetch_site": "cross-site"}, 403),
            ({"Content_Type": "text/plain"}, 415),
            ({"Origin": place.address.replace("127.0.0.1", "localhost")}, 400),
        ]
        for headers, status in wrong:
            assert (await place.begin(Browser("Alice"), **headers)).status == status, headers
        sent = {name.replace("_", "-"): value for name, value in place.page.items() if name != "x_pactgate_console"}
        head = {"content-type": "application/json", "content-length": "0", "origin": place.address}
        path = f"/console/issuers/{quote(place.server.origin, safe='')}"
        assert (await place.ask(request("POST", path, {**sent, **head}))).status == 401
        unknown = request(
            "POST", "/console/issuers/https%3A%2F%2Fevil.example", {**sent, **head, "x-pactgate-console": "x"}
        )
        assert (await place.ask(unknown)).status == 404


async def test_behind_a_proxy_the_browser_comes_back_to_the_public_address(tmp_path: Path) -> None:
    async with served(tmp_path, resource="https://GW.example:443/mcp") as place:
        head = {"content-type": "application/json", "content-length": "0", "origin": "https://gw.example"}
        sent = {name.replace("_", "-"): value for name, value in place.page.items()}
        path = f"/console/issuers/{quote(place.server.origin, safe='')}"
        answer = await place.ask(request("POST", path, {**sent, **head, "host": "gw.example"}))
        query = parse_qs(urlsplit(answer.json["url"]).query)
        assert query["redirect_uri"] == ["https://GW.example:443/connect/callback"]
        assert query["resource"] == ["https://GW.example:443/mcp"]
        assert (answer.header("set-cookie") or "").startswith("__Host-pactgate-connect=")


async def test_behind_a_proxy_without_a_public_address_there_is_no_button_and_it_says_why(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        sent = {name.replace("_", "-"): value for name, value in place.page.items()}
        assert (await place.ask(get("/console/issuers", **{**place.page, "host": "gw.example"}))).json == {
            "issuers": []
        }
        head = {"content-type": "application/json", "content-length": "0", "origin": "https://gw.example"}
        path = f"/console/issuers/{quote(place.server.origin, safe='')}"
        for host in ("gw.example", place.address[7:]):  # some proxies write a Host of their own
            answer = await place.ask(request("POST", path, {**sent, **head, "host": host}))
            assert (answer.status, b"auth.resource" in answer.body) == (400, True), answer.body


async def test_one_address_begins_so_many_sign_ins_and_pushes_nobody_elses_out(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        browser = Browser("Alice", follows=False)
        answered = await place.at_provider(browser)
        head = {"content-type": "application/json", "content-length": "0", "origin": place.address}
        sent = {name.replace("_", "-"): value for name, value in place.page.items()}
        asked = request("POST", f"/console/issuers/{quote(place.server.origin, safe='')}", {**sent, **head})
        answers = [await place.ask(asked) for _ in range(BEGINS.rpm)]
        assert [answer.status for answer in answers] == [200] * (BEGINS.rpm - 1) + [429]
        assert int(answers[-1].header("retry-after") or 0) in range(1, 61)
        assert (await asyncio.to_thread(browser.open, answered.url)).status == 303


async def test_without_a_client_at_the_provider_there_is_no_button(tmp_path: Path) -> None:
    async with served(tmp_path) as place:
        before = place.gateway.config
        issuers = tuple(replace(one, login=None) for one in before.auth.issuers)
        await place.gateway.reload(replace(before, auth=replace(before.auth, issuers=issuers)))
        assert await place.issuers() == []
        assert (await place.begin(Browser("Alice"))).status == 404
