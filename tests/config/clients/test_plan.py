"""An import merges equal servers, keeps what is there, and turns credentials into variables."""

from __future__ import annotations

import json
from typing import Any

from pactgate.config.clients.dialect import OurEntry, to_ours
from pactgate.config.clients.plan import FoundServer, ImportPlan, plan_import
from tests.config.clients.client_files import PROJECT, opened


def found(source: str, name: str, **entry: Any) -> FoundServer:
    return FoundServer(source, name, OurEntry(entry))


def of_files(*names: str) -> list[FoundServer]:
    servers = []
    for name in names:
        file = opened(name)
        for server, entry in file.servers().items():
            ours = to_ours(file.client, entry, PROJECT)
            if ours is not None:
                servers.append(FoundServer(file.client.title, server, ours))
    return servers


def entries(plan: ImportPlan) -> dict[str, Any]:
    return {one.server: one.entry for one in plan.fresh}


def test_five_clients_with_overlapping_servers_become_one_entry_each_without_a_secret() -> None:
    plan = plan_import(of_files("claude-desktop", "cursor", "vscode", "zed", "trae"), {}, {})
    assert [(one.server, one.sources) for one in plan.servers] == [
        ("filesystem", ("Claude Desktop", "Cursor")),
        ("github", ("Claude Desktop",)),
        ("linear", ("Cursor",)),
        ("github-vs-code", ("VS Code",)),
        ("here", ("VS Code",)),
        ("postgres", ("Zed",)),
        ("a", ("Trae",)),
    ]
    text = json.dumps(entries(plan))
    secrets = {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghijklmnop",
        "LINEAR_X_API_KEY": "lin_api_0123456789abcdefghij",
        "POSTGRES_PASSWORD": "pa55w0rd",
        "A_API_KEY": "sk-0123456789abcdefghijkl",
    }
    assert plan.secrets == secrets
    assert not any(secret in text for secret in secrets.values())
    assert entries(plan)["postgres"]["env"] == {"DATABASE_URL": "postgresql://ann:${POSTGRES_PASSWORD}@db.example/shop"}
    assert entries(plan)["a"]["args"] == ["--api-key", "${A_API_KEY}"]


def test_an_import_that_is_repeated_adds_nothing() -> None:
    servers = of_files("claude-desktop", "cursor", "vscode", "zed", "trae")
    first = plan_import(servers, {}, {})
    again = plan_import(servers, entries(first), first.secrets)
    assert not again.fresh
    assert {one.state for one in again.servers} == {"there"}


def test_a_server_whose_settings_changed_in_our_file_stays_as_it_is_there() -> None:
    ours = {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}}}
    plan = plan_import([found("Cline", "time", command="uvx", args=["mcp-server-time"])], ours, {})
    assert [(one.server, one.state) for one in plan.servers] == [("time", "differs")]


def test_two_accounts_of_one_service_have_a_variable_each() -> None:
    plan = plan_import(
        [
            found("Cursor", "github", command="gh-mcp", env={"GITHUB_TOKEN": "first-account"}),
            found("Zed", "GitHub", command="gh-mcp", env={"GITHUB_TOKEN": "second-account"}),
        ],
        {},
        {},
    )
    assert entries(plan) == {
        "github": {"command": "gh-mcp", "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}},
        "github-zed": {"command": "gh-mcp", "env": {"GITHUB_TOKEN": "${GITHUB_GITHUB_TOKEN}"}},
    }
    assert plan.secrets == {"GITHUB_TOKEN": "first-account", "GITHUB_GITHUB_TOKEN": "second-account"}
