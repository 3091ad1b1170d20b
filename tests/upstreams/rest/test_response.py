"""Answers of REST endpoints, each by the decided rule; every open question demonstrated both ways."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import Category, ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.refusals import ConfiguredHeaders
from pactgate.upstreams.rest.response import KEPT_CHARS, ResponseOptions, ResponseReader
from tests.support.rest_api import plain

JSON = {b"content-type": b"application/json"}
SECRET = "s3cr3t-token-value"


def reader(settings: dict[str, Any] | None = None, **reading: Any) -> ResponseReader:
    own = ConfiguredHeaders("shop", {"Authorization": f"Bearer {SECRET}"})
    return ResponseReader(plain(**(settings or {})), ResponseOptions("shop", **reading), own, b'{"k":1}')


def read(body: bytes, status: int = 200, headers: Any = None, settings: Any = None, **reading: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        reader(settings, **reading).read(status, JSON if headers is None else headers, body)
    )
    assert found["_meta"] == {"k": 1}
    return found


def refused(
    body: bytes, status: int = 200, headers: Any = None, settings: Any = None, **reading: Any
) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as raised:
        reader(settings, **reading).read(status, JSON if headers is None else headers, body)
    failure = raised.value
    assert failure.category is Category.UPSTREAM_FAILURE
    assert (failure.server, failure.tool) == ("shop", "shop.ask")
    return failure


def text_of(result: dict[str, Any]) -> str:
    (content,) = result["content"]
    assert content["type"] == "text"
    return str(content["text"])


# JSON.


def test_an_object_is_structured_content_and_text_as_it_was_written() -> None:
    body = b' {"n": 12345678901234567890.10, "s": "\xc3\xa9"} '
    result = reader().read(200, JSON, body)
    assert b'"structuredContent":{"n": 12345678901234567890.10, "s": "\xc3\xa9"}' in result
    assert text_of(json.loads(result)) == body.decode().strip()


@pytest.mark.parametrize("body", [b"[1,2]", b"[]", b'"text"', b"3", b"true", b"false", b"0"])
def test_what_is_no_object_stands_in_one(body: bytes) -> None:
    assert read(body)["structuredContent"] == {"result": json.loads(body)}


def test_with_an_output_schema_the_schema_says_what_stands_where() -> None:
    assert read(b"[1]", settings={"outputSchema": {"type": "array"}})["structuredContent"] == {"result": [1]}
    assert read(b"[1]", settings={"outputSchema": {"type": "object"}})["structuredContent"] == [1]
    assert read(b"{}", settings={"outputSchema": {"type": "object"}})["structuredContent"] == {}


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "application/problem+json", "text/json", "APPLICATION/JSON"]
)
def test_json_has_several_names(kind: str) -> None:
    assert read(b'{"a":1}', headers={b"content-type": kind.encode()})["structuredContent"] == {"a": 1}
    assert read(b'\xef\xbb\xbf{"a":1}', headers={})["structuredContent"] == {"a": 1}


# Empty (undecided point 1).


@pytest.mark.requirement("S4/UNDECIDED-1")
@pytest.mark.parametrize("body", [b"", b"  \r\n", b"null", b"{}", b"{ \n }"])
def test_an_empty_answer_is_a_failure_unless_somebody_says_it_is_one(body: bytes) -> None:
    failure = refused(body)
    assert (failure.kind, failure.code) == (Kind.EMPTY_RESPONSE, ErrorCode.INVALID_OUTPUT)
    assert failure.verdict is Verdict.RAN
    assert read(body, settings={"allowEmpty": True})["content"]
    assert read(body, allows_empty=True)["content"]


@pytest.mark.requirement("S4/UNDECIDED-1")
@pytest.mark.parametrize("status", [204, 205])
@pytest.mark.parametrize("kind", ["json", "text", "binary", "none"])
def test_a_status_that_means_empty_is_a_success_that_says_so(status: int, kind: str) -> None:
    assert text_of(read(b"", status, settings={"response": kind})) == f"No content (HTTP {status})."


@pytest.mark.requirement("S4/UNDECIDED-1")
@pytest.mark.parametrize("kind", ["text", "binary"])
def test_emptiness_counts_for_every_kind_of_response(kind: str) -> None:
    assert refused(b"", settings={"response": kind}).kind is Kind.EMPTY_RESPONSE


@pytest.mark.requirement("S4/UNDECIDED-1")
def test_an_endpoint_without_a_response_has_none_and_says_what_it_left_out() -> None:
    assert text_of(read(b"", 201, settings={"response": "none"})) == "No content (HTTP 201)."
    assert "4 bytes of content were skipped" in text_of(read(b"more", settings={"response": "none"}))


def test_head_tells_what_the_headers_say() -> None:
    headers = {b"content-length": b"12", b"etag": b'"x"', b"x-other": b"no"}
    assert (
        text_of(read(b"", 200, headers, {"method": "HEAD", "response": "none"}))
        == 'HTTP 200\ncontent-length: 12\netag: "x"'
    )


# Partial (undecided point 3).


@pytest.mark.requirement("S4/UNDECIDED-3")
def test_a_missing_expected_member_is_a_failure_unless_nothing_is_checked() -> None:
    expect = {"expect": {"required": ["id", "/owner/name", "/tags/1", "a/b"]}}
    failure = refused(b'{"id": 1, "owner": {}, "tags": ["x"]}', settings=expect)
    assert (failure.kind, failure.code) == (Kind.SCHEMA_MISMATCH, ErrorCode.INVALID_OUTPUT)
    assert [error["pointer"] for error in failure.details["errors"]] == ["/owner/name", "/tags/1", "/a~1b"]
    assert failure.details["body"].startswith('{"id"')
    whole = b'{"id": null, "owner": {"name": ""}, "tags": ["x", "y"], "a/b": 0}'
    assert read(whole, settings=expect)["structuredContent"]["id"] is None
    assert read(b'{"id": 1}', settings=expect, output_validation="off")["structuredContent"] == {"id": 1}
    assert refused(b"[1]", settings=expect).kind is Kind.SCHEMA_MISMATCH


def test_a_part_nobody_asked_for_is_no_answer() -> None:
    assert refused(b'{"a":1}', 206).kind is Kind.HTTP_STATUS


# Not JSON (undecided point 4).


@pytest.mark.requirement("S4/UNDECIDED-4")
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"text/html", b"<html>Please log in</html>"),
        (b"text/html", b'{"a":1}'),
        (b"application/json", b"<html>"),
        (b"application/json", b'{"a":1'),
        (b"application/json", b'{"a":1} trailing'),
        (b"application/json", b"NaN"),
        (b"", b"plain words"),
        (b"application/json", b"[" * 100_000),
    ],
)
def test_what_is_not_json_is_a_failure_unless_text_is_taken(kind: bytes, body: bytes) -> None:
    failure = refused(body, headers={b"content-type": kind})
    assert (failure.kind, failure.code) == (Kind.NON_JSON_RESPONSE, ErrorCode.INVALID_OUTPUT)
    assert len(failure.details["body"]) <= KEPT_CHARS + 1
    taken = read(body, headers={b"content-type": kind}, takes_text_for_json=True)
    assert text_of(taken) == body.decode()
    assert "structuredContent" not in taken


@pytest.mark.requirement("S4/UNDECIDED-4")
def test_text_is_text_when_it_is_declared() -> None:
    html = {b"content-type": b"text/html; charset=ISO-8859-1"}
    assert text_of(read(b"caf\xe9", headers=html, settings={"response": "text"})) == "café"
    assert text_of(read(b'{"a":1}', settings={"response": "text"})) == '{"a":1}'


@pytest.mark.requirement("S4/UNDECIDED-4")
@pytest.mark.parametrize(
    ("kind", "body"), [(b"text/plain", b"caf\xe9"), (b"text/plain; charset=klingon", b"x"), (b"", b"\xff\xfe\xfd")]
)
def test_undecodable_bytes_are_a_failure(kind: bytes, body: bytes) -> None:
    assert (
        refused(body, headers={b"content-type": kind}, settings={"response": "text"}).kind is Kind.UNDECODABLE_RESPONSE
    )
    loose: dict[str, Any] = {"headers": {b"content-type": kind}, "takes_text_for_json": True}
    assert refused(body, **loose).kind is Kind.UNDECODABLE_RESPONSE


@pytest.mark.requirement("S4/UNDECIDED-4")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (b"image/png", {"type": "image", "data": "AAE=", "mimeType": "image/png"}),
        (b"audio/wav; x=y", {"type": "audio", "data": "AAE=", "mimeType": "audio/wav"}),
        (
            b"application/pdf",
            {"type": "resource", "resource": {"uri": "rest://shop/ask", "mimeType": "application/pdf", "blob": "AAE="}},
        ),
        (
            b"",
            {
                "type": "resource",
                "resource": {"uri": "rest://shop/ask", "mimeType": "application/octet-stream", "blob": "AAE="},
            },
        ),
    ],
)
def test_binary_content_is_shown_by_its_media_type(kind: bytes, expected: dict[str, Any]) -> None:
    assert read(b"\x00\x01", headers={b"content-type": kind}, settings={"response": "binary"})["content"] == [expected]


# Codings.


def test_a_server_that_compresses_unasked_is_read_within_bounds() -> None:
    packed = {**JSON, b"content-encoding": b"gzip"}
    assert read(gzip.compress(b'{"a":1}'), headers=packed)["structuredContent"] == {"a": 1}
    assert refused(gzip.compress(bytes(5000)), headers=packed, max_bytes=1000).kind is Kind.RESPONSE_TOO_LARGE
    assert refused(b"x", headers=packed).kind is Kind.UNDECODABLE_RESPONSE
    assert refused(b"x", headers={**JSON, b"content-encoding": b"br"}).kind is Kind.UNDECODABLE_RESPONSE
    failure = refused(gzip.compress(b"no such thing"), 404, packed)
    assert failure.details["body"] == "no such thing"
    assert refused(b"x", 500, packed).kind is Kind.HTTP_STATUS


# Statuses.


@pytest.mark.requirement("S4/F2")
@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (400, ErrorCode.OPERATION_FAILED, Verdict.DID_NOT_RUN),
        (401, ErrorCode.PERMISSION_DENIED, Verdict.DID_NOT_RUN),
        (403, ErrorCode.PERMISSION_DENIED, Verdict.DID_NOT_RUN),
        (404, ErrorCode.NOT_FOUND, Verdict.DID_NOT_RUN),
        (409, ErrorCode.CONFLICT, Verdict.MAY_HAVE_RUN),
        (410, ErrorCode.NOT_FOUND, Verdict.MAY_HAVE_RUN),
        (422, ErrorCode.OPERATION_FAILED, Verdict.MAY_HAVE_RUN),
        (429, ErrorCode.RATE_LIMITED, Verdict.DID_NOT_RUN),
        (500, ErrorCode.OPERATION_FAILED, Verdict.MAY_HAVE_RUN),
        (503, ErrorCode.SERVICE_UNAVAILABLE, Verdict.MAY_HAVE_RUN),
        (599, ErrorCode.OPERATION_FAILED, Verdict.MAY_HAVE_RUN),
        (301, ErrorCode.OPERATION_FAILED, Verdict.MAY_HAVE_RUN),
        (304, ErrorCode.OPERATION_FAILED, Verdict.MAY_HAVE_RUN),
    ],
)
def test_a_status_that_is_no_success_is_a_failure_with_its_code(status: int, code: ErrorCode, verdict: Verdict) -> None:
    failure = refused(b"why", status, {b"content-type": b"text/plain"})
    assert (failure.kind, failure.code, failure.verdict) == (Kind.HTTP_STATUS, code, verdict)
    assert failure.details["status"] == status
    assert failure.details["body"] == "why"
    assert str(status) in failure.message


def test_a_wait_the_server_asks_for_is_passed_on() -> None:
    assert refused(b"", 429, {b"retry-after": b"3"}).retry_after_ms == 3000
    assert refused(b"", 500, {b"retry-after": b"3"}).retry_after_ms is None


@pytest.mark.requirement("S4/F2")
def test_the_body_of_an_error_is_kept_bounded_and_without_our_secrets() -> None:
    body = f"you sent {SECRET} \x1b[31m\x00".encode() + b"x" * 100_000 + b"\xff"
    failure = refused(body, 500)
    said = failure.details["body"]
    assert "***" in said
    assert SECRET not in said + failure.message
    assert "\x1b" not in said + failure.message
    assert len(said) <= KEPT_CHARS + 1
    assert failure.details["bodyBytes"] == len(body)
    assert len(failure.message) < 2200


def test_no_half_of_a_secret_stays_where_the_body_of_an_error_is_cut() -> None:
    for length in range(KEPT_CHARS - 2 * len(SECRET), KEPT_CHARS + 1):
        said = refused(b"x" * length + SECRET.encode() + b"y" * 100_000, 500).details["body"]
        assert SECRET[:4] not in said


@given(
    st.integers(100, 999),
    st.binary(max_size=50),
    st.sampled_from([b"application/json", b"text/plain", b"\xff/;charset=x", b""]),
)
def test_whatever_comes_is_a_result_or_an_upstream_failure(status: int, body: bytes, kind: bytes) -> None:
    for response in ("json", "text", "binary", "none"):
        try:
            result = reader({"response": response}).read(
                status, {b"content-type": kind, b"content-encoding": b""}, body
            )
        except GatewayFailure as failure:
            if failure.category is not Category.UPSTREAM_FAILURE:
                raise
        else:
            assert json.loads(result)["content"]
