"""One entry is added to a client's file and removed again, and everything else stays: comments, neighbours and all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pactgate.config.clients.client_file import ClientFile
from pactgate.config.clients.points_here import points_here
from pactgate.config.clients.table import Client, find_client
from pactgate.config.problems import UnreadableError
from tests.config.clients.client_files import WRITABLE, entries_for, opened


@pytest.mark.parametrize("name", WRITABLE)
def test_connecting_adds_one_entry_and_nothing_else_and_disconnecting_takes_it_away(name: str) -> None:
    file = opened(name)
    for entry in entries_for(file.client):
        with_us = file.changed(file.with_entry("pactgate", entry))
        added = {one: held for one, held in with_us.servers().items() if one not in file.servers()}
        name_member = {"name": "pactgate"} if file.client.as_list else {}
        assert added == {"pactgate": {**name_member, **entry}}
        assert points_here(added["pactgate"])
        without_us = with_us.without_entry("pactgate")
        assert file.data is not None
        assert file.changed(without_us).servers() == file.servers()
        comments = re.findall(r"(?:^|\s)(?:#|//) .*$", file.data.decode(), re.MULTILINE)
        assert all(comment in without_us for comment in comments)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"{", b"[1]", b'{"a": 1, "a": 2}'])
def test_a_file_that_can_not_be_read_is_never_written(data: bytes) -> None:
    client = find_client("cursor")
    assert isinstance(client, Client)
    with pytest.raises(UnreadableError):
        ClientFile(client, Path("mcp.json"), data)
