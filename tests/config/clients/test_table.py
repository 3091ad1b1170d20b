from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.config.clients.table import Client, clients, find_client
from pactgate.config.problems import ConfigFindings
from pactgate.config.reader import FORMATS, read
from tests.config.clients.client_files import COMMENT, NAMES, WRITABLE, opened


def test_every_client_has_a_file_that_was_tried() -> None:
    assert {client.id for client in clients()} == {name.removesuffix("-2") for name in NAMES}


@pytest.mark.parametrize("name", WRITABLE)
def test_every_file_that_was_tried_has_a_comment_and_something_beside_the_servers(name: str) -> None:
    file = opened(name)
    assert file.data is not None
    text = file.data.decode()
    assert COMMENT.search(text)
    members = read(text, FORMATS[file.path.suffix], ConfigFindings(str(file.path)))
    assert isinstance(members, dict)
    assert set(members) > {file.client.key[0]}


def test_the_places_of_files_follow_the_system_and_its_variables() -> None:
    client = find_client("vscode")
    assert isinstance(client, Client)
    env = {"HOME": "/srv/ann", "APPDATA": "C:/ann/AppData/Roaming"}
    assert client.user_files(env, "linux")[:1] == [Path("/srv/ann/.config/Code/User/mcp.json")]
    assert client.user_files({**env, "XDG_CONFIG_HOME": "/cfg"}, "linux")[:1] == [Path("/cfg/Code/User/mcp.json")]
    assert client.user_files(env, "darwin")[:1] == [Path("/srv/ann/Library/Application Support/Code/User/mcp.json")]
    assert client.user_files(env, "win32")[:1] == [Path("C:/ann/AppData/Roaming/Code/User/mcp.json")]
    codex = find_client("codex")
    assert isinstance(codex, Client)
    assert codex.user_files({**env, "CODEX_HOME": "/srv/codex"}, "linux") == [Path("/srv/codex/config.toml")]


def test_a_misspelt_client_is_told_the_name_that_was_meant() -> None:
    assert find_client("cursr") == "cursor"
