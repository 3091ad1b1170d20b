"""The operator's headers, and what a refusing status means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.display import visible
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.refusals import ConfiguredHeaders, retry_after_ms, status_failure
from pactgate.upstreams.http.request_message import HttpTarget
from pactgate.upstreams.http.response import HttpResponse

TARGET = HttpTarget("files", "http://h:1/secret-path")


def refused(status: int, body: bytes = b"", **headers: str) -> GatewayFailure:
    given_headers = {name.encode(): value.encode() for name, value in headers.items()}
    return status_failure(TARGET, HttpResponse(status, given_headers, body), ConfiguredHeaders("files", {}))


def test_configured_headers_are_encoded_once_with_a_name_for_ourselves() -> None:
    assert (
        ConfiguredHeaders("s", {"Authorization": "Bearer x"}).block
        == b"Authorization: Bearer x\r\nUser-Agent: pactgate\r\n"
    )
    assert ConfiguredHeaders("s", {"user-agent": "mine"}).block == b"user-agent: mine\r\n"


@pytest.mark.parametrize(
    "name",
    ["Host", "content-length", "Transfer-Encoding", "Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Param-X", "Accept"],
)
def test_a_header_the_gateway_sets_itself_can_not_be_configured(name: str) -> None:
    with pytest.raises(GatewayFailure) as caught:
        ConfiguredHeaders("files", {name: "x"})
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert name in caught.value.message


@pytest.mark.parametrize("value", ["secret\r\nX: y", "secr\u00e9t", "secret\0"])
def test_a_configured_value_that_can_not_be_sent_is_named_but_not_shown(value: str) -> None:
    with pytest.raises(GatewayFailure) as caught:
        ConfiguredHeaders("files", {"X-Key": value})
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert "X-Key" in caught.value.message
    assert "sec" not in caught.value.message


def test_what_a_server_wrote_is_quoted_without_the_credentials_it_was_sent() -> None:
    own = ConfiguredHeaders("s", {"Authorization": "Bearer abcdef123456", "X-Key": "k3y-k3y"})
    quoted = own.quote(b"bad header Authorization: Bearer abcdef123456 / abcdef123456 / k3y-k3y")
    assert "abcdef123456" not in quoted
    assert "k3y-k3y" not in quoted
    assert quoted.startswith("bad header Authorization: ***")


@given(st.binary(max_size=3000))
def test_a_quote_is_one_printable_bounded_line(body: bytes) -> None:
    quoted = ConfiguredHeaders("s", {}).quote(body)
    assert len(quoted) <= 200
    assert quoted == visible(quoted)
    assert "\n" not in quoted


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_name_the_server_and_what_to_check(status: int) -> None:
    failure = refused(status, b"<html>whatever</html>")
    assert (failure.kind, failure.verdict) == (Kind.HTTP_STATUS, Verdict.DID_NOT_RUN)
    assert failure.details == {"permanent": True, "status": status}
    assert "`headers` of files" in failure.message
    assert "secret" not in failure.message


def test_a_token_of_a_sign_in_is_sent_masked_and_named_where_it_is_refused() -> None:
    own = ConfiguredHeaders("files", {})
    own.sign_in("token-of-somebody")
    assert own.block.endswith(b"Authorization: Bearer token-of-somebody\r\n")
    assert own.quote(b"you sent token-of-somebody") == "you sent ***"
    failure = status_failure(HttpTarget("files", "http://127.0.0.1:9/"), HttpResponse(403, {}), own)
    assert "`pactgate auth status`" in failure.message
    own.sign_in("")
    assert b"Authorization" not in own.block


def test_credentials_that_were_sent_are_not_accepted_and_not_wanted() -> None:
    own = ConfiguredHeaders("files", {"Authorization": "Bearer abcdef123456"})
    failure = status_failure(TARGET, HttpResponse(401, {}, b""), own)
    assert "did not accept our credentials" in failure.message


@pytest.mark.parametrize(("status", "code"), [(429, ErrorCode.RATE_LIMITED), (503, ErrorCode.SERVICE_UNAVAILABLE)])
def test_a_server_that_asks_to_come_back_later_is_a_passing_failure(status: int, code: ErrorCode) -> None:
    failure = refused(status, b"", **{"retry-after": "7"})
    assert (failure.kind, failure.code, failure.retry_after_ms) == (Kind.HTTP_STATUS, code, 7000)
    assert failure.is_transient
    assert "permanent" not in failure.details


@pytest.mark.parametrize("status", [400, 404, 418, 500, 502])
def test_any_other_refusal_says_its_status_and_what_was_written(status: int) -> None:
    failure = refused(status, b"no \x1b[31msuch\n thing", **{"retry-after": "7"})
    assert failure.kind is Kind.HTTP_STATUS
    assert failure.details == {"status": status}
    assert failure.retry_after_ms is None
    assert f"HTTP {status}: no \\x1b[31msuch thing." in failure.message
    assert failure.verdict is (Verdict.DID_NOT_RUN if status in (400, 404) else Verdict.MAY_HAVE_RUN)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        (" 5 ", 5000),
        ("99999999999", 3_600_000),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("\u0663", None),
    ],
)
def test_retry_after_in_seconds(value: str, expected: int | None) -> None:
    assert retry_after_ms(value) == expected


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after_ms(later) == pytest.approx(60_000, abs=2000)
    assert retry_after_ms("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after_ms("Wed, 21 Oct 2015 07:28:00 -0000") == 0
    assert retry_after_ms("Wed, 21 Oct 2015 07:28:00 +" + "9" * 17) is None


@given(st.text(max_size=60))
def test_any_retry_after_is_a_bounded_number_or_nothing(value: str) -> None:
    wait_ms = retry_after_ms(value)
    assert wait_ms is None or 0 <= wait_ms <= 3_600_000
