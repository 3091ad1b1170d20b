"""One entry of `mcpServers`: the clients' words become ours, contradictions become problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.writing import loaded, paths, problems, remote, server


@pytest.mark.parametrize(
    ("settings", "transport"),
    [
        ({}, "auto"),
        ({"type": "http"}, "auto"),
        ({"type": "streamable-http"}, "streamable-http"),
        ({"type": "streamableHttp"}, "streamable-http"),
        ({"type": "sse"}, "sse"),
        ({"transport": "sse"}, "sse"),
        ({"transport": "http"}, "auto"),
        ({"transport": "streamableHttp"}, "streamable-http"),
        ({"type": "http", "transport": "sse"}, "sse"),
        ({"type": "sse", "transport": "sse"}, "sse"),
    ],
)
def test_the_words_of_clients_for_a_transport_are_understood(
    settings: dict[str, Any], transport: str, tmp_path: Path
) -> None:
    assert loaded(tmp_path, remote(**settings)).servers["crm"].transport == transport


@pytest.mark.parametrize("settings", [{"type": "stdio"}, {"transport": "stdio"}, {"transport": "auto"}])
def test_a_program_may_be_called_stdio(settings: dict[str, Any], tmp_path: Path) -> None:
    assert loaded(tmp_path, server(**settings)).servers["files"].transport == "auto"


@pytest.mark.requirement("S0/ECO-201")
@pytest.mark.parametrize(
    ("settings", "enabled"),
    [
        ({}, True),
        ({"enabled": False}, False),
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": True, "disabled": False}, True),
        ({"disabled": None}, True),
    ],
)
def test_disabled_is_the_opposite_of_enabled(settings: dict[str, Any], enabled: bool, tmp_path: Path) -> None:
    assert loaded(tmp_path, server(**settings)).servers["files"].enabled is enabled


@pytest.mark.requirement("S4/UNDECIDED-2")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"mcpServers": {"a": {}}}, ["mcpServers.a"]),
        ({"mcpServers": {"a": {"enabled": False}}}, ["mcpServers.a"]),
        (server(url="https://crm.example"), ["mcpServers.files"]),
        (server(headers={"X": "y"}), ["mcpServers.files.headers"]),
        (server(type="sse"), ["mcpServers.files.type"]),
        (server(transport="streamable-http"), ["mcpServers.files.transport"]),
        (remote(type="stdio"), ["mcpServers.crm.type"]),
        (remote(args=["x"], env={"A": "b"}, cwd="/"), [f"mcpServers.crm.{key}" for key in ("args", "env", "cwd")]),
        (remote(type="sse", transport="streamable-http"), ["mcpServers.crm.type"]),
        (server(enabled=True, disabled=True), ["mcpServers.files.disabled"]),
        (remote(headers={"X-Key": "a", "x-key": "b"}), ["mcpServers.crm.headers.x-key"]),
    ],
)
def test_an_entry_that_contradicts_itself_is_a_problem(
    settings: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    found = problems(tmp_path, settings)
    assert paths(found) == expected
    assert all(problem.line and problem.hint for problem in found)


def test_a_wrong_command_is_still_a_command(tmp_path: Path) -> None:
    assert paths(problems(tmp_path, server(command=5))) == ["mcpServers.files.command"]


def test_empty_leftovers_of_the_other_kind_do_no_harm(tmp_path: Path) -> None:
    assert loaded(tmp_path, remote(args=[], env={})).servers["crm"].url == "https://crm.example/mcp"
    assert loaded(tmp_path, server(headers={})).servers["files"].command == "serve-files"


def test_a_relative_folder_starts_at_the_folder_of_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, server(cwd="data/in")).servers["files"].cwd == str(tmp_path / "data" / "in")
    assert loaded(tmp_path, server(cwd="/srv/data")).servers["files"].cwd == "/srv/data"


def test_headers_the_transport_writes_are_left_out_with_a_warning(tmp_path: Path) -> None:
    config = loaded(tmp_path, remote(headers={"Content-Type": "application/json", "ACCEPT": "*/*", "X-Key": "k"}))
    assert config.servers["crm"].headers == {"X-Key": "k"}
    assert [warning.path for warning in config.warnings] == [
        "mcpServers.crm.headers.Content-Type",
        "mcpServers.crm.headers.ACCEPT",
    ]


def test_a_timeout_without_a_unit_is_ignored_with_a_warning(tmp_path: Path) -> None:
    config = loaded(tmp_path, server(timeout=60))
    assert config.servers["files"].request_timeout_ms == 60_000
    assert [(warning.path, warning.hint) for warning in config.warnings] == [
        ("mcpServers.files.timeout", "Use requestTimeoutMs.")
    ]


def test_what_only_concerns_a_client_is_accepted_and_ignored(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        server(autoApprove=["read"], alwaysAllow=[], trust=True, gallery=True, version="1.0", dev={"watch": "*"}),
    )
    assert config.servers["files"].command == "serve-files"
    assert config.warnings == ()


def test_a_file_of_tools_starts_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    kit = loaded(tmp_path, {"mcpServers": {"kit": {"tools": "kit.py", "undeclaredEffects": "refuse"}}}).servers["kit"]
    assert (kit.tools, kit.undeclared_effects, kit.command, kit.url) == (str(tmp_path / "kit.py"), "refuse", None, None)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"tools": "kit.py", "command": "x"}, ["mcpServers.kit"]),
        ({"tools": "kit.py", "url": "https://a.example"}, ["mcpServers.kit"]),
        ({"tools": "kit.py", "args": ["x"]}, ["mcpServers.kit.args"]),
        ({"tools": "kit.py", "headers": {"a": "b"}}, ["mcpServers.kit.headers"]),
        ({"tools": "kit.py", "type": "stdio"}, ["mcpServers.kit.type"]),
        ({"command": "x", "undeclaredEffects": "refuse"}, ["mcpServers.kit.undeclaredEffects"]),
        ({"tools": "kit.py", "undeclaredEffects": "maybe"}, ["mcpServers.kit.undeclaredEffects"]),
    ],
)
def test_a_file_of_tools_is_a_kind_of_its_own(entry: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    assert paths(problems(tmp_path, {"mcpServers": {"kit": entry}})) == expected


def test_a_file_of_tools_may_have_an_environment_a_folder_and_effects(tmp_path: Path) -> None:
    entry = {"tools": "kit.py", "env": {"A": "b"}, "cwd": ".", "effects": {"read": ["."]}}
    kit = loaded(tmp_path, {"mcpServers": {"kit": entry}}).servers["kit"]
    assert kit.effects is not None
    assert (kit.env, kit.cwd, kit.effects.read) == ({"A": "b"}, str(tmp_path), (str(tmp_path),))


@pytest.mark.parametrize(
    "settings",
    [server(maxSessionsPerClient=4), server(isolation="shared", maxSessionsPerClient=4)],
)
def test_a_bound_on_sessions_of_single_clients_needs_servers_that_have_some(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    (problem,) = problems(tmp_path, settings)
    assert "has no effect: all clients share one session" in problem.message


def test_a_bound_on_sessions_of_single_clients_is_taken_with_isolation_or_a_url(tmp_path: Path) -> None:
    isolated = server(isolation="session", maxSessionsPerClient=4)
    assert loaded(tmp_path, isolated).servers["files"].max_sessions_per_client == 4
    assert loaded(tmp_path, remote(maxSessionsPerClient=4)).servers["crm"].max_sessions_per_client == 4


@pytest.mark.parametrize(
    "args",
    [
        ["--token", "canary-1"],
        ["--verbose", "--api-key=canary-1"],
        ["x", "${CRM_TOKEN}"],
        ["--header", "Authorization: Bearer ${env:CRM_TOKEN}"],
        ["${file:/run/secrets/x}"],
    ],
)
def test_a_credential_on_a_command_line_is_a_warning(args: list[str], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary-2")
    args = [one.replace("/run/secrets/x", str(secret)) for one in args]
    (warning,) = loaded(tmp_path, server(args=args), CRM_TOKEN="canary-3").warnings
    assert warning.path.startswith("mcpServers.files.args[")
    assert "list of processes" in warning.message
    assert "canary" not in str(warning)


@pytest.mark.parametrize(
    "args",
    [
        ["--token-file", "/run/secrets/x"],
        ["--author", "somebody", "--tls-key", "key.pem", "--max-tokens", "5"],
        ["--root", "${HOME}", "${PROJECT}"],
        ["--password"],
        ["$${CRM_TOKEN}"],
    ],
)
def test_an_ordinary_command_line_is_none(args: list[str], tmp_path: Path) -> None:
    assert loaded(tmp_path, server(args=args), HOME="/home/x", PROJECT="/project").warnings == ()


def test_clients_keys_that_choose_tools_are_understood(tmp_path: Path) -> None:
    entry = loaded(
        tmp_path, server(includeTools=["read_*", "list"], excludeTools=["read_all"], disabledTools=["list"])
    ).servers["files"]
    assert [name for name in ("read_one", "read_all", "list", "write") if entry.serves(name)] == ["read_one"]
    assert loaded(tmp_path, server()).servers["files"].serves("anything")
