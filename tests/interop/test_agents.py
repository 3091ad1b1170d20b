"""Agents that people use are connected to the gateway by what `pactgate connect` writes for them: over HTTP, with a token, over stdio.

Each agent has a home folder of its own, and reports on its own connection; no model is asked, and nobody signs in anywhere.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any, Final

import pytest

from tests.cli.program import environment
from tests.interop.pairings import PREPARE
from tests.interop.processes import GATEWAY, NODE, ROOT, TOOLS, Program, free_port

AGENTS_FOLDER: Final = TOOLS / "agents"
PACKAGES: Final = AGENTS_FOLDER / "node_modules"
CODEX: Final = PACKAGES / "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex"
LIST_COMMANDS: Final[dict[str, list[str | Path]]] = {
    "claude-code": [PACKAGES / "@anthropic-ai/claude-code-linux-x64/claude", "mcp", "list"],
    "codex": [CODEX, "mcp", "list"],
    "gemini": [NODE, PACKAGES / "@google/gemini-cli/bundle/gemini.js", "mcp", "list"],
    "opencode": [PACKAGES / "opencode-linux-x64-baseline/bin/opencode", "mcp", "list"],
}
TOKEN: Final = "a-token-for-the-agents-of-this-test"
LIMIT_S: Final = 30
WITHOUT_THE_INTERNET: Final = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
}
TRUST: Final = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
"""Gemini CLI connects to nothing in a folder that its user has not trusted."""

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not (AGENTS_FOLDER / ".installed").is_file() or not NODE.exists(),
        reason=f"NOT RUN: the agents are not installed: {PREPARE}",
    ),
]

Run = Callable[..., str]
ALL: Final = frozenset({"notes__add_note", "notes__find_notes", "notes__read_note"})
VIEWS: Final = {
    "desk": {"tools": ["notes.*"], "exclude": ["notes.add_note"], "rename": {"notes.find_notes": "find-notes"}},
    "lazy": {"tools": ["notes.*"], "surface": "search"},
}
"""With a name as only a view gives it, and with a search surface."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agents") / "pactgate.json"
    servers = {"notes": {"tools": str(ROOT / "examples" / "notes.py")}}
    path.write_text(json.dumps({"mcpServers": servers, "views": VIEWS}))
    return path


@pytest.fixture(scope="module")
def config_with_tokens(config: Path) -> Path:
    path = config.with_name("with_tokens.json")
    path.write_text(json.dumps({**json.loads(config.read_text()), "auth": {"tokens": {"agents": {"token": TOKEN}}}}))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def address(config: Path) -> Iterator[str]:
    yield from serve(config)


@pytest.fixture(scope="module")
def address_with_tokens(config_with_tokens: Path) -> Iterator[str]:
    yield from serve(config_with_tokens)


def serve(config: Path) -> Iterator[str]:
    port = free_port()
    gateway = Program(
        [*GATEWAY, "serve", "--config", config, "--port", str(port)], config.with_name(f"{config.stem}.log")
    )
    try:
        gateway.wait_until(lambda: "ok    notes" in gateway.said(), "its server is connected")
        yield f"http://127.0.0.1:{port}"
    finally:
        gateway.stop()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program as somebody with an empty home folder would, and gives what it printed, at the latest with the line `until`."""

    def run(command: list[str | Path], given: str = "", until: str | None = None, **env: str) -> str:
        printed = ""
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(tmp_path, **WITHOUT_THE_INTERNET, **TRUST, **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as program:
            limit = Timer(LIMIT_S, program.kill)
            limit.start()
            try:
                assert program.stdin is not None
                assert program.stdout is not None
                program.stdin.write(given)
                program.stdin.flush()
                if until is None:
                    program.stdin.close()
                for line in program.stdout:
                    printed += line
                    if until is not None and until in line:
                        return line
            finally:
                limit.cancel()
                if until is not None:
                    program.kill()
        assert program.returncode == 0, printed
        return printed

    return run


@pytest.mark.parametrize("agent", LIST_COMMANDS)
def test_an_agent_is_connected_by_the_address_of_the_gateway(
    agent: str, config: Path, address: str, run: Run, tmp_path: Path
) -> None:
    assert_connected(agent, ["--url", address, "--config", config], run, tmp_path)


@pytest.mark.parametrize("agent", LIST_COMMANDS)
@pytest.mark.parametrize(
    ("view", "tools"),
    [
        ("desk", frozenset({"find-notes", "notes__read_note"})),
        ("lazy", frozenset({"find_tools", "describe_tools", "call_tool"})),
    ],
)
def test_an_agent_is_connected_to_a_view(
    agent: str, view: str, tools: frozenset[str], config: Path, address: str, run: Run, tmp_path: Path
) -> None:
    assert_connected(agent, ["--url", address, "--view", view, "--config", config], run, tmp_path, tools)


@pytest.mark.parametrize("agent", LIST_COMMANDS)
def test_an_agent_takes_its_token_from_the_environment(
    agent: str, config_with_tokens: Path, address_with_tokens: str, run: Run, tmp_path: Path
) -> None:
    words: list[str | Path] = ["--url", address_with_tokens, "--config", config_with_tokens]
    assert_connected(agent, words, run, tmp_path, PACTGATE_TOKEN=TOKEN)


@pytest.mark.parametrize("agent", LIST_COMMANDS)
def test_an_agent_starts_a_gateway_of_its_own(agent: str, config: Path, run: Run, tmp_path: Path) -> None:
    assert_connected(agent, ["--stdio", "--config", config], run, tmp_path)


def assert_connected(
    agent: str, words: list[str | Path], run: Run, home: Path, tools: frozenset[str] = ALL, **env: str
) -> None:
    """Connected after `connect`, though no file has the token; and forgotten after `disconnect`, whatever the agent wrote meanwhile."""
    connected: dict[str, Any] = json.loads(run([*GATEWAY, "connect", agent, "--json", *words], **env))
    assert connected["check"]["tools"] == len(tools)
    file = Path(connected["file"])
    assert file.is_relative_to(home)
    assert TOKEN not in file.read_text()
    listed = re.sub(r"\x1b\[[0-9;]*m", "", run(LIST_COMMANDS[agent], **env))
    if agent == "codex":  # its list says what it would connect to; the server behind its editors connects
        assert re.search(r"^pactgate\b.*\benabled\b", listed, re.MULTILINE), listed
        assert tools_of_codex(run, **env) == tools
    else:
        assert re.search(r"\bpactgate\b.*\bconnected\b", listed, re.IGNORECASE), listed
    run([*GATEWAY, "disconnect", agent])
    assert not file.exists() or "pactgate" not in file.read_text()


def tools_of_codex(run: Run, **env: str) -> set[str]:
    requests = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "title": "Test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "mcpServerStatus/list", "params": {}},
    ]
    given = "".join(json.dumps(one) + "\n" for one in requests)
    (status,) = json.loads(run([CODEX, "app-server"], given, until='"id":1,', **env))["result"]["data"]
    return set(status["tools"])
