"""What servers write to stderr and send as log messages: seen by administrators and authors, bounded, without secrets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.program import Served, scripted, write_config
from tests.support.eventually import eventually_blocking

TOKEN, SECRET = "admin-token-0123456789", "s3cret-value-9876"
AUTH = {"anonymous": True, "tokens": {"ops": {"token": TOKEN, "roles": ["admin"]}}}
WRITER = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, id_ = asked["method"], asked.get("id")
    if method == "initialize":
        about = {"capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "w", "version": "1"}}
        say(id=id_, result={"protocolVersion": "2025-11-25", **about})
    elif method == "tools/list":
        say(id=id_, result={"tools": [{"name": "write", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        given = asked["params"]["arguments"]
        sys.stderr.write(given.get("text", "") * given.get("times", 1))
        sys.stderr.flush()
        if "said" in given:
            say(method="notifications/message", params={"level": "warning", "logger": "w", "data": given["said"]})
        say(id=id_, result={"content": []})
    elif id_ is not None:
        say(id=id_, error={"code": -32601, "message": "no"})
"""


def writer(folder: Path) -> dict[str, Any]:
    program = folder / "writer.py"
    program.write_text(WRITER)
    return {"command": sys.executable, "args": [str(program)], "env": {"KEY": "${KEY}"}}


def shown(served: Served, *words: str) -> list[dict[str, Any]]:
    said = served.run("logs", "files", "--token", TOKEN, "--json", *words)
    return [json.loads(line) for line in said.stdout.splitlines()]


def test_an_administrator_reads_what_a_server_wrote_and_said_without_secrets_and_control_characters(
    tmp_path: Path,
) -> None:
    write_config(tmp_path, {"files": writer(tmp_path)}, auth=AUTH)
    with Served(tmp_path, KEY=SECRET) as served:
        served.wait_for("ok    files")
        text = json.dumps(f"key {SECRET}\n  \x1b[2Jindented\n")
        served.run("call", "files.write", f"text:={text}", "said=careful")
        eventually_blocking(lambda: len(shown(served)) >= 3)
        lines = shown(served)
        assert [line["level"] for line in lines if line["stream"] == "message"] == ["warning"]
        assert {line["text"] for line in lines} == {"key ***", "  \\x1b[2Jindented", "w: careful"}
        assert shown(served, "--since", "1h") == lines
        refused = served.run("logs", "files")
        assert (refused.returncode, SECRET in refused.stderr) == (1, False)
        unknown = served.run("logs", "file", "--token", TOKEN)
        assert "The servers are: files." in unknown.stderr


def test_a_server_that_floods_stderr_is_cut_to_the_bounds_and_counted(tmp_path: Path) -> None:
    write_config(tmp_path, {"files": writer(tmp_path)}, auth=AUTH)
    with Served(tmp_path, KEY=SECRET) as served:
        served.wait_for("ok    files")
        served.run("call", "files.write", 'text:="spam\\n"', "times:=50000")
        eventually_blocking(lambda: len(shown(served)) == 500)
        said = served.run("logs", "files", "--token", TOKEN)
        assert "lines came too fast and were left out" in said.stderr


def test_the_author_of_tools_sees_print_logging_and_tracebacks(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(
        "import logging, sys\n"
        "from pactgate import tool\n"
        "@tool(category='query', idempotent=True, effects=[])\n"
        "def speak() -> str:\n"
        "    '''Speaks.'''\n"
        "    print('printed')\n"
        "    logging.warning('logged')\n"
        "    raise KeyError('lost')\n"
    )
    with Served(tmp_path, "notes.py") as served:
        served.wait_for("ok    notes")
        served.run("call", "speak")
        eventually_blocking(
            lambda: all(word in served.log_text() for word in ("printed", "logged", "KeyError", "notes.py"))
        )


def test_the_level_of_the_log_changes_while_the_gateway_runs(tmp_path: Path) -> None:
    write_config(tmp_path, {"files": scripted(tools=["mutter"])}, auth=AUTH)
    with Served(tmp_path) as served:
        served.wait_for("ok    files")
        served.run("call", "files.mutter", "last=quiet")
        changed = served.run("config", "set", "log.level", "debug", "--token", TOKEN)
        assert changed.returncode == 0, changed.stderr
        served.run("call", "files.mutter", "last=heard")
        eventually_blocking(lambda: '"heard"' in served.log_text())
        assert "quiet" not in served.log_text()
