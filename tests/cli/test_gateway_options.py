"""How a command finds the gateway: by option, by environment, by the configuration of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.cli.gateway_client import GatewayClient, GatewayProblem
from pactgate.cli.gateway_options import ask
from tests.cli.program import write_config


def asked(url: str | None = None) -> str:
    reached: list[str] = []

    def question(client: GatewayClient) -> int:
        reached.append(client.url)
        return 0

    assert ask(url, None, question) == 0
    return reached[0]


def test_an_address_that_is_given_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path, {}, listen={"port": 8123})
    assert asked("http://127.0.0.1:9000/mcp") == "http://127.0.0.1:9000"


def test_the_configuration_of_the_folder_says_where_else_the_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert asked() == "http://127.0.0.1:7411"
    path = write_config(tmp_path, {}, listen={"port": 8123})
    assert asked() == "http://127.0.0.1:8123"
    path.write_text("{")
    assert asked() == "http://127.0.0.1:7411"


@pytest.mark.parametrize(("url", "code"), [("ftp://x", 2), ("http://127.0.0.1:9", 1)])
def test_what_goes_wrong_is_said_and_has_its_exit_code(url: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def question(client: GatewayClient) -> int:
        raise GatewayProblem("Nothing answers.", "Start one.")

    assert ask(url, None, question) == code
    assert "error:" in capsys.readouterr().err
