"""Where requests go and what their header lines can hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.request_message import HttpTarget, UnsafeHeaderError, header_block, header_line, media_type


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_header_is_one_line_or_nothing(name: str, value: str) -> None:
    try:
        line = header_line(name, value)
    except UnsafeHeaderError:
        return
    assert line == f"{name}: {value}\r\n".encode("ascii")
    assert line.count(b"\r") == line.count(b"\n") == 1
    assert b"\0" not in line
    assert b":" not in name.encode()


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\rb", "a\0b", "caf\u00e9", "\u2028", "a\x7f"])
def test_a_value_that_could_end_its_line_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(UnsafeHeaderError) as caught:
        header_line("Authorization", value)
    assert value not in str(caught.value)
    assert "Authorization" in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "\u00e4", "x" * 257, "a(b"])
def test_a_name_that_is_no_token_is_refused(name: str) -> None:
    with pytest.raises(UnsafeHeaderError):
        header_line(name, "x")


def test_a_block_is_its_lines_in_order() -> None:
    assert header_block([("A", "1"), ("B", "")]) == b"A: 1\r\nB: \r\n"


def test_a_media_type_is_compared_without_parameters_and_case() -> None:
    assert media_type(b" Application/JSON ; charset=utf-8") == b"application/json"


@pytest.mark.parametrize(
    ("url", "origin", "line"),
    [
        ("http://a/mcp", "http://a", b" /mcp HTTP/1.1\r\nHost: a\r\n"),
        ("http://a:80", "http://a", b" / HTTP/1.1\r\nHost: a\r\n"),
        ("https://A.example:443/x?y=1#z", "https://a.example", b" /x?y=1 HTTP/1.1\r\nHost: a.example\r\n"),
        ("http://[::1]:8000/m", "http://[::1]:8000", b" /m HTTP/1.1\r\nHost: [::1]:8000\r\n"),
    ],
)
def test_a_url_becomes_a_place_to_connect_to_and_a_request_line(url: str, origin: str, line: bytes) -> None:
    target = HttpTarget("s", url)
    assert target.origin == origin
    assert target.tail == line + b"Accept-Encoding: identity\r\n"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/",
        "/mcp",
        "http://",
        "http://a b/",
        "http://a/\r\nX: y",
        "http://a/\u00e4",
        "http://a:99999/",
        "http://[::1/",
        "http://user:secret@a/",
    ],
)
def test_a_url_that_can_not_be_used_is_a_configuration_error_without_its_credentials(url: str) -> None:
    with pytest.raises(GatewayFailure) as caught:
        HttpTarget("s", url)
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert "secret" not in caught.value.message


@pytest.mark.requirement("S4/F3")
def test_a_message_about_a_target_shows_neither_address_nor_path_nor_query() -> None:
    assert str(HttpTarget("s", "http://10.0.0.5:81/token/abc?key=def")) == "s"


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("/messages?s=1", b" /messages?s=1 "),
        ("messages", b" /a/messages "),
        ("http://h:1/x", b" /x "),
        ("?s=1", b" /a/sse?s=1 "),
    ],
)
def test_a_reference_on_the_same_origin_is_resolved(reference: str, path: bytes) -> None:
    resolved = HttpTarget("s", "http://h:1/a/sse").resolve(reference)
    assert resolved is not None
    assert resolved.tail.startswith(path)


@pytest.mark.parametrize(
    "reference",
    [
        "http://h:2/x",
        "https://h:1/x",
        "http://other:1/x",
        "//other/x",
        "http://u@h:1/x",
        "/x\r\nX: y",
        "file:///etc/passwd",
        "http://[",
    ],
)
def test_a_reference_that_leads_elsewhere_is_refused(reference: str) -> None:
    assert HttpTarget("s", "http://h:1/a/sse").resolve(reference) is None
