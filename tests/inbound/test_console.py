"""Every route of the console wants a session, from its own page."""

from __future__ import annotations

import pytest

from pactgate.core.events import ConsoleOpened
from pactgate.inbound.console_sessions import SESSION_PATH
from tests.support.consoles import ADMIN, HOST, USER, serving_console
from tests.support.facing import modern
from tests.support.raw_http import request

API = ("/api/status", "/api/servers", "/api/tools", "/api/calls", "/api/calls/x", "/metrics")


@pytest.mark.parametrize("anonymous", [False, True])
async def test_every_route_without_a_cookie_is_refused(anonymous: bool) -> None:
    async with serving_console(anonymous=anonymous) as console:
        routes = [(route.method, route.path) for route in console.console.routes]
        assert {SESSION_PATH, "/api/stream", "/api/captures/", "/api/sign-ins/"} <= {path for _, path in routes}
        routes = [(method, f"{path}x" if path.endswith("/") else path) for method, path in routes]
        for method, path in [*routes, *(("GET", path) for path in API), ("POST", "/mcp")]:
            headers = {"host": HOST, "x-pactgate-console": "x", "content-type": "application/json"}
            answer = await console.served.ask(request(method, path, {**headers, "content-length": "0"}))
            assert answer.status == 401, (method, path)
        for method, path in routes:
            answer = await console.served.ask(request(method, path, {"host": HOST, "content-length": "0"}))
            assert answer.status == 401, (method, path)


async def test_a_session_reads_the_api_and_calls_tools() -> None:
    async with serving_console() as console:
        session = await console.session()
        for path in ("/api/status", "/api/servers", "/api/tools", "/api/calls"):
            assert (await console.read(path, session)).status == 200, path
        assert (await console.served.ask(modern("tools/call", name="echo", **session))).status == 200
        assert console.served.kernel.callers[-1].principal.key == "ops"


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "same-origin, cross-site"},
    ],
)
async def test_a_foreign_page_can_neither_read_nor_write(headers: dict[str, str]) -> None:
    async with serving_console() as console:
        session = {**await console.session(), **headers}
        assert (await console.read("/api/calls", session)).status == 403
        assert (await console.served.ask(modern("tools/call", name="echo", **session))).status == 403
        assert (await console.sign_in(ADMIN, **headers)).status == 403
        assert console.served.kernel.callers == []


async def test_a_browser_that_says_nothing_of_the_page_needs_the_own_origin_to_write() -> None:
    async with serving_console() as console:
        session = await console.session()
        del session["sec_fetch_site"]
        assert (await console.read("/api/calls", session)).status == 200
        assert (await console.served.ask(modern("tools/call", name="echo", **session))).status == 403
        assert (
            await console.served.ask(modern("tools/call", name="echo", **session, origin=f"http://{HOST}"))
        ).status == 200


async def test_a_cookie_without_the_key_of_the_page_opens_nothing() -> None:
    async with serving_console() as console:
        session = await console.session()
        assert (await console.read("/api/calls", {**session, "x_pactgate_console": "x"})).status == 401
        del session["x_pactgate_console"]
        assert (await console.read("/api/calls", session)).status == 401


async def test_a_foreign_host_is_refused() -> None:
    async with serving_console() as console:
        session = {**await console.session(), "host": "evil.example:7411"}
        for path in ("/console/", "/", "/api/calls", "/console/session"):
            assert (await console.read(path, session)).status == 421, path


async def test_a_sign_in_needs_the_content_type_and_another_method_is_named() -> None:
    async with serving_console() as console:
        assert (await console.sign_in(ADMIN, content_type="text/plain")).status == 415
        session = await console.session()
        put = await console.served.ask(
            request("PUT", SESSION_PATH, {name.replace("_", "-"): value for name, value in session.items()})
        )
        assert (put.status, put.header("allow")) == (405, "POST, GET, DELETE")


async def test_who_is_signed_in_is_shown_and_told() -> None:
    async with serving_console() as console:
        for secret, subject, is_admin in ((ADMIN, "ops", True), (USER, "app", False)):
            session = await console.session(secret)
            facts = (await console.read(SESSION_PATH, session)).json
            assert facts == {"subject": subject, "isAdmin": is_admin, "needsToken": True}
        assert [event.subject for event in console.events if isinstance(event, ConsoleOpened)] == ["ops", "app"]


async def test_signing_out_ends_the_session() -> None:
    async with serving_console() as console:
        session = await console.session()
        headers = {name.replace("_", "-"): value for name, value in session.items()}
        answer = await console.served.ask(request("DELETE", SESSION_PATH, headers))
        assert (answer.status, "Max-Age=0" in (answer.header("set-cookie") or "")) == (200, True)
        assert (await console.read("/api/calls", session)).status == 401
