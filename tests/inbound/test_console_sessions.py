"""The code signs in once; a session ends after a while, with its credential, and when there are too many."""

from __future__ import annotations

from pactgate.core.events import ServerDisconnected
from pactgate.core.principal import Principal
from pactgate.inbound.console_sessions import MAX_SESSIONS, SESSION_S, ConsoleSessions
from tests.support.consoles import ADMIN, HOST, TOKENS, USER, serving_console
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


def test_behind_https_the_cookie_is_for_https_and_this_host_alone() -> None:
    sessions = ConsoleSessions(lambda: 0.0, is_secure=True)
    cookie = sessions.open(TOKENS_PRINCIPAL, {"host": ["gate.example"]}).cookie
    assert cookie.startswith(b"Set-Cookie: __Host-pactgate-console=")
    assert cookie.endswith(b"; SameSite=Strict; Secure\r\n")


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
            console.sessions.open(TOKENS_PRINCIPAL, {"host": [HOST]})
        assert len(console.sessions) == MAX_SESSIONS
        assert (await console.read("/api/calls", first)).status == 401
        assert (await console.read("/api/calls", others)).status == 200


async def test_a_cookie_that_is_none_is_refused_quietly() -> None:
    async with serving_console() as console:
        for cookie in ("", "=;;=", "pactgate-7411", 'pactgate-7411="', "x" * 5000, "pactgate-7411=sha256:zz"):
            headers = {"cookie": cookie, "x_pactgate_console": "sha256:zz", "sec_fetch_site": "same-origin"}
            assert (await console.served.ask(get("/api/calls", host=HOST, **headers))).status == 401, cookie
