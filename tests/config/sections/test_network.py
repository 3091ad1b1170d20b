"""`proxy` and `tls` of a server: what may be written, where paths start, and what is never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.change import shown
from pactgate.config.sections.network import TlsSettings
from tests.config.writing import loaded, paths, problems, remote, server


def test_left_out_both_are_decided_elsewhere(tmp_path: Path) -> None:
    settings = loaded(tmp_path, remote()).servers["crm"]
    assert (settings.proxy, settings.tls) == (None, None)


@pytest.mark.parametrize("proxy", ["none", "http://p:3128", "https://p", "p.example:3128", "http://u:p%40x@[::1]:1/"])
def test_a_proxy_is_a_url_or_none(proxy: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, remote(proxy=proxy)).servers["crm"].proxy == proxy


@pytest.mark.parametrize(
    "proxy", ["", "socks5://p:1", "http://", "http://p:0", "http://p:70000", "http://p/x", "http://a b", "ftp://p"]
)
def test_any_other_proxy_is_refused_with_its_place(proxy: str, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, remote(proxy=proxy))) == ["mcpServers.crm.proxy"]


def test_the_password_of_a_proxy_is_a_secret_and_its_host_is_not(tmp_path: Path) -> None:
    config = loaded(tmp_path, remote(proxy="http://user:s3cret%25word@proxy.example:3128"))
    assert {"s3cret%25word", "s3cret%word"} <= set(config.secrets)
    assert not any("proxy.example" in secret for secret in config.secrets)
    assert "s3cret" not in str(shown(config))


def test_files_start_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    for name in ("ca.pem", "client.pem", "client.key"):
        (tmp_path / name).touch()
    written = {
        "caFile": "ca.pem",
        "certFile": "./client.pem",
        "keyFile": "${HOME}/client.key",
        "keyPassword": "s3cret-pw",
    }
    config = loaded(tmp_path, remote(tls=written), HOME=str(tmp_path))
    assert config.servers["crm"].tls == TlsSettings(
        ca_file=str(tmp_path / "ca.pem"),
        cert_file=str(tmp_path / "client.pem"),
        key_file=str(tmp_path / "client.key"),
        key_password="s3cret-pw",
    )
    assert config.warnings == ()
    assert "s3cret-pw" in config.secrets


def test_a_file_that_can_not_be_read_is_a_warning_at_its_place(tmp_path: Path) -> None:
    warnings = loaded(tmp_path, remote(tls={"caFile": "gone.pem"})).warnings
    assert paths(warnings) == ["mcpServers.crm.tls.caFile"]
    assert "does not exist" in warnings[0].message


@pytest.mark.parametrize(
    ("tls", "where"),
    [
        ([], ""),
        ({"ca": "x"}, ".ca"),
        ({"caFile": ""}, ".caFile"),
        ({"caFile": "~/ca.pem"}, ".caFile"),
        ({"keyFile": "/dev/null"}, ".keyFile"),
        ({"keyPassword": "x"}, ".keyPassword"),
    ],
)
def test_what_can_not_be_meant_is_refused(tls: Any, where: str, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, remote(tls=tls))) == [f"mcpServers.crm.tls{where}"]


def test_both_belong_to_servers_over_http(tmp_path: Path) -> None:
    found = problems(tmp_path, server(proxy="none", tls={"caFile": "/dev/null"}))
    assert paths(found) == ["mcpServers.files.proxy", "mcpServers.files.tls"]
