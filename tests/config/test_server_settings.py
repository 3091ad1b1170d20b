"""One server as the gateway knows it: where it is called, and nothing it must not say."""

from __future__ import annotations

import pytest
from msgspec.structs import fields

from pactgate.config.server_settings import ServerConfig, ServerEntry


@pytest.mark.parametrize(
    ("server", "address"),
    [
        (ServerConfig(id="a", command="x"), None),
        (ServerConfig(id="a", tools="notes.py"), None),
        (ServerConfig(id="a", url="http://127.0.0.1:1/mcp"), "http://127.0.0.1:1/mcp"),
        (ServerConfig(id="a", endpoints=(), base_url="https://api.example"), "https://api.example"),
    ],
    ids=["program", "python tools", "url", "api"],
)
def test_only_what_is_called_over_the_network_has_an_address(server: ServerConfig, address: str | None) -> None:
    assert server.address == address


def test_clients_words_end_at_the_file() -> None:
    """What only a client's file says is settled into our own words before the gateway sees it."""
    ours = {field.name for field in fields(ServerConfig)}
    assert {"type", "disabled", "timeout", "auto_approve"} <= {field.name for field in fields(ServerEntry)} - ours
