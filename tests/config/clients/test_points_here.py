from __future__ import annotations

from typing import Any

import pytest

from pactgate.config.clients.points_here import points_here


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/opt/bin/pactgate", "args": ["serve", "--stdio"]},
        {"command": ["pactgate", "serve", "--stdio"]},
        {"cmd": "python3", "args": ["-m", "pactgate", "serve", "--stdio"]},
        {"url": "http://127.0.0.1:7411/mcp"},
        {"httpUrl": "http://localhost:7411/mcp/v/review"},
        {"serverUrl": "http://gw.example/mcp"},
    ],
)
def test_an_entry_of_the_gateway_is_known(entry: dict[str, Any]) -> None:
    assert points_here(entry, frozenset({"gw.example"}))


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"command": "pactgate", "args": ["record", "--", "x"]},
        {"command": "npx", "args": ["pactgate", "serve"]},
        {"url": "http://127.0.0.1:7412/mcp"},
        {"url": "http://elsewhere.example:7411/mcp"},
        {"url": "http://[::1:7411/mcp"},
    ],
)
def test_any_other_entry_is_somebody_else(entry: dict[str, Any]) -> None:
    assert not points_here(entry)
