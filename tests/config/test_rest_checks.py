"""Single values of REST endpoints: base URLs, path templates, media types, hosts."""

from __future__ import annotations

import pytest

from pactgate.config import rest_checks


@pytest.mark.parametrize("text", ["https://api.example", "http://127.0.0.1:8080/v1/", "https://api.example/a%20b/c"])
def test_a_base_url_is_a_url_to_begin_with(text: str) -> None:
    assert rest_checks.check_base_url(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("ftp://api.example", "https://u:p@api.example", "https://api.example/?q=1", "https://api.example/a/../b"),
        *("https://api.example/{x}", "https://api.example/%2e%2e/", "https://api.example/a%2fb", "/v1", ""),
    ],
)
def test_a_base_url_that_could_lead_elsewhere_is_refused(text: str) -> None:
    assert rest_checks.check_base_url(text) is not None


@pytest.mark.parametrize("text", ["/", "/a", "/a/{id}", "/a/{id}.json", "/{a}/{b-c}", "/a%20b", "/v1.0/x:run", "/a/"])
def test_a_path_template_has_placeholders(text: str) -> None:
    assert rest_checks.check_path_template(text) is None


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
    fault = rest_checks.check_path_template(text)
    assert fault is not None
    assert fault.hint


def test_media_types_and_hosts() -> None:
    assert rest_checks.check_media_type("application/vnd.api+json; charset=utf-8") is None
    assert rest_checks.check_media_type("json") is not None
    assert rest_checks.check_media_type("a/b\r\nX: 1") is not None
    assert all(rest_checks.check_egress_host(host) is None for host in ("api.example", "10.0.0.1", "::1", "[::1]"))
    assert all(rest_checks.check_egress_host(host) is not None for host in ("http://x", "x:80", "a b", "*"))
