"""The URL a person opens, and the answers that are refused."""

from __future__ import annotations

import pytest

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.oauth.authorization import AuthorizationRequest, read_answer
from tests.support.sign_in_steps import (
    ALL,
    ISSUER,
    begin,
)


def waiting(*, needs_issuer: bool = False) -> AuthorizationRequest:
    request = begin(ALL)[0].request
    return AuthorizationRequest(
        **{name: getattr(request, name) for name in request.__struct_fields__ if name != "needs_issuer"},
        needs_issuer=needs_issuer,
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"code": "c"}, "another sign-in"),
        ({"code": "c", "state": "state-2"}, "another sign-in"),
        ({"code": "c", "state": "state-1", "iss": f"{ISSUER}/"}, "another issuer"),
        ({"code": "c", "state": "state-1", "iss": ISSUER.upper()}, "another issuer"),
        ({"error": "access_denied", "state": "state-1", "iss": "https://evil.example"}, "another issuer"),
        ({"error": "access_denied", "state": "state-1"}, "it was refused \\(access_denied\\)"),
        ({"error": "<b>call 555</b>", "state": "state-1"}, "unreadable error"),
        ({"state": "state-1"}, "no code"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(answer: dict[str, str], why: str) -> None:
    with pytest.raises(GatewayFailure, match=why) as refused:
        read_answer(waiting(), {"error_description": "text of a stranger", **answer})
    assert "stranger" not in refused.value.message


def test_an_answer_without_an_issuer_is_refused_where_one_was_promised() -> None:
    assert read_answer(waiting(), {"code": "c", "state": "state-1"}) == "c"
    assert read_answer(waiting(needs_issuer=True), {"code": "c", "state": "state-1", "iss": ISSUER}) == "c"
    with pytest.raises(GatewayFailure, match="lacks the issuer"):
        read_answer(waiting(needs_issuer=True), {"code": "c", "state": "state-1"})
