"""A table of bad configurations: each problem with its setting and place, and all problems of one file together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from pactgate.config.model import ConfigFile
from pactgate.config.problems import ConfigFindings
from pactgate.config.validate import Validation
from tests.config.writing import TOKEN, loaded, paths, problems, remote, server

TOO_LONG = "x" * 2001


def tokens(**given: Any) -> dict[str, Any]:
    return {"auth": {"tokens": given}}


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"mcpServers": []}, ["mcpServers"]),
    ({"mcpServers": {"files": "npx"}}, ["mcpServers.files"]),
    ({"mcpServers": {"files": None}}, ["mcpServers.files"]),
    ({"mcpServer": {}}, ["mcpServer"]),
    (server(maxRetries=11), ["mcpServers.files.maxRetries"]),
    (server(maxRetries=-1), ["mcpServers.files.maxRetries"]),
    (server(maxRetries="3"), ["mcpServers.files.maxRetries"]),
    (server(maxRetries=3.0), ["mcpServers.files.maxRetries"]),
    (server(maxRetries=True), ["mcpServers.files.maxRetries"]),
    (server(maxRetries=None), ["mcpServers.files.maxRetries"]),
    (server(connectionTimeoutMs=999), ["mcpServers.files.connectionTimeoutMs"]),
    (server(connectionTimeoutMs=60_001), ["mcpServers.files.connectionTimeoutMs"]),
    (server(requestTimeoutMs=0), ["mcpServers.files.requestTimeoutMs"]),
    (server(requestTimeoutMs=300_001), ["mcpServers.files.requestTimeoutMs"]),
    (server(enabled="true"), ["mcpServers.files.enabled"]),
    (server(enabled=1), ["mcpServers.files.enabled"]),
    (server(era="old"), ["mcpServers.files.era"]),
    (server(era=["auto"]), ["mcpServers.files.era"]),
    (server(command=""), ["mcpServers.files.command"]),
    (server(command="x" * 1001), ["mcpServers.files.command"]),
    (server(command=[1]), ["mcpServers.files.command"]),
    (server(command="a\nb"), ["mcpServers.files.command"]),
    (server(args="-y"), ["mcpServers.files.args"]),
    (server(args=["ok", 5, "ok", None]), ["mcpServers.files.args[1]", "mcpServers.files.args[3]"]),
    (server(args=["a\x00"]), ["mcpServers.files.args[0]"]),
    (server(args=["x" * 32769]), ["mcpServers.files.args[0]"]),
    (server(args=["x"] * 257), ["mcpServers.files.args"]),
    (server(env=["A=b"]), ["mcpServers.files.env"]),
    (server(env={"A": 1}), ["mcpServers.files.env.A"]),
    (server(env={"A=B": "x"}), ['mcpServers.files.env["A=B"]']),
    (server(env={f"V{number}": "x" for number in range(201)}), ["mcpServers.files.env"]),
    (server(cwd="x" * 501), ["mcpServers.files.cwd"]),
    (server(name=""), ["mcpServers.files.name"]),
    (server(name="x" * 101), ["mcpServers.files.name"]),
    (server(description="x" * 501), ["mcpServers.files.description"]),
    (server(env={"A": "${MISSING}"}), ["mcpServers.files.env.A"]),
    (server(args=["${MISSING} ${ALSO}"]), ["mcpServers.files.args[0]"] * 2),
    (server(effect={}), ["mcpServers.files.effect"]),
    (server(excludeTools="rm"), ["mcpServers.files.excludeTools"]),
    (server(disabled_tools=["rm"]), ["mcpServers.files.disabled_tools"]),
    (remote(url="ftp://crm.example"), ["mcpServers.crm.url"]),
    (remote(url=f"https://{TOO_LONG}"), ["mcpServers.crm.url"]),
    (remote(headers={"X": "a\r\nb"}), ["mcpServers.crm.headers.X"]),
    (remote(headers={"a b": "x"}), ['mcpServers.crm.headers["a b"]']),
    (remote(transport="websocket"), ["mcpServers.crm.transport"]),
    (remote(serverUrl="https://x.example"), ["mcpServers.crm.serverUrl"]),
    ({"listen": {"port": 65536}}, ["listen.port"]),
    ({"listen": {"port": -1}}, ["listen.port"]),
    ({"listen": {"host": "a b"}}, ["listen.host"]),
    ({"listen": {"allowedHosts": ["http://a"]}}, ["listen.allowedHosts[0]"]),
    ({"listen": {"allowedOrigins": ["*"]}}, ["listen.allowedOrigins[0]"]),
    ({"listen": 7411}, ["listen"]),
    ({"naming": {"exposed": "slash"}}, ["naming.exposed"]),
    ({"timeouts": {"defaultTimeoutMs": 0}}, ["timeouts.defaultTimeoutMs"]),
    ({"limits": {"maxRequestBytes": 1023}}, ["limits.maxRequestBytes"]),
    ({"limits": {"maxRequestBytes": 104_857_601}}, ["limits.maxRequestBytes"]),
    ({"limits": {"maxArraySize": -1}}, ["limits.maxArraySize"]),
    ({"limits": {"maxStringLength": 0}}, ["limits.maxStringLength"]),
    ({"limits": {"maxObjectDepth": 61}}, ["limits.maxObjectDepth"]),
    ({"limits": {"toolArrayLimits": {"files.read": -1}}}, ['limits.toolArrayLimits["files.read"]']),
    ({"timeouts": {"toolTimeouts": {"query": 0}}}, ["timeouts.toolTimeouts.query"]),
    ({"timeouts": {"toolTimeouts": {"read": 5000}}}, ["timeouts.toolTimeouts.read"]),
    ({"timeouts": {"toolOverrides": {"read": -5}}}, ["timeouts.toolOverrides.read"]),
    ({"timeouts": {"toolOverrides": {"read": 1.5}}}, ["timeouts.toolOverrides.read"]),
    ({"categories": {"files.*": "read"}}, ['categories["files.*"]']),
    ({"categories": {"": "query"}}, ['categories[""]']),
    ({"categories": ["files.*"]}, ["categories"]),
    ({"rateLimits": {"enabled": "no"}}, ["rateLimits.enabled"]),
    ({"rateLimits": {"execution": {"rpm": 0}}}, ["rateLimits.execution.rpm"]),
    ({"rateLimits": {"mutation": {"rpm": 10_001}}}, ["rateLimits.mutation.rpm"]),
    ({"rateLimits": {"read": {"burst": 0}}}, ["rateLimits.read.burst"]),
    ({"rateLimits": {"read": {"burst": 1001}}}, ["rateLimits.read.burst"]),
    ({"rateLimits": {"query": {"rpm": 5}}}, ["rateLimits.query"]),
    ({"rateLimits": {"tools": {"files.*": {"rpm": 5}}}}, ['rateLimits.tools["files.*"].burst']),
    ({"rateLimits": {"tools": {"files.*": 5}}}, ['rateLimits.tools["files.*"]']),
    ({"wire": {"timeouts": "error"}}, ["wire.timeouts"]),
    ({"auth": {"anonymous": "yes"}}, ["auth.anonymous"]),
    (tokens(ops={}), ["auth.tokens.ops.token"]),
    (tokens(ops={"token": ""}), ["auth.tokens.ops.token"]),
    (tokens(ops={"token": "short"}), ["auth.tokens.ops.token"]),
    (tokens(ops={"token": TOKEN, "roles": ["Admin"]}), ["auth.tokens.ops.roles[0]"]),
    (tokens(ops={"token": TOKEN, "roles": ["admin\n"]}), ["auth.tokens.ops.roles[0]"]),
    (tokens(**{"a b": {"token": TOKEN}}), ['auth.tokens["a b"]']),
    (tokens(a={"token": TOKEN}, b={"token": TOKEN}), ["auth.tokens.b.token"]),
    ({"sessions": {"maxSessions": 0}}, ["sessions.maxSessions"]),
    ({"log": {"level": "verbose"}}, ["log.level"]),
    ({"cache": {"maxEntries": 0, "evictionPolicy": "lru"}}, ["cache.maxEntries"]),
    ({"caching": {}}, ["caching"]),
]


@pytest.mark.requirement("S4/F4")
@pytest.mark.requirement("S4/UNDECIDED-2")
@pytest.mark.requirement("S0/ECO-100")
@pytest.mark.requirement("S0/ECO-101")
@pytest.mark.parametrize(("settings", "expected"), BAD, ids=lambda given: json.dumps(given)[:60])
def test_a_bad_setting_is_a_problem_of_its_own(settings: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    found = problems(tmp_path, settings)
    assert paths(found) == expected
    assert all(problem.line and problem.column and problem.message.endswith(".") for problem in found)
    assert all(
        problem.hint for problem in found if "Expected" not in problem.message and "not one of" not in problem.message
    )


@pytest.mark.requirement("S4/F4")
@pytest.mark.requirement("S4/UNDECIDED-2")
def test_all_problems_of_a_file_come_together(tmp_path: Path) -> None:
    together: dict[str, Any] = {"mcpServers": {}}
    expected = 0
    for number, (settings, where) in enumerate(BAD):
        entries = settings.get("mcpServers")
        if isinstance(entries, dict):
            (entry,) = entries.values()
            together["mcpServers"][f"s{number}"] = entry
            expected += len(where)
    assert expected > 30
    assert len(problems(tmp_path, together)) == expected


TEXT = """{
  "mcpServers": {
    "": {
      "comand": "x",
      "maxRetries": 99
    },
    "files": {"command": "a", "url": "ftp://b"}
  },
  "listen": {"port": "7411"}
}"""


@pytest.mark.requirement("S4/F4")
def test_each_problem_has_its_place_and_what_to_do(tmp_path: Path) -> None:
    found = problems(tmp_path, TEXT)
    file = tmp_path / "pactgate.json"
    assert [str(problem).removeprefix(f"{file}:") for problem in found] == [
        "3:5 mcpServers.server: This server has none of command, url, tools, endpoints, openapi. "
        "Give it a command to start, or the url of a server that runs already, or a file of Python tools, "
        "or endpoints of a REST API, or the OpenAPI document of a REST API.",
        '4:7 mcpServers.server.comand: Unknown setting. Did you mean "command"?',
        "5:21 mcpServers.server.maxRetries: 99 is more than 10. Use a number from 0 to 10.",
        "7:5 mcpServers.files: This server has command and url. "
        "Give it a command to start, or the url of a server that runs already, or a file of Python tools, "
        "or endpoints of a REST API, or the OpenAPI document of a REST API.",
        "7:38 mcpServers.files.url: This URL is neither http nor https. Write it as https://host/path.",
        '9:22 listen.port: "7411" is not a port. Write a number without quotes.',
    ]


PLACES = {
    ".json": ('{\n "listen": {\n  "prot": 1,\n  "port": 70000}}', [(3, 3), (4, 11)]),
    ".jsonc": ('{ // c\n "listen": {\n  "prot": 1,\n  "port": 70000,},}', [(3, 3), (4, 11)]),
    ".yaml": ("listen:\n  prot: 1\n  port: 70000\n", [(2, 3), (3, 9)]),
    ".yml": ("listen: {prot: 1, port: 70000}\n", [(1, 10), (1, 25)]),
    ".toml": ("[listen]\nprot = 1\nport = 70000\n", [(2, 1), (3, 8)]),
}


@pytest.mark.requirement("S4/F4")
@pytest.mark.parametrize("suffix", PLACES)
def test_every_format_tells_the_place_of_a_problem(suffix: str, tmp_path: Path) -> None:
    text, places = PLACES[suffix]
    found = problems(tmp_path, text, suffix)
    assert [(problem.path, problem.line, problem.column) for problem in found] == [
        ("listen.prot", *places[0]),
        ("listen.port", *places[1]),
    ]
    assert 'Did you mean "port"?' in found[0].hint


def test_a_server_given_twice_is_a_problem_where_the_format_allows_it_at_all(tmp_path: Path) -> None:
    twice = {
        ".json": '{"mcpServers": {"a": {"command": "x"},\n "a": {"command": "y"}}}',
        ".yaml": "mcpServers:\n  a: {command: x}\n  a: {command: y}\n",
        ".toml": "[mcpServers.a]\ncommand = 'x'\n[mcpServers.a]\ncommand = 'y'\n",
    }
    lines = {suffix: [problem.line for problem in problems(tmp_path, text, suffix)] for suffix, text in twice.items()}
    assert lines == {".json": [2], ".yaml": [3], ".toml": [3]}


def test_a_variable_that_breaks_a_rule_is_found_after_it_is_filled_in(tmp_path: Path) -> None:
    environ = {
        "LINES": "a\nb",
        "LONG": "x" * 32769,
        "NUL": "a\0b",
        "FTP": "ftp://secret.example",
        "NOTHING": "",
        "SHORT": "tiny",
    }
    settings = {
        "mcpServers": {
            "files": {"command": "${NOTHING}", "args": ["${NUL}", "${LONG}"]},
            "crm": {"url": "${FTP}", "headers": {"X": "${LINES}"}},
        },
        "auth": {"tokens": {"ops": {"token": "${SHORT}"}}},
    }
    found = problems(tmp_path, settings, **environ)
    assert sorted(paths(found)) == [
        "auth.tokens.ops.token",
        "mcpServers.crm.headers.X",
        "mcpServers.crm.url",
        "mcpServers.files.args[0]",
        "mcpServers.files.args[1]",
        "mcpServers.files.command",
    ]
    assert "secret.example" not in str(found)


def test_problems_never_repeat_a_secret(tmp_path: Path) -> None:
    settings = {
        "mcpServers": {
            "crm": {
                "url": "https://u:${CANARY}@crm.example",
                "headers": {"A": "canary-1\n", "B": ["canary-2"]},
                "env": {"K": "canary-3\x00"},
            },
        },
        "auth": {"tokens": {"a": {"token": "canary-4 x"}, "b": {"token": 424242424242424242}}},
    }
    found = problems(tmp_path, settings, CANARY="canary-5")
    assert len(found) == 6
    assert "canary-" not in str(found)
    assert "4242" not in str(found)


def test_text_from_a_file_can_not_move_the_cursor(tmp_path: Path) -> None:
    found = problems(
        tmp_path, {"\x1b[2J": 1, "log": {"level": "\x1b]0;x\x07"}, "mcpServers": {"\x9b1m": {"\u202e": "\x1b"}}}
    )
    assert len(found) == 4
    assert all(str(problem).isprintable() for problem in found)


def test_values_of_environment_and_credentials_are_secrets_longest_first(tmp_path: Path) -> None:
    settings = {
        "mcpServers": {
            "files": {
                "command": "x",
                "args": ["--key=${API_KEY}", "${HOME}"],
                "env": {"PASS": "pass-in-env", "PATH": "/usr/bin"},
            },
            "crm": {
                "url": "https://crm.example/${TENANT}",
                "headers": {"Authorization": "Bearer ${CRM}", "Accept": "application/json", "X-Short": "tiny"},
            },
        },
        "auth": {"tokens": {"ops": {"token": TOKEN}}},
    }
    environ = {"API_KEY": "key-from-environ", "HOME": "/home-folder", "TENANT": "tenant-9", "CRM": "crm-token"}
    secrets = loaded(tmp_path, settings, **environ).secrets
    assert set(secrets) == {"key-from-environ", "pass-in-env", "tenant-9", "crm-token", "Bearer crm-token", TOKEN}
    assert list(secrets) == sorted(secrets, key=len, reverse=True)


def test_null_means_left_out_only_where_nothing_is_the_default(tmp_path: Path) -> None:
    config = loaded(tmp_path, server(url=None, cwd=None, name=None) | {"auth": {"anonymous": None}})
    assert (config.servers["files"].cwd, config.auth.anonymous) == (None, None)


KEYS = st.sampled_from(
    [
        "mcpServers",
        "servers",
        "files",
        "command",
        "args",
        "env",
        "url",
        "headers",
        "listen",
        "port",
        "auth",
        "tokens",
        "token",
        "type",
    ]
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=4),
    max_leaves=25,
)


@given(st.dictionaries(KEYS, TREES))
def test_no_tree_breaks_the_validation(value: dict[str, Any]) -> None:
    Validation(ConfigFindings(""), {}).take(value, inspect.type_info(ConfigFile))
