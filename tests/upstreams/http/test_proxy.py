"""Which proxy a request goes through: the environment as other tools read it, the setting of a server, and what never uses one."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.proxy import NetworkSettings, Proxy, network_of, route_of
from tests.support.each import each


def chosen(url: str, environ: Mapping[str, str], setting: str | None = None) -> str | None:
    parts = urlsplit(url)
    found = NetworkSettings(proxy=setting, environ=environ).proxy_for(
        "files", parts.scheme, parts.hostname or "", parts.port or 0
    )
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("environ", "over_http", "over_https"),
    [
        ({}, None, None),
        ({"http_proxy": "http://p:1"}, "http://p:1", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://p:1", None),
        ({"HTTPS_PROXY": "http://p:1"}, None, "http://p:1"),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://UP:1"}, None, "http://low:1"),
        ({"ALL_PROXY": "http://p:1"}, "http://p:1", "http://p:1"),
        ({"all_proxy": "http://a:1", "https_proxy": "http://s:1"}, "http://a:1", "http://s:1"),
        ({"http_proxy": "", "HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://a:1"}, None, "http://a:1"),
        ({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, None, None),
        ({"http_proxy": "http://p:1", "REQUEST_METHOD": "GET"}, "http://p:1", None),
        ({"HTTPS_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, None, "http://p:1"),
        ({"HTTP_PROXY": "p.example:3128"}, "http://p.example:3128", None),
        ({"HTTP_PROXY": " http://p "}, "http://p:80", None),
        ({"HTTPS_PROXY": "https://p/"}, None, "https://p:443"),
        ({"HTTPS_PROXY": "http://[::2]:3128"}, None, "http://[::2]:3128"),
    ],
)
def test_the_variables_of_the_environment_mean_what_they_mean_to_other_tools(
    environ: dict[str, str], over_http: str | None, over_https: str | None
) -> None:
    assert chosen("http://api.example:80", environ) == over_http
    assert chosen("https://api.example:443", environ) == over_https


@each(
    ("no_proxy", "url", "is_direct"),
    [
        ("api.example", "https://api.example:443", True),
        ("API.Example.", "https://api.example:443", True),
        ("example", "https://api.example:443", True),
        (".example", "https://api.example:443", True),
        (".example", "https://example:443", True),
        ("*.example", "https://api.example:443", True),
        ("ample", "https://api.example:443", False),
        ("other.example, api.example", "https://api.example:443", True),
        ("other.example api.example", "https://api.example:443", True),
        ("*", "https://api.example:443", True),
        ("a.example,*", "https://api.example:443", True),
        ("api.example:443", "https://api.example:443", True),
        ("api.example:8443", "https://api.example:443", False),
        ("10.0.0.7", "https://10.0.0.7:443", True),
        ("10.0.0.7:444", "https://10.0.0.7:443", False),
        ("10.0.0.0/8", "https://10.0.0.7:443", True),
        ("10.0.0.0/8", "https://11.0.0.7:443", False),
        ("10.0.0.0/8", "https://ten.example:443", False),
        ("0.0.7", "https://10.0.0.7:443", False),
        ("fd00::7", "https://[fd00::7]:443", True),
        ("[fd00::7]:443", "https://[fd00::7]:443", True),
        ("[fd00::7]:444", "https://[fd00::7]:443", False),
        ("fd00::/8", "https://[fd00::7]:443", True),
        ("nonsense/99", "https://api.example:443", False),
        ("", "https://api.example:443", False),
        (", ,.", "https://api.example:443", False),
    ],
)
@each("name", ["no_proxy", "NO_PROXY"])
def test_no_proxy_names_hosts_domains_addresses_networks_and_ports(
    name: str, no_proxy: str, url: str, is_direct: bool
) -> None:
    found = chosen(url, {"HTTPS_PROXY": "http://p:1", name: no_proxy})
    assert found == (None if is_direct else "http://p:1")


LOOPBACK = ["localhost", "LOCALHOST.", "api.localhost", "127.0.0.1", "127.8.9.1", "127.1", "::1", "::ffff:127.0.0.1"]


@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("setting", [None, "http://p:1"])
def test_a_loopback_address_is_never_given_to_a_proxy(host: str, setting: str | None) -> None:
    network = NetworkSettings(proxy=setting, environ={"ALL_PROXY": "http://p:1"})
    assert network.proxy_for("files", "http", host, 80) is None


def test_the_setting_of_a_server_counts_before_the_whole_environment() -> None:
    environ = {"HTTPS_PROXY": "http://env:1", "NO_PROXY": "*"}
    assert chosen("https://api.example:443", environ, "http://own:2") == "http://own:2"
    assert chosen("https://api.example:443", {"HTTPS_PROXY": "http://env:1"}, "none") is None


def test_the_settings_of_a_server_become_its_network() -> None:
    config = ServerConfig(id="files", url="https://api.example/mcp", proxy="http://own:2")
    assert network_of(config, {}).proxy == "http://own:2"


def test_credentials_become_a_header_and_are_shown_nowhere() -> None:
    network = NetworkSettings(proxy="http://us%40er:p%3Aw%25@proxy.example:3128")
    proxy = network.proxy_for("files", "https", "api.example", 443)
    assert proxy is not None
    assert proxy.authorization == b"Proxy-Authorization: Basic dXNAZXI6cDp3JQ==\r\n"
    for shown in (str(proxy), repr(proxy), f"{proxy}"):
        assert "proxy.example:3128" in shown
        assert not any(secret in shown for secret in ("us@er", "p:w", "dXN"))


@pytest.mark.parametrize(
    "value", ["socks5://p:1080", "http://", "http://p:0", "http://p:x", "http://p/path", "ftp://p", "http://p:1?x"]
)
def test_a_proxy_that_can_not_be_used_is_a_configuration_error_that_names_its_place(value: str) -> None:
    with pytest.raises(GatewayFailure) as caught:
        chosen("https://api.example:443", {"HTTPS_PROXY": value})
    assert caught.value.kind is Kind.INVALID_CONFIG
    assert caught.value.details == {"permanent": True}
    assert "HTTPS_PROXY" in caught.value.message
    assert "http://proxy.example:3128" in caught.value.message


def test_two_proxies_are_the_same_only_with_the_same_credentials() -> None:
    one = Proxy(scheme="http", host="p", port=1, source="x", authorization=b"a")
    assert one == Proxy(scheme="http", host="p", port=1, source="x", authorization=b"a")
    assert one != Proxy(scheme="http", host="p", port=1, source="x", authorization=b"b")


@pytest.mark.parametrize(
    ("url", "environ", "route"),
    [
        ("https://api.example/mcp", {}, ""),
        ("https://api.example/mcp", {"https_proxy": "p:1"}, "called through the proxy http://p:1 (https_proxy)"),
        (
            "https://api.example/mcp",
            {"https_proxy": "p:1", "NO_PROXY": "*"},
            "called directly, not through the proxy in https_proxy",
        ),
        ("http://127.0.0.1/mcp", {"ALL_PROXY": "p:1"}, "called directly, not through the proxy in ALL_PROXY"),
    ],
)
def test_people_are_told_which_way_a_server_is_called(url: str, environ: dict[str, str], route: str) -> None:
    proxy, said = route_of(ServerConfig(id="files", url=url), environ)
    assert said == route
    assert (proxy is not None) == ("through the proxy http" in route)
