"""The code signs in once; a session ends after a while, with its credential, and when there are too many."""

from __future__ import annotations

import pytest

from pactgate.core.events import CredentialsRefused, ServerDisconnected
from pactgate.core.principal import Principal
from pactgate.inbound.console_sessions import MAX_SESSIONS, OPERATOR, SESSION_S, ConsoleSessions
from pactgate.inbound.guess_brake import FREE_GUESSES
from tests.support.consoles import ADMIN, FROM_PAGE, HOST, TOKENS, USER, serving_console
from tests.support.eventually import eventually
from tests.support.raw_http import get

TOKENS_PRINCIPAL = Principal("ops", frozenset({"admin"}))


async def test_the_code_signs_in_once_as_an_administrator() -> None:
    async with serving_console(anonymous=True) as console:
        code = console.sessions.code
        answer = await console.sign_in(code)
        assert (answer.status, answer.json["isAdmin"]) == (200, True)
        assert (await console.sign_in(code)).status == 401
        assert console.sessions.code != code


async def test_the_code_opens_nothing_but_the_sign_in() -> None:
    async with serving_console() as console:
        bearer = f"Bearer {console.sessions.code}"
        assert (await console.served.ask(get("/api/calls", authorization=bearer))).status == 401
        asked = get("/api/calls", authorization=bearer, x_pactgate_console="x", sec_fetch_site="same-origin")
        assert (await console.served.ask(asked)).status == 401


async def test_the_cookie_is_for_this_port_and_no_script() -> None:
    async with serving_console() as console:
        cookie = (await console.sign_in(ADMIN)).header("set-cookie") or ""
        name, *attributes = cookie.split("; ")
        assert name.startswith(f"pactgate-{HOST.partition(':')[2]}=")
        assert attributes == ["Path=/", f"Max-Age={SESSION_S}", "HttpOnly", "SameSite=Strict"]


async def test_a_link_signs_in_with_the_code_and_with_no_token_of_its_author() -> None:
    async with serving_console() as console:
        assert [(await console.sign_in(secret, scheme="Code")).status for secret in (ADMIN, USER, "")] == [401] * 3
        answer = await console.sign_in(console.sessions.code, scheme="Code")
        assert (answer.status, answer.json["subject"]) == (200, OPERATOR.shown)


async def test_a_code_that_is_none_is_a_guess() -> None:
    async with serving_console() as console:
        for _ in range(FREE_GUESSES + 1):
            await console.sign_in("made-up", scheme="Code")
        assert any(isinstance(event, CredentialsRefused) for event in console.served.events)


def test_behind_https_the_cookie_is_for_https_and_this_host_alone() -> None:
    sessions = ConsoleSessions(lambda: 0.0, is_tls=True, public=lambda: None)
    headers = {"host": ["gate.example"]}
    cookie = sessions.open(TOKENS_PRINCIPAL, headers, is_secure=sessions.is_secure(headers)).cookie
    assert cookie.startswith(b"Set-Cookie: __Host-pactgate-console=")
    assert cookie.endswith(b"; SameSite=Strict; Secure\r\n")


@pytest.mark.parametrize("host", ["gate.example", "127.0.0.1:7411"])
async def test_behind_a_proxy_that_ends_tls_the_cookie_is_for_https_alone(host: str) -> None:
    """Also where the proxy writes a Host of its own."""
    async with serving_console(hosts=("gate.example",)) as console:
        console.public = "https://gate.example"
        answer = await console.sign_in(ADMIN, host=host, origin="https://gate.example")
        cookie = answer.header("set-cookie") or ""
        assert (cookie.startswith("__Host-pactgate-"), cookie.endswith("; Secure")) == (True, True)
        session = {
            "host": host,
            "cookie": cookie.partition(";")[0],
            "x_pactgate_console": answer.json["key"],
            **FROM_PAGE,
        }
        assert (await console.read("/api/calls", session)).status == 200
        out = await console.send("DELETE", "/console/session", session)
        assert (out.header("set-cookie") or "").startswith(cookie.partition("=")[0] + "=; Path=/; Max-Age=0")
        assert (await console.read("/api/calls", session)).status == 401


async def test_a_page_of_this_machine_gets_a_cookie_that_it_can_keep() -> None:
    async with serving_console() as console:
        console.public = "https://gate.example"
        cookie = (await console.sign_in(ADMIN, origin=f"http://{HOST}")).header("set-cookie") or ""
        assert (cookie.startswith("pactgate-"), cookie.endswith("SameSite=Strict")) == (True, True)


async def test_a_session_ends_after_twelve_hours() -> None:
    async with serving_console() as console:
        session = await console.session()
        console.wall.ahead_s = SESSION_S - 60
        assert (await console.read("/api/calls", session)).status == 200
        console.wall.ahead_s = SESSION_S + 1
        assert (await console.read("/api/calls", session)).status == 401


async def test_a_session_ends_with_the_token_it_was_opened_with_and_so_does_its_stream() -> None:
    async with serving_console() as console:
        session = await console.session(USER)
        async with console.served.client() as client:
            await client.send(get("/api/stream", **session))
            assert (await client.head()).status == 200
            assert await client.event() is not None
            console.served.frontend.replace_guard(console.guard({ADMIN: TOKENS[ADMIN]}))
            assert await client.event() is None
        assert (await console.read("/api/calls", session)).status == 401
        console.emit(
            ServerDisconnected("files", "gone", "UPSTREAM_UNAVAILABLE")
        )  # whoever has gone is noticed with the next event
        await eventually(lambda: not console.listeners)


async def test_a_role_that_is_taken_away_ends_the_session() -> None:
    async with serving_console() as console:
        session = await console.session(ADMIN)
        console.served.frontend.replace_guard(console.guard({ADMIN: ("ops", frozenset())}))
        assert (await console.read("/api/calls", session)).status == 401


async def test_the_oldest_session_of_whoever_has_most_makes_room() -> None:
    async with serving_console() as console:
        others, first = await console.session(USER), await console.session(ADMIN)
        for _ in range(MAX_SESSIONS):
            console.sessions.open(TOKENS_PRINCIPAL, {"host": [HOST]}, is_secure=False)
        assert len(console.sessions) == MAX_SESSIONS
        assert (await console.read("/api/calls", first)).status == 401
        assert (await console.read("/api/calls", others)).status == 200


async def test_a_cookie_that_is_none_is_refused_quietly() -> None:
    async with serving_console() as console:
        for cookie in ("", "=;;=", "pactgate-7411", 'pactgate-7411="', "x" * 5000, "pactgate-7411=sha256:zz"):
            headers = {"cookie": cookie, "x_pactgate_console": "sha256:zz", "sec_fetch_site": "same-origin"}
            assert (await console.served.ask(get("/api/calls", host=HOST, **headers))).status == 401, cookie
