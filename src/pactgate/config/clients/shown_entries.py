"""The entry for a gateway as it stands in the file of each client, for people who copy it. Must not: read or write a file of a client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pactgate.config.clients.client_file import ClientFile
from pactgate.config.clients.dialect import to_address, with_token
from pactgate.config.clients.table import Client, clients
from pactgate.config.reader import FORMATS

NAME: Final = "pactgate"
TOKEN_VARIABLE: Final = "PACTGATE_TOKEN"
_NO_TOKEN: Final = "YOUR-TOKEN"


def shown_entries(address: str, *, needs_token: bool) -> list[dict[str, Any]]:
    """For each client that takes addresses: its name, its usual file, and the entry for a gateway at this address."""
    return [
        {
            "id": client.id,
            "title": client.title,
            "file": (*client.user, *client.linux)[0],
            "entry": spell_entry(client, _entry(client, address, needs_token=needs_token)),
        }
        for client in clients()
        if client.url is not None and not client.import_only
    ]


def spell_entry(client: Client, entry: Mapping[str, Any]) -> str:
    """The entry as it stands in a file of the client."""
    place = (*client.user, *client.linux)[0]
    suffix = next((suffix for suffix in FORMATS if place.endswith(suffix)), ".json")
    return ClientFile(client, Path(f"entry{suffix}"), None).with_entry(NAME, entry).rstrip("\n")


def _entry(client: Client, address: str, *, needs_token: bool) -> dict[str, Any]:
    if not needs_token:
        return to_address(client, address, None)
    if client.variable or client.token_variable:
        return to_address(client, address, TOKEN_VARIABLE)
    return with_token(client, to_address(client, address, None), _NO_TOKEN)
