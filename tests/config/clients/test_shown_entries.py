"""The entries that people copy are those that `pactgate connect` writes."""

from __future__ import annotations

import json

from pactgate.config.clients.shown_entries import shown_entries
from pactgate.config.clients.table import clients

ADDRESS = "http://127.0.0.1:7411/mcp"


def test_every_client_that_takes_addresses_has_an_entry_with_the_address() -> None:
    shown = shown_entries(ADDRESS, needs_token=False)
    assert {row["id"] for row in shown} == {one.id for one in clients() if one.url is not None and not one.import_only}
    assert all(ADDRESS in row["entry"] and row["file"] and row["title"] for row in shown)
    assert not any("Authorization" in row["entry"] for row in shown)


def test_the_entry_of_a_client_is_as_its_file_has_it() -> None:
    rows = {row["id"]: row for row in shown_entries(ADDRESS, needs_token=False)}
    assert json.loads(rows["claude-code"]["entry"]) == {"mcpServers": {"pactgate": {"type": "http", "url": ADDRESS}}}
    assert rows["codex"]["entry"].startswith("[mcp_servers.pactgate]")


def test_where_clients_need_a_token_an_entry_has_a_place_for_it_and_never_one() -> None:
    for row in shown_entries(ADDRESS, needs_token=True):
        assert "PACTGATE_TOKEN" in row["entry"] or "YOUR-TOKEN" in row["entry"], row
