"""Entries keep their meaning between the dialect of a client and ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.clients.dialect import to_address, to_ours
from pactgate.config.clients.plan import FoundServer, plan_import
from pactgate.config.clients.points_here import points_here
from pactgate.config.clients.table import Client, clients, find_client
from tests.config.clients.client_files import PROJECT, URL, WRITABLE, entries_for, opened


@pytest.mark.parametrize("name", WRITABLE)
def test_a_client_reads_what_connecting_wrote_as_the_gateway(name: str) -> None:
    client = opened(name).client
    program, *address = [to_ours(client, entry, PROJECT) for entry in entries_for(client)]
    assert program is not None
    assert program.entry == {
        "command": "/opt/pactgate",
        "args": ["serve", "--stdio", "--config", "/etc/pactgate.json"],
    }
    assert [one.entry for one in address if one] == ([{"url": URL}] if client.url else [])


def test_a_token_comes_from_the_variable_of_the_client_and_is_not_in_the_file() -> None:
    for client in clients():
        if client.variable or client.token_variable:
            entry = to_address(client, URL, "PACTGATE_TOKEN")
            assert "PACTGATE_TOKEN" in json.dumps(entry)
            ours = to_ours(client, entry, PROJECT)
            assert ours is not None
            assert ours.entry["headers"] == {"Authorization": "Bearer ${PACTGATE_TOKEN}"}, client.id


def read_as_ours(name: str) -> dict[str, dict[str, object]]:
    file = opened(name)
    found = {one: to_ours(file.client, entry, PROJECT) for one, entry in file.servers(PROJECT).items()}
    return {one: ours.entry for one, ours in found.items() if ours is not None}


OURS: dict[str, dict[str, dict[str, object]]] = {
    "claude-code": {
        "sentry": {
            "url": "https://mcp.sentry.example/mcp",
            "headers": {"Authorization": "Bearer ${SENTRY_TOKEN:-none}"},
        },
        "local": {"command": "shop-mcp"},
    },
    "cursor": {
        "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"]},
        "linear": {
            "url": "https://mcp.linear.example/sse",
            "transport": "sse",
            "headers": {"X-Api-Key": "lin_api_0123456789abcdefghij"},
        },
    },
    "vscode": {
        "github": {
            "url": "https://api.githubcopilot.example/mcp/",
            "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
        },
        "here": {"command": "uvx", "args": ["here", "/srv/ann/shop"], "env": {"A": "${A}"}},
    },
    "gemini": {
        "search": {
            "url": "https://search.example/mcp",
            "headers": {"Authorization": "Bearer ${SEARCH_TOKEN}"},
            "includeTools": ["find"],
        },
        "old": {"url": "https://old.example/sse", "transport": "sse"},
    },
    "codex": {
        "figma": {
            "url": "https://mcp.figma.example/mcp",
            "headers": {"X-Region": "eu", "Authorization": "Bearer ${FIGMA_TOKEN}"},
        },
        "off": {"command": "off-mcp", "enabled": False},
    },
    "opencode": {
        "jira": {"url": "https://jira.example/mcp", "headers": {"Authorization": "Bearer ${JIRA_TOKEN}"}},
        "local": {"command": "npx", "args": ["-y", "local-mcp"], "env": {"MODE": "fast"}, "enabled": False},
    },
    "zed": {
        "postgres": {
            "command": "pg-mcp",
            "args": ["--ro"],
            "env": {"DATABASE_URL": "postgresql://ann:pa55w0rd@db.example/shop"},
        }
    },
    "continue": {
        "sqlite": {"command": "npx", "args": ["-y", "sqlite-mcp"]},
        "remote": {
            "url": "https://remote.example/mcp",
            "headers": {"Authorization": "Bearer abcdefghijklmnop1234"},
        },
    },
    "goose": {"fetch": {"command": "uvx", "args": ["mcp-server-fetch"], "env": {"FETCH_KEY": "${FETCH_KEY}"}}},
    "crush": {"gh": {"url": "https://gh.example/mcp", "headers": {"Authorization": "Bearer ${GH_PAT}"}}},
    "vibe": {
        "docs": {"url": "https://docs.example/mcp"},
        "fetch": {"command": "uvx", "args": ["mcp-server-fetch"]},
    },
}


@pytest.mark.parametrize("name", OURS)
def test_entries_keep_their_meaning_and_their_variables(name: str) -> None:
    assert read_as_ours(name) == OURS[name]


def test_what_is_not_taken_over_is_said() -> None:
    file = opened("gemini")
    ours = to_ours(file.client, file.servers()["search"], PROJECT)
    assert ours is not None
    assert ours.notes == ("not taken over: timeout",)


def test_the_folder_the_variables_and_the_choice_of_tools_of_an_entry_are_taken_over() -> None:
    client = find_client("vscode")
    assert isinstance(client, Client)
    entry = {
        "command": "npx",
        "args": ["crm", "${workspaceFolder}/data", "${input:crm-key}"],
        "envFile": "${workspaceFolder}/.env",
        "cwd": "work",
        "tools": ["*"],
        "includeTools": ["read_*"],
        "disabledTools": ["drop"],
        "excludeTools": 7,
    }
    ours = to_ours(client, entry, PROJECT)
    assert ours is not None
    assert ours.entry == {
        "command": "npx",
        "args": ["crm", f"{PROJECT}/data", "${CRM_KEY}"],
        "envFile": f"{PROJECT}/.env",
        "cwd": f"{PROJECT}/work",
        "includeTools": ["read_*"],
        "excludeTools": ["drop"],
    }
    assert (ours.notes, ours.asked_for) == (("not taken over: excludeTools",), ("CRM_KEY",))


MEMBERS = (
    "command",
    "cmd",
    "args",
    "env",
    "env_keys",
    "cwd",
    "type",
    "url",
    "headers",
    "env_http_headers",
    "envFile",
    "includeTools",
    "tools",
    "oauth",
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["${A}", "http://[", "$A"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(clients()), st.dictionaries(st.sampled_from(MEMBERS), ANYTHING))
def test_an_entry_of_any_types_is_read_or_left_out(client: Client, entry: dict[str, Any]) -> None:
    """The files of a project are anybody's."""
    points_here(entry)
    ours = to_ours(client, entry, PROJECT)
    if ours is not None:
        plan_import([FoundServer(client.title, "x", ours)], {}, {})
