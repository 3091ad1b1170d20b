"""How a command finds the gateway: by option, by environment, by the configuration of the folder."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.running_gateways import RunningGateway, announced
from pactgate.cli.shared_options import with_gateway
from tests.cli.program import write_config


def asked(*words: str) -> str:
    """The address that a command with these options uses."""

    @click.command()
    @with_gateway
    def show(client: GatewayClient, *, as_json: bool) -> int:
        print(client.url)
        return 0

    return CliRunner().invoke(show, words).stdout.strip()


def test_an_address_that_is_given_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path, {}, listen={"port": 8123})
    assert asked("--url", "http://127.0.0.1:9000/mcp") == "http://127.0.0.1:9000"


def test_the_configuration_of_the_folder_says_where_else_the_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("PACTGATE_URL", raising=False)
    assert asked() == "http://127.0.0.1:7411"
    secret = {"ops": {"token": "${NOT_SET_HERE}"}}
    path = write_config(tmp_path, {}, listen={"port": 8123}, auth={"tokens": secret})
    assert asked() == "http://127.0.0.1:8123", "a command needs none of the gateway's secrets"
    with announced(RunningGateway(url="http://127.0.0.1:8124", pid=os.getpid(), config=str(path.resolve()))):
        assert asked() == "http://127.0.0.1:8124", "the one that runs, whatever port it was given"
    monkeypatch.setenv("PACTGATE_URL", "http://127.0.0.1:8999")
    assert asked() == "http://127.0.0.1:8999"
