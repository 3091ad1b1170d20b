"""Files of other clients, served as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pactgate.config.load import load
from pactgate.config.model import Config
from tests.config.writing import problems, written


def served(folder: Path, name: str, **settings: Any) -> Config:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(settings))
    return load(path, environ={"HOME": "/srv/ann"})


def test_an_id_in_another_spelling_is_served_under_a_legal_one_and_said(tmp_path: Path) -> None:
    servers = {"GitHub": {"command": "a"}, "brave_search": {"command": "b"}, "My Server!": {"command": "c"}}
    config = load(written(tmp_path, json.dumps({"mcpServers": servers})), environ={})
    assert list(config.servers) == ["github", "brave-search", "my-server"]
    assert [warning.path for warning in config.warnings] == [
        "mcpServers.GitHub",
        "mcpServers.brave_search",
        'mcpServers["My Server!"]',
    ]


def test_two_ids_with_one_legal_spelling_are_a_problem(tmp_path: Path) -> None:
    found = problems(tmp_path, {"mcpServers": {"git-hub": {"command": "a"}, "Git_Hub": {"command": "b"}}})
    assert [problem.path for problem in found] == ["mcpServers.Git_Hub"]


def test_a_problem_in_a_renamed_entry_has_its_place(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, '{"mcpServers": {\n"GitHub": {"command": "a",\n"maxRetries": 99}}}')
    assert (problem.path, problem.line) == ("mcpServers.github.maxRetries", 3)


def test_settings_of_the_client_itself_are_warnings_in_its_own_file_only(tmp_path: Path) -> None:
    config = served(tmp_path, "claude_desktop_config.json", mcpServers={"a": {"command": "a"}}, scale=1, theme={})
    assert list(config.servers) == ["a"]
    assert [warning.path for warning in config.warnings] == ["scale", "theme"]
    (problem,) = problems(tmp_path, {"mcpServers": {"a": {"command": "a"}}, "theme": {}})
    assert problem.path == "theme"


def test_keys_and_types_of_other_clients_mean_what_they_mean_there(tmp_path: Path) -> None:
    config = served(
        tmp_path,
        "mcp.json",
        mcpServers={
            "windsurf": {"serverUrl": "https://a.example/mcp"},
            "gemini": {"httpUrl": "https://b.example/mcp"},
            "opencode": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "1"}},
            "copilot": {"type": "http", "url": "https://c.example/mcp", "tools": ["*"]},
            "cursor": {"url": "https://d.example/mcp", "oauth": {"clientId": "x"}},
        },
    )
    assert config.servers["windsurf"].url == "https://a.example/mcp"
    assert config.servers["gemini"].url == "https://b.example/mcp"
    opencode = config.servers["opencode"]
    assert (opencode.command, opencode.args, opencode.env) == ("npx", ("-y", "x"), {"A": "1"})
    assert config.servers["copilot"].tools is None
    assert [warning.path for warning in config.warnings] == ["mcpServers.cursor.oauth"]


def test_the_folder_of_the_project_is_that_around_the_folder_of_the_editor(tmp_path: Path) -> None:
    config = served(
        tmp_path / "shop" / ".vscode",
        "mcp.json",
        servers={"here": {"command": "x", "args": ["${workspaceFolder}", "${workspaceFolderBasename}", "${userHome}"]}},
    )
    assert config.servers["here"].args == (str(tmp_path / "shop"), "shop", "/srv/ann")
