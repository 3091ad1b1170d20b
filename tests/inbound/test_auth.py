from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest

from pactgate.config.sections.auth import token_digest
from pactgate.core.events import RequestRefused
from pactgate.core.principal import Principal
from pactgate.inbound.auth import Guard
from pactgate.inbound.credentials import Credential
from pactgate.protocol.versions import LATEST_MODERN
from tests.support.facing import credentials, message, modern, serving
from tests.support.raw_http import get, post, request

TOKENS = {
    "token-of-ops-0123456789": ("ops", frozenset({"admin"})),
    "token-of-ann-0123456789": ("ann", frozenset[str]()),
}


def tokens_only() -> Guard:
    return Guard(host="127.0.0.1", credentials=credentials(TOKENS))


def call(**headers: str) -> bytes:
    return modern("tools/call", name="echo", **headers)


GOOD_HOSTS = [
    "127.0.0.1",
    "127.0.0.1:7411",
    "localhost",
    "LocalHost:80",
    "[::1]",
    "[::1]:7411",
    "gateway.example:1",
    "exact:8080",
]
BAD_HOSTS = {
    "evil.example": 421,
    "rebind.127.0.0.1.evil.example": 421,
    "localhost.evil.example": 421,
    "evil.example:7411": 421,
    "2130706433": 421,
    "127.0.0.2": 421,
    "exact:8081": 421,
    "exact": 421,
    "[::2]": 421,
    "127.0.0.1/": 400,
    "127.0.0.1/x": 400,
    "127.0.0.1?x": 400,
    "127.0.0.1#x": 400,
    "evil@127.0.0.1": 400,
    "127.0.0.1 evil": 400,
    "127.0.0.1:99999": 400,
    "127.0.0.1:7411:1": 400,
    "127.0.0.1:": 400,
    "127.0.0.1:x": 400,
    "localhost.": 400,
    "[::1": 400,
    "::1": 400,
    "": 400,
    "h\xf6st": 400,
    "a" * 300: 400,
}


def named() -> Guard:
    return Guard(
        host="127.0.0.1",
        port=7411,
        hosts=["gateway.example", "exact:8080"],
        origins=["https://app.example"],
        anonymous=True,
    )


async def test_hosts_that_name_the_gateway_are_served() -> None:
    async with serving(guard=named()) as served:
        for host in GOOD_HOSTS:
            assert (await served.ask(call(host=host))).status == 200, host


@pytest.mark.parametrize("host", BAD_HOSTS)
async def test_other_hosts_are_refused(host: str) -> None:
    async with serving(guard=named()) as served:
        answer = await served.ask(call(host=host))
        assert answer.status == BAD_HOSTS[host]
        assert [event.status for event in served.events if isinstance(event, RequestRefused)] == [BAD_HOSTS[host]]
        assert served.kernel.callers == []
        await served.still_serves()


async def test_no_host_and_two_hosts_are_refused() -> None:
    async with serving() as served:
        assert (await served.ask(call(host="-"))).status == 400
        two = call().replace(b"host: 127.0.0.1\r\n", b"host: 127.0.0.1\r\nHost: 127.0.0.1\r\n")
        assert (await served.ask(two)).status == 400


async def test_forwarded_headers_change_nothing() -> None:
    forwarded = {
        "x_forwarded_host": "evil.example",
        "forwarded": "host=evil.example",
        "x_original_url": "/api/status",
        "x_rewrite_url": "/api/status",
        "x_forwarded_user": "ops",
    }
    async with serving() as served:
        assert (await served.ask(call(**forwarded))).status == 200
        assert served.kernel.callers[0].principal.key == "anonymous"


async def test_the_address_bound_to_is_a_good_host() -> None:
    async with serving(guard=Guard(host="fd00::1", anonymous=True)) as served:
        assert (await served.ask(call(host="[fd00::1]:7411"))).status == 200


async def test_bound_everywhere_without_names_every_well_formed_host_is_served() -> None:
    async with serving(guard=Guard(host="0.0.0.0", credentials=credentials(TOKENS))) as served:
        token = {"authorization": "Bearer token-of-ann-0123456789"}
        assert (await served.ask(call(host="whatever.example", **token))).status == 200
        assert (await served.ask(call(host="whatever.example/", **token))).status == 400
        assert (await served.ask(call(host="whatever.example"))).status == 401
        assert (await served.ask(call(origin="http://whatever.example", **token))).status == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("192.0.2.7:7411", 200),
        ("[2001:db8::7]:7411", 200),
        ("localhost:7411", 200),
        ("2130706433", 421),
    ],
)
async def test_bound_everywhere_without_tokens_only_addresses_are_served(host: str, status: int) -> None:
    async with serving(guard=Guard(host="0.0.0.0", anonymous=True)) as served:
        for data in (call(host=host), get("/api/tools", host=host), get("/metrics", host=host)):
            assert (await served.ask(data)).status == status


async def test_bound_everywhere_without_tokens_a_rebound_page_is_refused_whatever_it_names() -> None:
    async with serving(guard=Guard(host="0.0.0.0", port=7411, anonymous=True)) as served:
        for host in ("evil.example", "192.0.2.7:7411"):
            assert (await served.ask(call(host=host, origin=f"http://{host}"))).status in (403, 421)


async def test_bound_everywhere_with_names_only_those_are_served() -> None:
    async with serving(guard=Guard(host="::", hosts=["gateway.example"], anonymous=True)) as served:
        assert (await served.ask(call(host="gateway.example"))).status == 200
        assert (await served.ask(call(host="whatever.example"))).status == 421


# -- origins

GOOD_ORIGINS = [
    "http://localhost:7411",
    "http://127.0.0.1:7411",
    "http://[::1]:7411",
    "http://gateway.example:7411",
    "https://app.example",
]
BAD_ORIGINS = [
    "http://localhost",
    "http://localhost:3000",
    "https://localhost",
    "http://127.0.0.1:3000",
    "https://[::1]:1",
    "http://gateway.example",
    "https://gateway.example:8443",
    "http://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://evil-localhost",
    "http://evil@localhost",
    "http://localhost:1:2",
    "http://localhost:99999",
    "http://localhost/",
    "file://localhost",
    "localhost",
    "http://app.example",
    "https://app.example:8443",
    "http://l\xf6calhost",
    "",
    "http://",
    "http://localhost http://evil.example",
]


async def test_allowed_origins_are_served_and_told_so() -> None:
    async with serving(guard=named()) as served:
        for origin in GOOD_ORIGINS:
            answer = await served.ask(call(origin=origin))
            assert (answer.status, answer.header("access-control-allow-origin")) == (200, origin)
            assert answer.header("vary") == "Origin"
            assert "Mcp-Session-Id" in (answer.header("access-control-expose-headers") or "")


@pytest.mark.parametrize("origin", BAD_ORIGINS)
async def test_other_origins_are_refused_and_told_nothing(origin: str) -> None:
    async with serving(guard=named()) as served:
        answer = await served.ask(call(origin=origin))
        assert answer.status == 403
        assert answer.header("access-control-allow-origin") is None
        assert answer.json["id"] is None
        assert served.kernel.callers == []
        await served.still_serves()


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:9000", "http://localhost:9000", 200),
        ("gateway.example", "https://gateway.example", 200),
        ("localhost:9000", "http://localhost:9001", 403),
        ("localhost:9000", "http://127.0.0.1:9000", 403),
        ("gateway.example", "https://gateway.example:8443", 403),
        ("localhost", "http://evil.example", 403),
    ],
)
async def test_behind_a_forwarded_port_or_a_proxy_only_a_page_of_the_same_address_is_served(
    host: str, origin: str, status: int
) -> None:
    async with serving(guard=named()) as served:
        assert (await served.ask(call(host=host, origin=origin))).status == status


async def test_a_port_of_this_machine_that_is_not_ours_may_call_when_it_is_listed() -> None:
    guard = Guard(host="127.0.0.1", port=7411, origins=["http://localhost:6274"], anonymous=True)
    async with serving(guard=guard) as served:
        assert (await served.ask(call(origin="http://localhost:6274"))).status == 200
        assert (await served.ask(call(origin="http://localhost:6275"))).status == 403


async def test_two_origins_are_refused() -> None:
    async with serving() as served:
        two = call(origin="http://localhost").replace(b"\r\n\r\n", b"\r\nOrigin: http://localhost\r\n\r\n", 1)
        assert (await served.ask(two)).status == 403


async def test_a_preflight_of_an_allowed_origin_is_answered_without_credentials() -> None:
    asked = {
        "host": "localhost:3000",
        "origin": "http://localhost:3000",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, mcp-param-tenant",
    }
    async with serving(guard=tokens_only()) as served:
        answer = await served.ask(request("OPTIONS", "/mcp", asked))
        assert answer.status == 204
        assert answer.header("access-control-allow-origin") == "http://localhost:3000"
        assert "POST" in (answer.header("access-control-allow-methods") or "")
        assert answer.header("access-control-allow-headers") == "authorization, mcp-param-tenant"
        odd = await served.ask(request("OPTIONS", "/mcp", {**asked, "access-control-request-headers": "a: b"}))
        assert "Authorization" in (odd.header("access-control-allow-headers") or "")
        refused = await served.ask(request("OPTIONS", "/mcp", {**asked, "origin": "http://evil.example"}))
        assert (refused.status, refused.header("access-control-allow-methods")) == (403, None)
        plain = await served.ask(request("OPTIONS", "/mcp", {"host": "localhost"}))
        assert (plain.status, plain.header("access-control-allow-origin")) == (204, None)


# -- credentials


async def test_a_token_names_the_caller_and_its_roles() -> None:
    async with serving(guard=tokens_only()) as served:
        assert (await served.ask(call(authorization="Bearer token-of-ops-0123456789"))).status == 200
        assert (await served.ask(call(authorization="bearer  token-of-ann-0123456789"))).status == 200
        assert [(caller.principal.key, caller.principal.roles) for caller in served.kernel.callers] == [
            ("ops", frozenset({"admin"})),
            ("ann", frozenset()),
        ]


@pytest.mark.parametrize(
    "authorization",
    [
        "-",
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJvcHMifQ.",
        "Basic b3BzOnRva2Vu",
        "token-of-ops-0123456789",
        "Bearer token-of-ops-012345678",
        "Bearer TOKEN-OF-OPS-0123456789",
        "Bearer token-of-ops-0123456789, Bearer x",
        "Bearer " + "x" * 20_000,
        "Bearer t\xf6ken",
    ],
)
async def test_without_a_good_token_nothing_is_served(authorization: str) -> None:
    async with serving(guard=tokens_only()) as served:
        for path in ("/mcp", "/mcp/files", "/mcp/unknown", "/api/status", "/nowhere"):
            answer = await served.ask(modern("tools/call", path, name="echo", authorization=authorization))
            assert answer.status == 401, path
            assert (answer.header("www-authenticate") or "").startswith("Bearer")
        assert served.kernel.callers == []


async def test_tokens_elsewhere_than_in_the_header_are_never_looked_at() -> None:
    token = "token-of-ops-0123456789"
    async with serving(guard=tokens_only()) as served:
        assert (await served.ask(modern("tools/call", f"/mcp?access_token={token}", name="echo"))).status == 401
        assert (await served.ask(call(cookie=f"token={token}; Authorization=Bearer {token}"))).status == 401
        assert (await served.ask(call(x_api_key=token))).status == 401
        two = call(authorization=f"Bearer {token}").replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer x\r\n\r\n", 1)
        assert (await served.ask(two)).status == 401


async def test_a_host_trick_does_not_skip_the_credentials() -> None:
    async with serving(guard=tokens_only()) as served:
        for host in ("127.0.0.1/health/live?", "127.0.0.1?", "127.0.0.1#"):
            assert (await served.ask(call(host=host))).status == 400
        assert (await served.ask(get("/health/live/../../mcp"))).status == 401


async def test_where_anonymous_callers_are_served_a_wrong_token_is_still_wrong() -> None:
    async with serving(guard=Guard(host="127.0.0.1", credentials=credentials(TOKENS), anonymous=True)) as served:
        assert (await served.ask(call())).status == 200
        assert (await served.ask(call(authorization="Bearer wrong"))).status == 401


async def test_where_there_are_no_tokens_a_stray_one_does_not_matter() -> None:
    async with serving() as served:
        assert (await served.ask(call(authorization="Bearer of-somebody-else"))).status == 200
        assert served.kernel.callers[0].version == LATEST_MODERN


# -- digests and dates


def ops(**facts: Any) -> list[Credential]:
    return [Credential(principal=Principal("ops"), **facts)]


async def test_a_token_written_as_its_digest_admits_its_holder_and_the_digest_itself_admits_nobody() -> None:
    token = "token-of-ops-0123456789"
    digest = "sha256:" + hashlib.sha256(token.encode()).hexdigest().upper()
    guard = Guard(host="127.0.0.1", credentials=ops(digest=token_digest(digest)))
    async with serving(guard=guard) as served:
        assert (await served.ask(call(authorization=f"Bearer {token}"))).status == 200
        for guess in (digest, digest.lower(), digest.partition(":")[2]):
            assert (await served.ask(call(authorization=f"Bearer {guess}"))).status == 401


async def test_a_holder_may_have_two_tokens_at_once() -> None:
    both = ops(digest=token_digest("old-token-0123456789")) + ops(digest=token_digest("new-token-0123456789"))
    async with serving(guard=Guard(host="127.0.0.1", credentials=both)) as served:
        session = await served.session(authorization="Bearer old-token-0123456789")
        session |= {"authorization": "Bearer new-token-0123456789"}
        assert (await served.ask(post(message("ping"), **session))).status == 200


async def test_a_token_that_has_expired_is_refused() -> None:
    token = "token-of-ops-0123456789"
    guard = Guard(host="127.0.0.1", credentials=ops(digest=token_digest(token), expires_at=time.time()))
    async with serving(guard=guard) as served:
        answer = await served.ask(call(authorization=f"Bearer {token}"))
        assert (answer.status, "expired" in answer.json["error"]["message"]) == (401, True)
