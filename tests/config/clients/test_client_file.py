"""One entry is added to a client's file and removed again, and everything else stays: comments, neighbours and all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pactgate.config.clients.client_file import ClientFile
from pactgate.config.clients.points_here import points_here
from pactgate.config.clients.table import Client, find_client
from pactgate.config.problems import UnreadableError
from tests.config.clients.client_files import COMMENT, WRITABLE, entries_for, opened
from tests.support.each import each


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
        assert COMMENT.findall(without_us) == COMMENT.findall(file.data.decode())


@each(
    "spelling",
    [lambda text: text, lambda text: text.replace("\n", "\r\n"), str.rstrip],
)
@each("name", WRITABLE)
def test_connecting_removes_no_letter_of_a_file(name: str, spelling: Callable[[str], str]) -> None:
    given = opened(name)
    assert given.data is not None
    text = spelling(given.data.decode())
    file = given.changed(text)
    for entry in entries_for(file.client):
        letters = iter(file.with_entry("pactgate", entry))
        assert all(letter in letters for letter in text)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"{", b"[1]", b'{"a": 1, "a": 2}'])
def test_a_file_that_can_not_be_read_is_never_written(data: bytes) -> None:
    client = find_client("cursor")
    assert isinstance(client, Client)
    with pytest.raises(UnreadableError):
        ClientFile(client, Path("mcp.json"), data)
