"""Sign-ins of single callers (`who: user`): from the first call to the grant, whose it is, and who can not get it."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.app import Gateway
from pactgate.config.load import load
from pactgate.sign_ins import credential_store
from pactgate.upstreams.oauth.browser_sign_in import sign_in_by_browser
from pactgate.upstreams.oauth.stored_grants import StoredGrants, all_grants
from tests.support.eventually import eventually
from tests.support.facing import META, initialize, message, modern, notification
from tests.support.identity_provider import AUDIENCE, public_jwk, rsa_key, sign
from tests.support.raw_http import RawClient, get, post
from tests.support.sign_in_server import Browser, Page, SignInServer, sign_in_server

ALICE, BOB = "token-of-alice-0123456789", "token-of-bob-0123456789ab"
WITH_URLS: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}}


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        state.lists_for_nobody = True
        yield state


class Place:
    """A running gateway, its clients, and its store."""

    def __init__(self, gateway: Gateway, address: str) -> None:
        self.gateway = gateway
        self.address = address

    @property
    def kept(self) -> set[str]:
        """Whose grants are stored."""
        store = credential_store(self.gateway.config)
        assert store is not None
        return {one.principal for one in all_grants(store)}

    async def post(self, data: bytes) -> dict[str, Any]:
        async with RawClient(int(self.address.rpartition(":")[2])) as client:
            found: dict[str, Any] = (await client.ask(data)).json["result"]
            return found

    async def call(self, token: str) -> str:
        """The text of a result, from a client that can't be asked."""
        result = await self.post(modern("tools/call", name="vault__act", authorization=f"Bearer {token}"))
        return str(result["content"][0]["text"])

    async def envelope(self, token: str) -> dict[str, Any]:
        """What the gateway says of a call."""
        result = await self.post(modern("tools/call", name="vault__act", authorization=f"Bearer {token}"))
        found: dict[str, Any] = result["_meta"]["dev.pactgate/envelope"]
        return found

    async def link(self, token: str) -> str:
        found = re.search(rf"{self.address}/connect/\S+", await self.call(token))
        assert found is not None
        return found[0]

    async def sign_in(self, token: str, person: str) -> Page:
        link = await self.link(token)
        return await asyncio.to_thread(Browser(person).send, link, token)


@asynccontextmanager
async def served(
    server: SignInServer,
    folder: Path,
    callers: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    **auth: Any,
) -> AsyncIterator[Place]:
    """`callers` is who may call, `auth` the sign-in at the server, `more` further sections."""
    config = folder / "pactgate.json"
    tokens = {"alice": {"token": ALICE}, "bob": {"token": BOB}}
    entry = {"url": server.url, "auth": {"type": "oauth", "who": "user", **auth}}
    settings = {
        "mcpServers": {"vault": entry},
        "auth": callers or {"tokens": tokens},
        "listen": {"port": 0},
        "rateLimits": {"enabled": False},
        **(more or {}),
    }
    config.write_text(json.dumps(settings))
    config.chmod(0o600)
    gateway = Gateway(load(config, environ={}), lambda event: None)
    address = await gateway.serve_http()
    await gateway.start()
    await gateway.connections.session("vault")
    await gateway.connections.settle()
    try:
        yield Place(gateway, address)
    finally:
        await gateway.stop(grace_s=1)


async def test_each_caller_signs_in_by_the_link_of_its_call_and_calls_as_itself(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        said = await place.call(ALICE)
        assert said.startswith("vault needs your sign-in: nobody has signed in. Open http://127.0.0.1:")
        page = await place.sign_in(ALICE, "Alice")
        assert (page.status, "Signed in to vault" in page.text) == (200, True)
        assert await place.call(ALICE) == "done for Alice"
        assert "needs your sign-in" in await place.call(BOB), "a sign-in of somebody else is none of Bob's"
        await place.sign_in(BOB, "Bob")
        assert [await place.call(BOB), await place.call(ALICE)] == ["done for Bob", "done for Alice"]
        assert place.kept == {"alice", "bob"}


async def test_a_link_is_good_once_and_the_same_until_then(server: SignInServer, tmp_path: Path) -> None:
    async with served(server, tmp_path) as place:
        link = await place.link(ALICE)
        assert await place.link(ALICE) == link
        await asyncio.to_thread(Browser("Alice").send, link, ALICE)
        again = await asyncio.to_thread(Browser("Alice").send, link, ALICE)
        assert (again.status, "not good any more" in again.text) == (404, True)


async def test_who_opens_the_link_of_somebody_else_gets_403_and_nothing_is_stored(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        link = await place.link(BOB)
        page = await asyncio.to_thread(Browser("Alice").send, link, ALICE)
        assert (page.status, "for somebody else" in page.text) == (403, True)
        assert place.kept == set()
        assert server.codes == {}
        assert (await asyncio.to_thread(Browser("Bob").send, link, BOB)).status == 200, "it is still good for Bob"


async def test_approving_in_one_browser_and_finishing_in_another_is_403(server: SignInServer, tmp_path: Path) -> None:
    """The attack of GHSA-rww4-4w9c-7733: Alice has Bob approve at the authorization server what she began."""
    async with served(server, tmp_path) as place:
        link = await place.link(ALICE)
        begun = await asyncio.to_thread(Browser("Alice", follows=False).send, link, ALICE)
        assert begun.url.startswith(f"{server.origin}/authorize?")
        bob = await asyncio.to_thread(Browser("Bob").open, begun.url)
        assert (bob.status, "not begun in this browser" in bob.text) == (403, True)
        assert place.kept == set()
        assert server.forms == [], "the code was not redeemed"


async def test_a_page_of_another_site_can_not_send_the_form(server: SignInServer, tmp_path: Path) -> None:
    """Alice would have Bob's browser begin her sign-in, with her token, to get his grant."""
    async with served(server, tmp_path) as place:
        link = await place.link(ALICE)
        origin = {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}
        for headers in (origin, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}, {}):
            page = await asyncio.to_thread(Browser("Bob").open, link, {"token": ALICE}, **headers)
            assert page.status == 403, headers
        assert place.kept == set()


async def test_the_pages_say_nothing_to_frames_caches_and_scripts(server: SignInServer, tmp_path: Path) -> None:
    async with served(server, tmp_path) as place:
        link = await place.link(ALICE)
        async with RawClient(int(place.address.rpartition(":")[2])) as client:
            path = link.removeprefix(place.address)
            answer = await client.ask(f"GET {path} HTTP/1.1\r\nHost: {place.address[7:]}\r\n\r\n".encode())
        assert "frame-ancestors 'none'" in str(answer.header("content-security-policy"))
        assert answer.header("cache-control") == "no-store"
        assert ALICE not in answer.body.decode()
        assert "alice" not in link
        assert "vault" not in link


async def test_wrong_tokens_in_the_form_are_refused_and_slowed_down(server: SignInServer, tmp_path: Path) -> None:
    async with served(server, tmp_path) as place:
        link = await place.link(ALICE)
        pages = [await asyncio.to_thread(Browser("").send, link, f"guess-{number}") for number in range(3)]
        assert {page.status for page in pages} == {401}
        assert (await asyncio.to_thread(Browser("").send, link, ALICE)).status == 200


async def test_a_modern_client_with_url_elicitation_is_asked_and_its_call_goes_on(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        asked = await place.post(modern_call(ALICE))
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        assert question["params"]["mode"] == "url"
        link = question["params"]["url"]
        more = {"inputResponses": {key: {"action": "accept"}}, "requestState": asked["requestState"]}
        call = asyncio.ensure_future(place.post(modern_call(ALICE, **more)))
        await eventually(lambda: place.gateway.sign_ins.links._waiting)  # the call waits for the sign-in
        await asyncio.to_thread(Browser("Alice").send, link, ALICE)
        assert (await call)["content"][0]["text"] == "done for Alice"
        assert server.acted == 1


async def test_a_modern_client_whose_user_has_signed_in_already_does_not_wait(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place, asyncio.timeout(5):
        asked = await place.post(modern_call(ALICE))
        ((key, question),) = asked["inputRequests"].items()
        await asyncio.to_thread(Browser("Alice").send, question["params"]["url"], ALICE)
        more = {"inputResponses": {key: {"action": "accept"}}, "requestState": asked["requestState"]}
        assert (await place.post(modern_call(ALICE, **more)))["content"][0]["text"] == "done for Alice"


async def test_a_modern_client_that_declines_is_not_asked_again(server: SignInServer, tmp_path: Path) -> None:
    async with served(server, tmp_path) as place:
        asked = await place.post(modern_call(ALICE))
        (key,) = asked["inputRequests"]
        more = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
        result = await place.post(modern_call(ALICE, **more))
        assert result["isError"]
        assert "it was declined" in result["content"][0]["text"]


def modern_call(token: str, **more: Any) -> bytes:
    params = {"name": "vault__act", "arguments": {}, "_meta": {**META, **WITH_URLS}, **more}
    mirrored = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "vault__act"}
    return post(message("tools/call", params), authorization=f"Bearer {token}", **mirrored)


async def test_a_client_of_2025_11_25_is_asked_by_a_request_and_its_call_goes_on(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        port = int(place.address.rpartition(":")[2])
        head = {"authorization": f"Bearer {ALICE}"}
        async with RawClient(port) as client, RawClient(port) as other:
            opening = initialize()
            opening["params"]["capabilities"] = {"elicitation": {"url": {}}}
            opened = await client.post(opening, **head)
            head["mcp_session_id"] = opened.header("mcp-session-id") or ""
            await client.post(notification("notifications/initialized"), **head)
            await client.send(post(message("tools/call", {"name": "vault__act", "arguments": {}}), **head))
            await client.head()
            asked = await next_message(client)
            assert asked["method"] == "elicitation/create"
            assert asked["params"]["elicitationId"]
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}
            assert (await other.post(reply, **head)).status == 202
            await asyncio.to_thread(Browser("Alice").send, asked["params"]["url"], ALICE)
            while "result" not in (said := await next_message(client)):
                assert said["method"].startswith("notifications/")
            assert said["result"]["content"][0]["text"] == "done for Alice"


async def next_message(client: RawClient) -> dict[str, Any]:
    event = await client.event()
    assert event is not None
    found: dict[str, Any] = json.loads(event.data)
    return found


async def test_lists_need_nobody_and_other_grants_do_not_serve_calls(server: SignInServer, tmp_path: Path) -> None:
    """The operator signs in for the lists; a caller without a grant does not get that of the operator."""
    server.lists_for_nobody = False
    config = tmp_path / "pactgate.json"
    entry = {"url": server.url, "auth": {"type": "oauth", "who": "user"}}
    config.write_text(json.dumps({"mcpServers": {"vault": entry}}))
    config.chmod(0o600)
    settings = load(config, environ={})
    store = credential_store(settings)
    assert store is not None
    loop, pages = asyncio.get_running_loop(), []
    await sign_in_by_browser(
        settings.servers["vault"],
        store,
        lambda url: pages.append(loop.run_in_executor(None, Browser("Operator").open, url)),
    )
    await asyncio.gather(*pages)
    async with served(server, tmp_path) as place:
        listed = await place.post(modern("tools/list", authorization=f"Bearer {ALICE}"))
        assert [tool["name"] for tool in listed["tools"]] == ["vault__act"]
        assert "needs your sign-in" in await place.call(ALICE)
        assert server.acted == 0
        assert await place.gateway.invoke("vault__act"), "whoever holds the gateway is its operator"
        assert server.callers == ["Operator"]


async def test_grants_of_two_users_are_never_crossed_in_interleaved_calls_with_refreshes_between(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        await place.sign_in(ALICE, "Alice")
        await place.sign_in(BOB, "Bob")
        store = credential_store(place.gateway.config)
        assert store is not None
        names, port = {ALICE: "Alice", BOB: "Bob"}, int(place.address.rpartition(":")[2])

        async def calls(token: str) -> None:
            async with RawClient(port) as client:
                for _ in range(50):
                    data = modern("tools/call", name="vault__act", authorization=f"Bearer {token}")
                    text = (await client.ask(data)).json["result"]["content"][0]["text"]
                    assert text == f"done for {names[token]}"

        for _ in range(5):
            await asyncio.gather(*(calls(token) for token in (ALICE, BOB, ALICE, BOB)))
            server.expire_tokens()
            age(place)
        assert sorted(server.callers) == ["Alice"] * 500 + ["Bob"] * 500
        assert len(server.refreshes) == 8


async def test_a_grant_that_was_revoked_gives_a_link_again_and_never_a_loop(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        await place.sign_in(ALICE, "Alice")
        assert await place.call(ALICE) == "done for Alice"
        server.expire_tokens()
        server.refresh_tokens.clear()
        age(place)
        for _ in range(3):
            assert "needs your sign-in: the sign-in has ended. Open http" in await place.call(ALICE)
        assert len(server.refreshes) == 1
        await place.sign_in(ALICE, "Alice")
        assert await place.call(ALICE) == "done for Alice"


async def test_a_call_that_was_sent_again_with_a_new_token_says_so_and_ran_once(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path) as place:
        await place.sign_in(ALICE, "Alice")
        assert "attempts" not in await place.envelope(ALICE)
        server.expire_tokens()
        age(place)
        assert (await place.envelope(ALICE))["attempts"] == 2
        assert "attempts" not in await place.envelope(ALICE)
        assert server.acted == 3


async def test_a_client_that_can_not_be_told_from_others_has_no_grant(server: SignInServer, tmp_path: Path) -> None:
    async with served(server, tmp_path) as place:
        before = place.gateway.config
        await place.gateway.reload(replace(before, auth=replace(before.auth, anonymous=True)))
        result = await place.post(modern("tools/call", name="vault__act"))
        assert "this one can't be told from others" in result["content"][0]["text"]
        assert "/connect/" not in result["content"][0]["text"]


def provider_of(server: SignInServer, **more: Any) -> dict[str, Any]:
    """An identity provider that is at the address of the sign-in server. It publishes no keys: they are in the settings."""
    keys = {"keys": [public_jwk(rsa_key(), kid="one", use="sig")]}
    return {"issuers": [{"issuer": server.origin, "audiences": [AUDIENCE], "jwks": keys, **more}]}


def token_of(server: SignInServer, person: str, **claims: Any) -> str:
    good = {"iss": server.origin, "sub": person, "aud": AUDIENCE, "exp": int(time.time()) + 300, "scope": "mcp:write"}
    return sign({"alg": "RS256", "typ": "at+jwt", "kid": "one"}, {**good, **claims}, rsa_key())


async def test_a_person_shows_who_it_is_at_the_identity_provider_of_its_client(
    server: SignInServer, tmp_path: Path
) -> None:
    callers = provider_of(server, login={"clientId": "gateway", "clientSecret": "of-the-gateway"})
    async with served(server, tmp_path, callers) as place:
        alice, bob = token_of(server, "Alice"), token_of(server, "Bob")
        link = await place.link(alice)
        other = await asyncio.to_thread(Browser("Bob").open, link)
        assert (other.status, "for somebody else" in other.text) == (403, True)
        assert place.kept == set()
        page = await asyncio.to_thread(Browser("Alice").open, link)
        assert (page.status, "Signed in to vault" in page.text) == (200, True)
        assert place.kept == {f"{server.origin}#Alice"}
        assert await place.call(alice) == "done for Alice"
        refreshed = token_of(server, "Alice", exp=int(time.time()) + 400)
        assert await place.call(refreshed) == "done for Alice", "another token of the same person"
        assert "needs your sign-in" in await place.call(bob)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://other.example"}, "(iss)"),
        ({"aud": "another"}, "(aud)"),
        ({"azp": "another"}, "(aud)"),
        ({"nonce": "another"}, "(nonce)"),
        ({"exp": 1}, "expired"),
    ],
)
async def test_an_id_token_that_does_not_fit_shows_nobody(
    claims: dict[str, Any], why: str, server: SignInServer, tmp_path: Path
) -> None:
    callers = provider_of(server, login={"clientId": "gateway"})
    server.id_claims = claims
    async with served(server, tmp_path, callers) as place:
        page = await asyncio.to_thread(Browser("Alice").open, await place.link(token_of(server, "Alice")))
        assert (page.status, why in page.text) == (403, True), page.text
        assert place.kept == set()


async def test_an_answer_of_the_identity_provider_counts_in_the_browser_that_began(
    server: SignInServer, tmp_path: Path
) -> None:
    async with served(server, tmp_path, provider_of(server, login={"clientId": "gateway"})) as place:
        link = await place.link(token_of(server, "Alice"))
        begun = await asyncio.to_thread(Browser("Alice", follows=False).open, link)
        answered = await asyncio.to_thread(Browser("Alice", follows=False).open, begun.url)
        page = await asyncio.to_thread(Browser("Bob").open, answered.url)
        assert (page.status, "not begun in this browser" in page.text) == (403, True)


async def test_no_token_of_a_sign_in_is_in_anything_that_is_written_or_answered(
    server: SignInServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    written = {
        "audit": {"file": str(tmp_path / "audit.jsonl"), "arguments": "values"},
        "capture": {"dir": str(tmp_path / "captures")},
        "log": {"level": "debug", "format": "json"},
    }
    tokens = {"alice": {"token": ALICE}, "ops": {"token": BOB, "roles": ["admin"]}}
    async with served(server, tmp_path, {"tokens": tokens}, written) as place:
        await place.sign_in(ALICE, "Alice")
        assert await place.call(ALICE) == "done for Alice"
        server.expire_tokens()
        age(place)
        assert await place.call(ALICE) == "done for Alice"
        server.refresh_tokens.clear()
        server.expire_tokens()
        age(place)
        said = [await place.call(ALICE)]
        async with RawClient(int(place.address.rpartition(":")[2])) as client:
            for path in ("/metrics", "/api/servers", "/api/calls", "/health"):
                answer = await client.ask(get(path, authorization=f"Bearer {BOB}"))
                assert answer.status == 200, path
                said.append(answer.body.decode())
    files = [file for file in tmp_path.rglob("*") if file.is_file()]  # noqa: ASYNC240 - a test
    assert [file for file in files if file.parent.name == "captures"]
    said += [caplog.text, *(file.read_bytes().decode("latin-1") for file in files if file.name != "pactgate.json")]
    secrets = {ALICE, *server.people}
    assert len(secrets) == 5, "hers, and two pairs of the authorization server"
    assert not [secret for secret in secrets if any(secret in text for text in said)]


EXCHANGE: dict[str, Any] = {"clientId": "gateway", "clientSecret": "of-the-gateway"}


async def test_the_token_of_a_caller_is_exchanged_and_never_sent_to_the_server(
    server: SignInServer, tmp_path: Path
) -> None:
    exchange = {"issuer": server.origin, "audience": "vault"}
    async with served(server, tmp_path, provider_of(server), who="exchange", **EXCHANGE, exchange=exchange) as place:
        alice, bob = token_of(server, "Alice"), token_of(server, "Bob")
        assert [await place.call(alice), await place.call(bob)] == ["done for Alice", "done for Bob"]
        (form, _) = server.forms
        assert form["subject_token"] == alice
        assert form["subject_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
        assert (form["resource"], form["audience"]) == (server.url, "vault")
        assert alice not in server.seen_tokens, "the caller's own token is for its provider"
        assert [await place.call(alice), await place.call(alice)] == ["done for Alice"] * 2
        assert len(server.forms) == 2, "one exchange serves the next calls"


async def test_a_token_with_other_rights_is_exchanged_by_itself(server: SignInServer, tmp_path: Path) -> None:
    exchange = {"issuer": server.origin}
    async with served(server, tmp_path, provider_of(server), who="exchange", **EXCHANGE, exchange=exchange) as place:
        narrow, wide = token_of(server, "Alice"), token_of(server, "Alice", scope="mcp:run")
        await place.call(narrow)
        await place.call(wide)
        assert [form["subject_token"] for form in server.forms] == [narrow, wide]


async def test_an_assertion_of_the_provider_is_redeemed_at_the_authorization_server_of_the_server(
    server: SignInServer, tmp_path: Path
) -> None:
    exchange = {"issuer": server.origin, "idJag": True, "clientId": "gateway-there", "clientSecret": "of-it-there"}
    settings: dict[str, Any] = {**EXCHANGE, "issuer": server.origin, "exchange": exchange}
    async with served(server, tmp_path, provider_of(server), who="exchange", **settings) as place:
        assert await place.call(token_of(server, "Alice")) == "done for Alice"
        asked, redeemed = server.forms
        assert asked["requested_token_type"] == "urn:ietf:params:oauth:token-type:id-jag"
        assert (asked["audience"], asked["resource"]) == (server.origin, server.url)
        assert redeemed["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        assert redeemed["assertion"].startswith("assertion-")


async def test_a_caller_without_a_token_of_the_provider_is_told_so(server: SignInServer, tmp_path: Path) -> None:
    callers = {**provider_of(server), "tokens": {"ops": {"token": ALICE}}}
    exchange = {"issuer": server.origin}
    async with served(server, tmp_path, callers, who="exchange", **EXCHANGE, exchange=exchange) as place:
        said = await place.call(ALICE)
        assert f"takes callers with a token of {server.origin} only" in said
        assert server.acted == 0


def age(place: Place) -> None:
    """Make the grants a minute older than they are."""
    store = credential_store(place.gateway.config)
    assert store is not None
    for server, who, stored in all_grants(store):
        older = replace(stored.grant, signed_in_at=stored.grant.signed_in_at - 60, refreshed_at=None)
        StoredGrants(store, server, older.resource, who).write(older)
