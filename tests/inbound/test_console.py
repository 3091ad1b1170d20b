"""Every route of the console wants a session, from its own page."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pactgate.core.events import ConsoleOpened
from pactgate.inbound.console import Access
from pactgate.inbound.console_captures import ConsoleCaptures
from pactgate.inbound.console_sessions import SESSION_PATH
from tests.support.consoles import ADMIN, HOST, USER, serving_console
from tests.support.facing import modern, until
from tests.support.raw_http import request

API = ("/api/status", "/api/servers", "/api/tools", "/api/calls", "/api/calls/x", "/metrics")


@pytest.mark.parametrize("anonymous", [False, True])
async def test_every_route_without_a_cookie_is_refused(anonymous: bool) -> None:
    async with serving_console(anonymous=anonymous) as console:
        declared = [(route.access, (route.method, route.path)) for route in console.console.routes]
        open_to_all = [route for access, route in declared if access is Access.PAGE]
        assert open_to_all == [("GET", "/console/issuers"), ("POST", "/console/issuers/")]
        routes = [route for access, route in declared if access is not Access.PAGE]
        assert {SESSION_PATH, "/api/stream", "/api/captures/", "/api/sign-ins/"} <= {path for _, path in routes}
        routes = [(method, f"{path}x" if path.endswith("/") else path) for method, path in routes]
        for method, path in [*routes, *(("GET", path) for path in API), ("POST", "/mcp")]:
            headers = {"host": HOST, "x-pactgate-console": "x", "content-type": "application/json"}
            answer = await console.served.ask(request(method, path, {**headers, "content-length": "0"}))
            assert answer.status == 401, (method, path)
        for method, path in [*routes, ("GET", "/console/issuers"), ("POST", "/console/issuers/x")]:
            answer = await console.served.ask(request(method, path, {"host": HOST, "content-length": "0"}))
            assert answer.status == 401, (method, path)


async def test_what_the_page_needs_to_sign_in_is_for_the_page_alone() -> None:
    async with serving_console() as console:
        page = {"host": HOST, "x_pactgate_console": "none", "sec_fetch_site": "same-origin"}
        assert (await console.read("/console/issuers", page)).json == {"issuers": []}
        assert (await console.read("/console/issuers", {**page, "sec_fetch_site": "cross-site"})).status == 403
        assert (await console.read("/console/issuers", {**page, "authorization": f"Bearer {ADMIN}"})).status == 401
        assert (await console.send("POST", "/console/issuers/https%3A%2F%2Fevil.example", page)).status == 404


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


async def test_what_is_declared_for_administrators_is_refused_to_others() -> None:
    async with serving_console() as console:
        session = await console.session(USER)
        routes = [route for route in console.console.routes if route.access is Access.ADMIN]
        assert len(routes) == 7
        for route in routes:
            path = f"{route.path}files" if route.path.endswith("/") else route.path
            assert (await console.send(route.method, path, session)).status == 403, route
        assert console.signed_in == []


async def test_a_sign_in_at_a_server_gives_the_url_to_open_and_says_why_it_can_not_begin() -> None:
    async with serving_console() as console:
        session = await console.session()
        assert (await console.send("POST", "/api/sign-ins/files", session)).json["url"].startswith("https://issuer")
        answer = await console.send("POST", "/api/sign-ins/web", session)
        assert (answer.status, "no server web" in answer.json["error"]["message"]) == (404, True)
        assert console.signed_in == ["files"]


async def test_a_browser_elsewhere_is_told_where_to_sign_in_at_a_server() -> None:
    """The answer of its authorization server comes to an address of the gateway's machine."""
    async with serving_console(hosts=("gate.example",)) as console:
        session = {**await console.session(), "origin": "https://gate.example"}
        answer = await console.send("POST", "/api/sign-ins/files", session)
        assert (answer.status, "pactgate login files" in answer.json["error"]["message"]) == (404, True)
        assert console.signed_in == []
        at_home = {**session, "origin": f"https://{HOST}"}  # with a certificate of this machine
        assert (await console.send("POST", "/api/sign-ins/files", at_home)).status == 200


async def test_two_answers_are_compared_as_a_replay_compares_them() -> None:
    async with serving_console() as console:
        pair = {"before": {"id": 1, "result": {"a": 1, "_meta": {}}}, "after": {"id": 9, "result": {"a": 2}}}
        answer = await console.send("POST", "/api/differences", await console.session(), json.dumps(pair).encode())
        assert answer.json["differences"] == [{"pointer": "/result/a", "kind": "changed", "recorded": "1", "now": "2"}]
        broken = await console.send("POST", "/api/differences", await console.session(), b"[")
        assert broken.status == 400


async def test_a_body_is_not_waited_for_from_somebody_without_a_session() -> None:
    async with serving_console() as console:
        headers = {
            "host": HOST,
            "x-pactgate-console": "x",
            "content-type": "application/json",
            "content-length": "9999",
        }
        assert (await console.served.ask(request("POST", "/api/differences", headers))).status == 401


async def test_the_messages_of_calls_are_a_download_or_say_that_nothing_is_recorded() -> None:
    async with serving_console() as console:
        answer = await console.read("/api/messages", await console.session())
        assert (answer.status, "capture.dir" in answer.json["error"]["message"]) == (404, True)
        assert (await console.read("/api/messages?filter=tol:x", await console.session())).status == 400


async def test_no_more_than_a_few_slow_answers_are_made_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()

    async def slow(captures: ConsoleCaptures, name: str) -> bytes:
        await go.wait()
        return b"{}"

    monkeypatch.setattr(ConsoleCaptures, "read", slow)
    async with serving_console(captures=str(tmp_path)) as console:
        session = await console.session()
        waiting = [asyncio.create_task(console.read("/api/captures/x", session)) for _ in range(4)]
        await until(lambda: sum(one.work is not None for one in console.served.frontend.exchanges()) == 4)
        refused = await console.read("/api/captures/x", session)
        assert (refused.status, refused.header("retry-after")) == (503, "5")
        go.set()
        assert [answer.status for answer in await asyncio.gather(*waiting)] == [200] * 4


async def test_each_client_is_told_the_address_that_the_browser_uses() -> None:
    async with serving_console() as console:
        answer = await console.read("/api/clients", await console.session(USER))
        assert answer.json["clients"] == [{"id": "x", "entry": f"http://{HOST}"}]
