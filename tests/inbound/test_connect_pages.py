"""The pages of `/connect` at their edges; `tests/journeys/test_caller_sign_in.py` walks through them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import pytest
from msgspec.structs import replace

from pactgate.core.failures import GatewayFailure
from pactgate.inbound import connect_pages
from pactgate.inbound.begin_rate import BEGINS
from pactgate.inbound.connect_pages import MAX_FORM_BYTES, ConnectPages, LinkTicket
from pactgate.upstreams.oauth.connect import Ticket as RealTicket
from pactgate.upstreams.oauth.steps import sign_in_failure
from tests.support.consoles import Nobody
from tests.support.facing import serving
from tests.support.raw_http import RawClient, get, request

LINK = "/connect/" + "a" * 43


class SignIns:
    """Sign-ins of nobody in particular."""

    def __init__(self, base: str = "https://gw.example") -> None:
        self.base: Callable[[], str | None] = lambda: base
        self.document = lambda: f"{base}/oauth/client.json" if base.startswith("https") else ""
        self.issuer = ""
        self.failure: GatewayFailure | None = None
        self.answered = asyncio.Event()
        self.answered.set()

    async def find(self, name: str) -> LinkTicket | None:
        return RealTicket("<b>vault</b>", "alice", "<i>alice</i>", self.issuer)

    async def begin(self, name: str, browser: str) -> str:
        return "https://login.example/authorize?a=b\r\nSet-Cookie: x=y"

    async def finish(self, answer: Mapping[str, str], browser: str) -> str | None:
        if self.failure is not None:
            raise self.failure
        await self.answered.wait()
        return None


@asynccontextmanager
async def opened(sign_ins: SignIns) -> AsyncIterator[RawClient]:
    async with serving(connect=partial(ConnectPages, sign_ins, Nobody())) as face, RawClient(face.port) as client:
        yield client


async def test_the_client_id_metadata_document_is_where_it_says_it_is() -> None:
    async with opened(SignIns()) as client:
        answer = await client.ask(get("/oauth/client.json"))
        assert answer.status == 200
        assert answer.json["client_id"] == "https://gw.example/oauth/client.json"
        assert answer.json["redirect_uris"] == ["https://gw.example/connect/callback", "http://127.0.0.1/callback"]
        assert answer.json["token_endpoint_auth_method"] == "none"


async def test_without_a_public_address_there_is_no_document() -> None:
    async with opened(SignIns("http://127.0.0.1:7411")) as client:
        assert (await client.ask(get("/oauth/client.json"))).status == 404


async def test_names_of_others_are_text_in_a_page() -> None:
    async with opened(SignIns()) as client:
        answer = await client.ask(get(LINK))
        assert b"<b>vault" not in answer.body
        assert b"&lt;i&gt;alice" in answer.body


async def test_whoever_has_a_link_begins_so_many_sign_ins_with_it() -> None:
    sign_ins = SignIns()
    sign_ins.issuer = "https://login.example"
    async with opened(sign_ins) as client:
        found = [(await client.ask(get(LINK))).status for _ in range(BEGINS.rpm + 1)]
    assert found == [303] * BEGINS.rpm + [429]


async def test_a_failure_is_told_without_what_another_party_wrote() -> None:
    sign_ins = SignIns()
    sign_ins.failure = sign_in_failure("vault", "it was refused.", "<script>")
    async with opened(sign_ins) as client:
        answer = await client.ask(get("/connect/callback?state=x&error=y"))
        assert answer.status == 502
        assert b"it was refused. Call the tool again for another link." in answer.body
        assert b"script" not in answer.body


async def test_an_answer_that_takes_too_long_is_told_in_words_of_a_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_pages, "_TASKS", replace(connect_pages._TASKS, timeout_s=0.05))
    sign_ins = SignIns()
    sign_ins.answered.clear()
    async with opened(sign_ins) as client:
        answer = await client.ask(get("/connect/callback?state=x&code=y"))
        assert answer.status == 503
        assert b"This took too long. Begin again." in answer.body


async def test_a_form_that_is_too_large_or_elsewhere_is_not_read() -> None:
    headers = {"host": "127.0.0.1", "sec-fetch-site": "same-origin"}
    for path, length in ((LINK, MAX_FORM_BYTES + 1), ("/connect/callback", 10), ("/connect/short", 10)):
        async with opened(SignIns()) as client:
            answer = await client.ask(request("POST", path, {**headers, "content-length": str(length)}))
            assert answer.status in (404, 413), path


async def test_a_query_with_too_many_members_is_an_answer_to_nothing() -> None:
    async with opened(SignIns()) as client:
        query = "&".join(f"a{number}=b" for number in range(50))
        assert (await client.ask(get(f"/connect/callback?{query}"))).status == 403
