"""One file in any format, the environment and flags become a configuration; nothing hostile gets further than a problem."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pactgate.config.load import MAX_FILE_BYTES, find, load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigurationError
from pactgate.config.reader import FORMATS
from tests.config.test_yaml_text import LAUGHS
from tests.config.writing import TOKEN, loaded, paths, problems, server, written

SAME = {
    ".json": """{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "fs", "/data"], "env": {"LEVEL": "3"}, "maxRetries": 5},
        "crm": {"url": "https://crm.example/mcp", "headers": {"Authorization": "Bearer ${CRM}"}, "enabled": false}},
        "listen": {"port": 0, "allowedHosts": ["gateway.example"]}, "naming": {"exposed": "dot"}}""",
    ".jsonc": """// ours
        {"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "fs", "/data",], "env": {"LEVEL": "3"}, "maxRetries": 5},
        /* the customers */
        "crm": {"url": "https://crm.example/mcp", "headers": {"Authorization": "Bearer ${CRM}"}, "enabled": false}},
        "listen": {"port": 0, "allowedHosts": ["gateway.example"]}, "naming": {"exposed": "dot"},}""",
    ".yaml": """
mcpServers:
  files:
    command: npx
    args: [-y, fs, /data]
    env: {LEVEL: "3"}
    maxRetries: 5
  crm:
    url: https://crm.example/mcp
    headers:
      Authorization: Bearer ${CRM}
    enabled: false
listen:
  port: 0
  allowedHosts: [gateway.example]
naming: {exposed: dot}
""",
    ".toml": """
listen = { port = 0, allowedHosts = ["gateway.example"] }
naming.exposed = "dot"
[mcpServers.files]
command = "npx"
args = ["-y", "fs", "/data"]
env = { LEVEL = "3" }
maxRetries = 5
[mcpServers.crm]
url = "https://crm.example/mcp"
headers.Authorization = "Bearer ${CRM}"
enabled = false
""",
}
SAME[".yml"] = SAME[".yaml"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_configuration(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    as_json = loaded(tmp_path / "other", SAME[".json"], CRM="crm-token")
    config = loaded(tmp_path, SAME[suffix], suffix, CRM="crm-token")
    for name in set(Config.__struct_fields__) - {"file", "key_file", "credential_file", "origins"}:
        assert getattr(config, name) == getattr(as_json, name)
    crm = config.servers["crm"]
    assert (crm.id, crm.headers, crm.enabled) == ("crm", {"Authorization": "Bearer crm-token"}, False)
    assert list(config.servers) == ["files", "crm"]


CLAUDE_DESKTOP = """{
  "globalShortcut": "Ctrl+Space",
  "preferences": {"menuBarEnabled": false},
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data/desktop", "/data/downloads"]
    },
    "brave-search": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-brave-search"],
      "env": {"BRAVE_API_KEY": "YOUR_API_KEY_HERE"}
    }
  }
}"""
CLAUDE_CODE = """{
  "mcpServers": {
    "api-server": {
      "type": "http",
      "url": "${API_BASE_URL:-https://api.example}/mcp",
      "headers": {"Authorization": "Bearer ${API_KEY}"}
    },
    "db": {"type": "stdio", "command": "/opt/db/server", "args": [], "env": {"DSN": "postgres://localhost"}}
  }
}"""
CURSOR = """{
  "mcpServers": {
    "local-python": {"command": "python", "args": ["mcp-server.py"], "env": {"API_KEY": "${env:API_KEY}"}},
    "remote": {"url": "http://localhost:3000/mcp", "headers": {"API_KEY": "value"}}
  }
}"""
VS_CODE = """{
  // asked for once
  "inputs": [{"type": "promptString", "id": "key", "description": "API key", "password": true}],
  "servers": {
    "github": {"type": "http", "url": "https://github.example/mcp/", "gallery": true},
    "playwright": {"type": "stdio", "command": "npx", "args": ["-y", "@microsoft/mcp-server-playwright"], "dev": {"watch": "src/**"},},
    "legacy": {"type": "sse", "url": "https://legacy.example/sse"},
  },
}"""
CLINE = """{
  "mcpServers": {
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.example/github/github-mcp-server"],
      "env": {"GITHUB_TOKEN": "ghp_xxx"},
      "disabled": true,
      "autoApprove": ["get_issue"],
      "timeout": 60
    },
    "remote": {"type": "streamableHttp", "url": "https://mcp.example/mcp", "alwaysAllow": [], "disabled": false}
  }
}"""


@pytest.mark.parametrize(
    ("text", "ids", "disabled"),
    [
        (CLAUDE_DESKTOP, ["filesystem", "brave-search"], []),
        (CLAUDE_CODE, ["api-server", "db"], []),
        (CURSOR, ["local-python", "remote"], []),
        (VS_CODE, ["github", "playwright", "legacy"], []),
        (CLINE, ["github", "remote"], ["github"]),
    ],
    ids=["claude-desktop", "claude-code", "cursor", "vs-code", "cline"],
)
def test_a_file_of_a_client_is_accepted_as_it_is(
    text: str, ids: list[str], disabled: list[str], tmp_path: Path
) -> None:
    config = loaded(tmp_path, text, API_KEY="from-the-environment")
    assert list(config.servers) == ids
    assert [server.id for server in config.servers.values() if not server.enabled] == disabled


def test_what_an_editor_asks_its_user_comes_from_the_environment_and_only_that_server_waits_for_it(
    tmp_path: Path,
) -> None:
    asking = server(env={"KEY": "${input:github-token}"})
    config = load(written(tmp_path, json.dumps(asking)), environ={})
    assert [problem.path for problem in config.unresolved] == ["mcpServers.files.env.KEY"]
    assert "GITHUB_TOKEN" in config.unresolved[0].hint
    config = load(written(tmp_path, json.dumps(asking)), environ={"GITHUB_TOKEN": "ghp-secret"})
    assert config.servers["files"].env == {"KEY": "ghp-secret"}
    assert "ghp-secret" in config.secrets


def test_both_names_for_the_servers_at_once_are_a_problem_beside_those_inside(tmp_path: Path) -> None:
    both: dict[str, Any] = {"mcpServers": {"a": {}}, "servers": {"b": {}}}
    assert paths(problems(tmp_path, both)) == ["mcpServers.a", "servers", "servers.b"]


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def folder_named_as_a_file(folder: Path) -> Path:
    (folder / "folder.json").mkdir()
    return folder / "folder.json"


def socket_file(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s.json"))
    return folder / "s.json"


def endless_link(folder: Path) -> Path:
    (folder / "loop.json").symlink_to(folder / "loop.json")
    return folder / "loop.json"


def link_to_a_device(folder: Path) -> Path:
    (folder / "zero.yaml").symlink_to("/dev/zero")
    return folder / "zero.yaml"


def dead_link(folder: Path) -> Path:
    (folder / "dead.toml").symlink_to(folder / "nowhere")
    return folder / "dead.toml"


@pytest.mark.requirement("S4/F4")
@pytest.mark.parametrize(
    "place",
    [
        fifo,
        folder_named_as_a_file,
        socket_file,
        endless_link,
        link_to_a_device,
        dead_link,
        lambda folder: folder / "nothing.json",
        lambda folder: folder / "nul\x00.json",
        lambda folder: folder / ("x" * 5000 + ".json"),
        lambda folder: written(folder, "{}", ".conf"),
        lambda folder: written(folder, "{}", ""),
    ],
)
def test_what_is_no_readable_file_is_one_problem_and_nothing_waits(place: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(place(tmp_path), environ={})
    (problem,) = raised.value.problems
    assert (problem.path, problem.line) == ("", None)
    assert problem.hint


HOSTILE: dict[str, tuple[str, bytes]] = {
    "laughs": (".yaml", LAUGHS.encode()),
    "an alias of itself": (".yaml", b"mcpServers: &a {x: *a}"),
    "a tag that runs a program": (".yaml", b"mcpServers: !!python/object/apply:os.system ['touch /tmp/owned']"),
    "deep YAML": (".yaml", b"{a: " * 200_000),
    "deep JSON": (".json", b'{"a":' * 200_000),
    "deep TOML": (".toml", b"a = " + b"[" * 500_000),
    "a key of many parts": (".toml", b"a." * 500_000 + b"a = 1"),
    "a number of many digits": (".json", b'{"listen": {"port": ' + b"9" * 100_000 + b"}}"),
    "a file too large": (".json", b'{"mcpServers": {}}' + b" " * MAX_FILE_BYTES),
    "a flood of keys": (".json", b"{" + b",".join(b'"k%d":1' % number for number in range(45_000)) + b"}"),
    "not UTF-8": (".json", b'{"mcpServers": {"caf\xe9": {}}}'),
    "UTF-16": (".json", '{"mcpServers": {}}'.encode("utf-16")),
    "NUL": (".json", b"\x00" * 1000),
    "a program": (".yaml", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256))),
    "half a surrogate pair": (".json", b'{"mcpServers": {"a": {"command": "\\ud800"}}}'),
    "an argument with a NUL": (".json", b'{"mcpServers": {"a": {"command": "x", "args": ["a\\u0000"]}}}'),
    "a program with a line": (".toml", b'[mcpServers.a]\ncommand = "x\\nrm -rf /"'),
    "a header with a header": (".yaml", b'mcpServers: {a: {url: "http://h", headers: {X: "a\\r\\nHost: evil"}}}'),
    "several documents": (".yaml", b"{}\n---\n{}\n"),
    "a list": (".json", b"[]"),
    "a text": (".yaml", b"hello"),
}


@pytest.mark.requirement("S4/F4")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_problems(name: str, tmp_path: Path) -> None:
    suffix, data = HOSTILE[name]
    found = problems(tmp_path, data, suffix)
    assert found
    assert len(str(ConfigurationError(found))) < 50_000


def loads_or_says_why(path: Path) -> bool:
    """Anything but a configuration or a `ConfigurationError` fails the test that asks."""
    try:
        return isinstance(load(path, environ={}), Config)
    except ConfigurationError as error:
        return bool(error.problems and str(error))


@given(data=st.binary() | st.text().map(str.encode), suffix=st.sampled_from(list(FORMATS)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arbitrary_bytes_load_or_are_a_configuration_error(data: bytes, suffix: str, tmp_path: Path) -> None:
    assert loads_or_says_why(written(tmp_path, data, suffix))


WORDS = (
    """mcpServers servers files command url args listen port " "a" ' : = { } [ [[ ] , - ${A} ${ 1 true null # // /* */ &a *a """
    """!!int | \\ \\u ."""
)
PIECES = st.lists(st.sampled_from([*WORDS.split(), " ", "  ", "\n", ": ", "- "])).map(
    lambda pieces: "".join(pieces).encode()
)


@given(data=PIECES, suffix=st.sampled_from(list(FORMATS)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_broken_configurations_load_or_are_a_configuration_error(data: bytes, suffix: str, tmp_path: Path) -> None:
    assert loads_or_says_why(written(tmp_path, data, suffix))


@pytest.mark.requirement("S4/UNDECIDED-2")
def test_what_is_well_written_but_can_not_be_reached_is_no_problem(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        {"mcpServers": {"gone": {"command": "/no/such/program"}, "off": {"url": "http://nowhere.invalid:1/mcp"}}},
    )
    assert list(config.servers) == ["gone", "off"]


@pytest.mark.requirement("S4/F4")
def test_loading_starts_nothing_and_looks_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("the outside world was touched")

    for module, name in (
        (subprocess, "Popen"),
        (os, "posix_spawn"),
        (os, "fork"),
        (socket, "socket"),
        (socket, "getaddrinfo"),
    ):
        monkeypatch.setattr(module, name, refuse)
    for suffix, text in SAME.items():
        loaded(tmp_path, text, suffix, CRM="crm-token")


def test_without_a_file_there_are_the_defaults() -> None:
    assert load(None, environ={}) == Config()


def test_an_empty_table_is_a_configuration_with_a_warning(tmp_path: Path) -> None:
    config = loaded(tmp_path, "{}")
    assert config.servers == {}
    assert [warning.path for warning in config.warnings] == ["mcpServers"]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\ufeff" + '{"listen": {"port": 1}}').listen.port == 1


def test_flags_win_over_the_file_and_absent_flags_do_not(tmp_path: Path) -> None:
    path = written(tmp_path, '{"listen": {"host": "0.0.0.0", "port": 1, "allowedHosts": ["a"]}}')
    flags: dict[str, Any] = {
        "listen.host": None,
        "listen.port": 0,
        "log.level": "debug",
        "listen.allowedOrigins": ["http://b"],
    }
    config = load(path, environ={}, overrides=flags)
    assert (config.listen.host, config.listen.port, config.log.level) == ("0.0.0.0", 0, "debug")
    assert (config.listen.allowed_hosts, config.listen.allowed_origins) == (("a",), ("http://b",))


def test_problems_of_flags_come_with_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '{"listen": {"port": 70000}}')
    with pytest.raises(ConfigurationError) as raised:
        load(path, environ={}, overrides={"listen.port": 70_001, "listen.prot": 1, "mcpServers.a.command": "sh"})
    assert [(problem.file, problem.path) for problem in raised.value.problems] == [
        ("command line", "listen.port"),
        ("command line", "listen.prot"),
        ("command line", "mcpServers"),
        (str(path), "listen.port"),
    ]


@pytest.mark.parametrize("mode", [0o602, 0o666])
def test_a_file_every_user_may_write_is_refused(mode: int, tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}}')
    path.chmod(mode)
    with pytest.raises(ConfigurationError) as raised:
        load(path, environ={})
    assert "chmod o-w" in raised.value.problems[0].hint


def test_a_file_its_group_may_write_is_a_warning(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}}')
    path.chmod(0o660)
    (warning,) = load(path, environ={}).warnings
    assert "chmod g-w" in warning.hint


CREDENTIALS: list[dict[str, Any]] = [
    {"auth": {"tokens": {"ops": {"token": secrets.token_hex(16)}}}},
    {"mcpServers": {"a": {"command": "x", "env": {"CRM_TOKEN": "some-credential"}}}},
    {"mcpServers": {"a": {"url": "https://crm.example", "headers": {"Authorization": "Bearer some-credential"}}}},
]


@pytest.mark.parametrize("settings", CREDENTIALS)
def test_credentials_in_a_file_every_user_may_read_are_a_warning(settings: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"mcpServers": {"b": {"command": "x"}}, **settings}))
    assert load(path, environ={}).warnings == ()
    path.chmod(0o644)
    (warning,) = load(path, environ={}).warnings
    assert "chmod o-r" in warning.hint
    assert warning.line is not None


def test_no_credentials_in_a_file_every_user_may_read_are_none(tmp_path: Path) -> None:
    digest = "sha256:" + "0" * 64
    path = written(
        tmp_path,
        json.dumps(
            {
                "mcpServers": {"a": {"command": "x", "env": {"LOG_LEVEL": "debug-all", "API_KEY": "${API_KEY}"}}},
                "auth": {"tokens": {"ops": {"token": digest}}},
            }
        ),
    )
    path.chmod(0o644)
    assert load(path, environ={"API_KEY": "some-credential"}).warnings == ()


def test_flags_of_the_command_line_read_no_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        load(None, environ={}, overrides={"audit.file": "${file:/etc/hostname}"})


def test_a_file_only_we_may_write_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}}')
    path.chmod(0o644)
    assert load(path, environ={}).warnings == ()


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", []), ("0.0.0.0", ["auth.anonymous"])])
def test_serving_everybody_beyond_this_machine_is_a_warning(host: str, warned: list[str], tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}, "auth": {"anonymous": true}}')
    config = load(path, environ={}, overrides={"listen.host": host})
    assert [warning.path for warning in config.warnings] == warned


def test_listening_elsewhere_without_tokens_is_no_problem_but_needs_one_made(tmp_path: Path) -> None:
    config = loaded(tmp_path, {"listen": {"host": "0.0.0.0"}})
    assert (config.needs_token, config.allows_anonymous) == (True, False)
    config = loaded(tmp_path, {"listen": {"host": "0.0.0.0"}, "auth": {"tokens": {"ops": {"token": TOKEN}}}})
    assert (config.needs_token, config.allows_anonymous) == (False, False)


def test_the_file_of_the_folder_is_found_before_that_of_the_user(tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    users = home / ".config" / "pactgate"
    users.mkdir(parents=True)
    folder.mkdir()
    environ = {"HOME": str(home)}
    assert find(folder, environ) is None
    written(users, "", ".toml")
    assert find(folder, environ) == users / "pactgate.toml"
    written(folder, "", ".yml")
    assert find(folder, environ) == folder / "pactgate.yml"


def test_the_configuration_folder_of_the_user_may_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "xdg" / "pactgate").mkdir(parents=True)
    path = written(tmp_path / "xdg" / "pactgate", "{}")
    assert find(tmp_path, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}) == path
    assert find(tmp_path, {"XDG_CONFIG_HOME": "xdg"}) is None
    assert find(tmp_path, {}) is None


def test_two_files_in_one_folder_are_a_problem(tmp_path: Path) -> None:
    written(tmp_path, "{}")
    written(tmp_path, "", ".yaml")
    with pytest.raises(ConfigurationError) as raised:
        find(tmp_path, {})
    assert "pactgate.json, pactgate.yaml" in str(raised.value)


def test_a_warning_about_a_flag_has_no_place_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}}')
    (warning,) = load(path, environ={}, overrides={"listen.host": "0.0.0.0", "auth.anonymous": True}).warnings
    assert (warning.path, warning.line) == ("auth.anonymous", None)


@pytest.mark.parametrize(
    ("isolation", "pattern", "warned"),
    [
        ("session", "who.whoami", ['cache.tools["who.whoami"]']),
        ("session", "who.*", ['cache.tools["who.*"]']),
        ("session", "other.*", []),
        ("shared", "who.*", []),
    ],
)
def test_a_cache_that_no_two_sessions_share_is_a_warning(
    isolation: str, pattern: str, warned: list[str], tmp_path: Path
) -> None:
    servers = {"who": {"command": "x", "isolation": isolation}}
    config = loaded(tmp_path, {"mcpServers": servers, "cache": {"tools": {pattern: {}}}})
    assert [warning.path for warning in config.warnings] == warned


@pytest.mark.parametrize("method", ["tools/call", "Tools/Call", "tasks/list", "notifications/*", "do", "a b/c", ""])
def test_an_extension_is_a_method_that_the_protocol_does_not_have(method: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        loaded(tmp_path, {"mcpServers": {"a": {"command": "x", "extensions": [method]}}})


def test_extensions_belong_to_servers_that_speak_the_protocol(tmp_path: Path) -> None:
    config = loaded(tmp_path, {"mcpServers": {"a": {"command": "x", "extensions": ["com.example/*", "x/y"]}}})
    assert config.servers["a"].extensions == ("com.example/*", "x/y")
    with pytest.raises(ConfigurationError):
        loaded(tmp_path, {"mcpServers": {"a": {"tools": "x.py", "extensions": ["x/y"]}}})


# Variables of servers.


def test_a_variable_that_is_not_set_takes_down_its_own_server_only(tmp_path: Path) -> None:
    entries = {"a": {"command": "x"}, "b": {"url": "${MISSING_URL}", "headers": {"A": "${MISSING_TOKEN}"}}}
    config = loaded(tmp_path, {"mcpServers": entries})
    assert config.servers["a"].unresolved is None
    assert config.servers["b"].unresolved == (
        "The environment variable MISSING_URL is not set. The environment variable MISSING_TOKEN is not set."
    )
    assert [problem.path for problem in config.unresolved] == ["mcpServers.b.url", "mcpServers.b.headers.A"]


@pytest.mark.parametrize("off", [{"enabled": False}, {"disabled": True}])
def test_the_variables_of_a_disabled_server_are_not_needed(tmp_path: Path, off: dict[str, bool]) -> None:
    entry = {"command": "x", "env": {"A": "${MISSING}"}, **off}
    config = loaded(tmp_path, {"mcpServers": {"off": entry}})
    assert config.unresolved == ()
    assert config.servers["off"].unresolved is not None
    assert not config.servers["off"].enabled
    assert loaded(tmp_path, {"mcpServers": {"off": entry}}, MISSING="here").servers["off"].env == {"A": "here"}


def test_a_variable_outside_of_the_servers_stops_the_gateway(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, {**server(), "auth": {"tokens": {"ops": {"token": "${MISSING}"}}}})
    assert problem.path == "auth.tokens.ops.token"


def test_a_command_needs_the_variables_of_its_sections_only(tmp_path: Path) -> None:
    settings = {**server(env={"A": "${X}"}), "auth": {"tokens": {"o": {"token": "${Y}"}}}, "listen": {"port": 9}}
    path = written(tmp_path, json.dumps(settings), ".json")
    assert load(path, environ={}, only=("listen",)).listen.port == 9


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".toml"])
def test_each_setting_that_is_not_the_default_says_where_it_comes_from(suffix: str, tmp_path: Path) -> None:
    texts = {
        ".json": '{\n"log": {\n"level": "debug"},\n"limits": {"maxArraySize": 7}}',
        ".yaml": "# a comment\nlog:\n  level: debug\nlimits: {maxArraySize: 7}\n",
        ".toml": '# a comment\n[log]\nlevel = "debug"\n[limits]\nmaxArraySize = 7\n',
    }
    path = tmp_path / f"pactgate{suffix}"
    path.write_text(texts[suffix])
    path.chmod(0o600)
    environ = {"OTEL_SERVICE_NAME": "edge", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    config = load(path, environ=environ, overrides={"log.level": "error", "listen.port": None})
    assert config.origins == {
        "log.level": "command line",
        "limits.maxArraySize": f"{path.name}:{4 if suffix != '.toml' else 5}",
        "telemetry.endpoint": "the environment",
        "telemetry.serviceName": "the environment",
    }
