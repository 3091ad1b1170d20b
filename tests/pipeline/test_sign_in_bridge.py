"""Whether a client is asked for a sign-in, and what it is told otherwise."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pactgate.core.failures import GatewayFailure, Party
from pactgate.core.principal import Principal
from pactgate.pipeline.sign_in_bridge import SignInBridge, is_callers
from pactgate.pipeline.upstream_request import UpstreamRequest
from pactgate.protocol.versions import Era
from pactgate.upstreams.oauth.steps import authorization_required
from tests.support.callers import caller

WITH_URLS: dict[str, Any] = {"elicitation": {"url": {}}}


class Links:
    def __init__(self, link: str | None) -> None:
        self._link = link

    async def link(self, server: str, principal: Principal) -> str | None:
        return self._link

    async def wait(self, server: str, principal: Principal, within_s: float) -> None:
        raise AssertionError("nothing to wait for")


class Request:
    server = "vault"

    def __init__(self, method: str = "tools/call", **more: Any) -> None:
        self.method = method
        self.caller = caller(Era.MODERN, **more)


def wanted(link: str | None, request: Request) -> Any:
    failure = authorization_required("vault", "nobody has signed in.", is_callers=True)
    assert is_callers(failure)
    return SignInBridge(lambda: Links(link)).wanted(cast("UpstreamRequest", request), failure)


async def test_a_client_that_opens_urls_is_asked() -> None:
    found = await wanted("https://gw.example/connect/x", Request(capabilities=WITH_URLS))
    assert b'"url":"https://gw.example/connect/x"' in found.question.params


@pytest.mark.parametrize(
    "request_", [Request(), Request(capabilities={"elicitation": {}}), Request("completion/complete")]
)
async def test_every_other_client_gets_the_link_in_its_failure(request_: Request) -> None:
    with pytest.raises(GatewayFailure) as refusal:
        await wanted("https://gw.example/connect/x", request_)
    assert refusal.value.message.endswith("Open https://gw.example/connect/x and call again.")
    assert refusal.value.details["connectUrl"] == "https://gw.example/connect/x"
    assert refusal.value.party is Party.CALLER


async def test_a_client_without_a_link_is_told_why() -> None:
    with pytest.raises(GatewayFailure, match=r"auth\.resource"):
        await wanted(None, Request(capabilities=WITH_URLS))


async def test_a_sign_in_of_the_operator_is_nothing_to_ask_a_client_for() -> None:
    assert not is_callers(authorization_required("vault", "nobody has signed in."))


@pytest.mark.parametrize("answer", [None, b"{}", b'{"action":"decline"}', b"[]", b'{"action":1}'])
async def test_what_is_no_consent_ends_the_call(answer: bytes | None) -> None:
    bridge = SignInBridge(lambda: Links(None))
    with pytest.raises(GatewayFailure, match="it was declined"):
        await bridge.wait_after(cast("UpstreamRequest", Request()), answer)
