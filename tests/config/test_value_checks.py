"""What single values must be: ids, command lines, URLs, headers, tokens, addresses."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config import value_checks


@pytest.mark.requirement("S0/ECO-003")
@pytest.mark.parametrize("text", ["a", "files", "my-server-2", "a" * 50])
def test_a_legal_server_id_is_accepted(text: str) -> None:
    assert value_checks.check_server_id(text) is None


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("My_Server", "my-server"),
        ("files.v2", "files-v2"),
        ("GitHub Copilot", "github-copilot"),
        ("2fast", "fast"),
        ("123", "server-123"),
        ("---", "server"),
        ("", "server"),
        ("ein Gerät", "ein-ger-t"),
        ("a" * 60, "a" * 50),
        ("files\n", "files"),
        ("pactgate_", "pactgate-server"),
    ],
)
def test_an_id_that_can_not_be_used_comes_with_the_nearest_that_can(text: str, suggestion: str) -> None:
    fault = value_checks.check_server_id(text)
    assert fault is not None
    assert f'"{suggestion}"' in fault.hint


def test_the_gateway_keeps_its_own_id_for_itself() -> None:
    assert value_checks.check_server_id("pactgate") is not None


@given(st.text(max_size=300))
def test_a_suggested_id_is_always_legal(text: str) -> None:
    legal = value_checks.legal_id(text)
    assert re.fullmatch(value_checks.SERVER_ID, legal)
    assert value_checks.check_server_id(legal) is None


@pytest.mark.parametrize("text", ["a\x00b", "\x00"])
def test_nothing_that_breaks_a_command_line_is_accepted_in_one(text: str) -> None:
    assert value_checks.check_argument(text) is not None


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\n"])
def test_an_argument_may_have_several_lines_and_a_program_may_not(text: str) -> None:
    assert value_checks.check_argument(text) is None
    assert value_checks.check_program(text) is not None
    assert value_checks.check_program(f"x{text}") is not None


def test_a_command_line_is_no_shell_so_everything_else_is_literal() -> None:
    assert value_checks.check_argument("; rm -rf / && $(id) `id` | \t*") is None
    assert value_checks.check_argument("") is None


@pytest.mark.parametrize("text", ["~/bin/server", "~", "  ", ""])
def test_a_program_that_only_a_shell_would_find_is_refused(text: str) -> None:
    assert value_checks.check_program(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8080/mcp",
        "https://crm.example/mcp?key=a%20b",
        "https://[::1]:8443/",
        "HTTPS://CRM.EXAMPLE",
    ],
)
def test_a_url_we_may_call_is_accepted(text: str) -> None:
    assert value_checks.check_url(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "ftp://crm.example",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "crm.example/mcp",
        "//crm.example",
        "https://",
        "https:///path",
        "https://:80/",
        "https://user@crm.example",
        "https://user:secret@crm.example",
        "https://@crm.example",
        "https://crm.example/#top",
        "https://crm.example/#",
        "https://crm.example:99999/",
        "https://crm.example:0/",
        "https://crm.example:x/",
        "https://[::1/",
        "https://crm.example/a b",
        "https://crm.example/\r\nX: y",
        "https://crm.example\\@evil.example/",
        "https://crm.exämple/",
        "\thttps://crm.example/",
    ],
)
def test_a_url_we_may_not_call_is_refused(text: str) -> None:
    assert value_checks.check_url(text) is not None


@given(st.text())
def test_no_text_breaks_the_url_check(text: str) -> None:
    value_checks.check_url("http://" + text)


@pytest.mark.parametrize("text", ["", "a b", "a:", "a\r\nb", "ä", "a(b)"])
def test_a_header_name_is_a_token(text: str) -> None:
    assert value_checks.check_header_name(text) is not None


@pytest.mark.parametrize(
    "text", ["Content-Length", "HOST", "transfer-encoding", "Mcp-Session-Id", "mcp-protocol-version"]
)
def test_headers_that_frame_a_message_stay_the_gateways(text: str) -> None:
    assert value_checks.check_header_name(text) is not None


@pytest.mark.parametrize("text", ["a\r\nX-Evil: b", "a\n", "\x00", "ä", " a", "a ", "\x7f"])
def test_a_header_value_is_visible_ascii(text: str) -> None:
    assert value_checks.check_header_value(text) is not None


@pytest.mark.parametrize("text", ["", "x", "Bearer a.b-c_d", "a\tb"])
def test_an_ordinary_header_value_is_accepted(text: str) -> None:
    assert value_checks.check_header_value(text) is None


@pytest.mark.parametrize("text", ["", "A=B", "A\x00", "A\n"])
def test_a_name_that_is_no_environment_variable_is_refused(text: str) -> None:
    assert value_checks.check_env_name(text) is not None


def test_an_environment_value_may_have_lines_but_no_nul() -> None:
    assert value_checks.check_env_value("-----BEGIN\nKEY-----\n") is None
    assert value_checks.check_env_value("a\x00") is not None


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (
            value_checks.check_host,
            ["127.0.0.1", "::1", "0.0.0.0", "localhost", "fe80::1%eth0"],
            ["", "[::1]", "a b", "a/b", "a:\n"],
        ),
        (
            value_checks.check_allowed_host,
            ["gateway.example", "gateway.example:8080", "[::1]:80"],
            ["http://a", "a/b", "*", "", "a\n"],
        ),
        (
            value_checks.check_origin,
            ["https://app.example", "http://localhost:3000", "chrome-extension://abc"],
            ["app.example", "https://app.example/", "*", "null", "https://u@a", ""],
        ),
        (
            value_checks.check_network,
            ["192.0.2.1", "10.0.0.0/8", "2001:db8::/32", "::1"],
            ["", "proxy.example", "10.0.0.1/8", "0.0.0.0/0", "::/0", "10.0.0.0/33"],
        ),
    ],
)
def test_addresses_are_written_as_their_headers_have_them(check: object, good: list[str], bad: list[str]) -> None:
    assert callable(check)
    assert [text for text in good if check(text)] == []
    assert [text for text in bad if not check(text)] == []


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.example", False),
    ],
)
def test_only_addresses_of_this_machine_are_loopback(host: str, is_local: bool) -> None:
    assert value_checks.is_loopback(host) is is_local


SECRET = "hunter2-and-more"


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (value_checks.check_url, f"ftp://{SECRET}"),
        (value_checks.check_url, f"https://u:{SECRET}@crm.example"),
        (value_checks.check_header_value, f"{SECRET}\n"),
        (value_checks.check_env_value, f"{SECRET}\x00"),
        (value_checks.check_argument, f"{SECRET}\n"),
    ],
)
def test_a_value_that_may_be_secret_is_not_repeated(check: object, text: str) -> None:
    assert callable(check)
    assert SECRET not in str(check(text))


@pytest.mark.parametrize("text", ["https://api.example", "http://127.0.0.1:8080/v1/", "https://api.example/a%20b/c"])
def test_a_base_url_is_a_url_to_begin_with(text: str) -> None:
    assert value_checks.check_base_url(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("ftp://api.example", "https://u:p@api.example", "https://api.example/?q=1", "https://api.example/a/../b"),
        *("https://api.example/{x}", "https://api.example/%2e%2e/", "https://api.example/a%2fb", "/v1", ""),
    ],
)
def test_a_base_url_that_could_lead_elsewhere_is_refused(text: str) -> None:
    assert value_checks.check_base_url(text) is not None


@pytest.mark.parametrize("text", ["/", "/a", "/a/{id}", "/a/{id}.json", "/{a}/{b-c}", "/a%20b", "/v1.0/x:run", "/a/"])
def test_a_path_template_has_placeholders(text: str) -> None:
    assert value_checks.check_path_template(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a",
            "//host/a",
            "/../a",
            "/a/..",
            "/./a",
            "/%2e%2e/a",
            "/a%2fb",
            "/a?b",
            "/a#b",
            "/a b",
            "/{a",
            "/{}",
            "/{a}/{a}",
        ),
        *("/a\r\nb", "/a\\b", "/é", "/a%00", "/%"),
    ],
)
def test_a_path_template_that_could_lead_elsewhere_is_refused(text: str) -> None:
    fault = value_checks.check_path_template(text)
    assert fault is not None
    assert fault.hint


def test_media_types_and_hosts() -> None:
    assert value_checks.check_media_type("application/vnd.api+json; charset=utf-8") is None
    assert value_checks.check_media_type("json") is not None
    assert value_checks.check_media_type("a/b\r\nX: 1") is not None
    assert all(
        value_checks.check_egress_host(host) is None for host in ("api.example:8080", "10.0.0.1", "::1", "[::1]")
    )
    assert all(value_checks.check_egress_host(host) is not None for host in ("http://x", "x:port", "a b", "*"))
