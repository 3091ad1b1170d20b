"""The cookie that binds a sign-in to its browser, and what reaches a header or a page from others."""

from __future__ import annotations

from functools import partial

from pactgate.inbound.browser_pages import members, sent_cookie
from pactgate.inbound.connect_pages import ConnectPages, LinkTicket
from pactgate.upstreams.oauth.connect import Ticket
from tests.inbound.test_connect_pages import LINK, SignIns
from tests.support.consoles import Nobody
from tests.support.facing import serving
from tests.support.raw_http import Answer, RawClient, get


class OfPeople(SignIns):
    """Links for people whom an identity provider knows."""

    async def find(self, name: str) -> LinkTicket | None:
        return Ticket("vault", "alice", "alice", "https://idp.example")


async def opened(base: str, **headers: str) -> Answer:
    pages = partial(ConnectPages, OfPeople(base), Nobody())
    async with serving(connect=pages) as face, RawClient(face.port) as client:
        return await client.ask(get(LINK, **headers))


async def test_the_cookie_is_for_no_script_and_comes_along_when_the_browser_is_sent_back() -> None:
    plain, safe = [(await opened(f"{scheme}://gw.example")).header("set-cookie") or "" for scheme in ("http", "https")]
    assert plain.startswith("pactgate-connect=")
    assert plain.endswith("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax")
    assert safe.startswith("__Host-pactgate-connect=")
    assert safe.endswith("; SameSite=Lax; Secure")


async def test_a_browser_that_has_a_secret_keeps_it_and_one_that_made_it_up_does_not() -> None:
    secret = "s" * 43
    for cookie, is_kept in ((secret, True), ("short", False), (f"{secret}s", False)):
        answer = await opened("http://gw.example", cookie=f"pactgate-connect={cookie}")
        assert (f"={cookie};" in (answer.header("set-cookie") or "")) is is_kept, cookie


async def test_no_control_character_reaches_a_header() -> None:
    answer = await opened("http://gw.example/\r\nX-Injected: yes")
    assert (answer.status, answer.header("x-injected")) == (303, None)


def test_a_cookie_or_a_query_that_can_not_be_read_is_none() -> None:
    for sent in ([], ["a=1", "a=1"], ["x" * 5000], ["=;;="], ["b=1"]):
        assert sent_cookie({"cookie": sent}, "a") == "", sent
    assert sent_cookie({"cookie": ["b=2; a=1"]}, "a") == "1"
    assert members("&".join("a=b" for _ in range(21))) == {}
