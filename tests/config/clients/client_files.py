"""A file of each client, as that client writes it, with comments of a person: some clients allow none, but none is lost here."""

from __future__ import annotations

import re
from pathlib import Path

from pactgate.config.clients.client_file import ClientFile
from pactgate.config.clients.dialect import to_address, to_program
from pactgate.config.clients.table import Client, find_client

FILES = Path(__file__).parent / "files"
URL = "http://127.0.0.1:7411/mcp"
PROJECT = Path("/srv/ann/shop")
COMMENT = re.compile(r"(?:^|\s)(?:(?:#|//) .*$|/\* .*? \*/)", re.MULTILINE)
NAMES = sorted(path.stem for path in FILES.iterdir())
WRITABLE = [name for name in NAMES if name != "roo-code"]


def opened(name: str) -> ClientFile:
    (path,) = FILES.glob(f"{name}.*")
    client = find_client(name.removesuffix("-2"))
    assert isinstance(client, Client)
    return ClientFile.open(client, path)


def entries_for(client: Client) -> list[dict[str, object]]:
    program = to_program(client, ["/opt/pactgate", "serve", "--stdio", "--config", "/etc/pactgate.json"])
    return [program, *([to_address(client, URL, None)] if client.url else [])]
