"""A confined server in a project folder beside the files of the gateway: it runs, and sees none of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pactgate.app import Gateway
from pactgate.config.load import load
from tests.cli.program import run
from tests.upstreams.confinement import needs_kernel

TOOLS = '''
from pactgate import tool
import helper

@tool(category="query", idempotent=True, effects=["filesystem.read"])
def peek(name: str) -> str:
    """Read a file."""
    try:
        return open(name).read()
    except OSError as problem:
        return f"errno {problem.errno}"
'''


def project(folder: Path) -> Path:
    (folder / "captures").mkdir()
    (folder / "notes.py").write_text(TOOLS)
    (folder / "helper.py").write_text("")
    for name in ("secret.txt", ".env", "captures/one.jsonl"):
        (folder / name).write_text("INLINE-OPS-TOKEN-123")
    config = folder / "pactgate.json"
    config.write_text(
        json.dumps(
            {
                "mcpServers": {"notes": {"tools": "notes.py", "env": {"KEY": "${file:secret.txt}"}, "effects": {}}},
                "audit": {"file": "audit.jsonl"},
                "capture": {"dir": "captures"},
            }
        )
    )
    return config


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
async def test_a_confined_server_sees_its_own_code_and_no_file_of_the_gateway(tmp_path: Path) -> None:
    config = load(project(tmp_path), environ=os.environ)
    names = ("pactgate.json", ".env", "secret.txt", "audit.jsonl", "captures/one.jsonl")
    async with Gateway.open(config) as gateway:
        said = {name: (await gateway.invoke("notes.peek", {"name": str(tmp_path / name)}))["data"] for name in names}
        own = (await gateway.invoke("notes.peek", {"name": str(tmp_path / "helper.py")}))["data"]
    assert {name: str(text) for name, text in said.items() if "errno 13" not in str(text)} == {}
    assert "errno" not in str(own)


def test_check_says_what_is_opened_and_warns_of_declared_folders_with_our_files(tmp_path: Path) -> None:
    folder = tmp_path / "project"  # not the home of who checks it
    folder.mkdir()
    config = project(folder)
    checked = run(tmp_path, "check", "--config", str(config)).stdout
    assert "notes may always read" in checked
    assert str(folder / "helper.py") in checked
    report = json.loads(run(tmp_path, "check", "--config", str(config), "--json").stdout)
    assert str(folder / "helper.py") in report["servers"][0]["opens"]
    assert not {str(folder), str(config), str(folder / ".env")} & set(report["servers"][0]["opens"])
    assert report["warnings"] == []
    config.write_text(config.read_text().replace('"effects": {}', '"effects": {"read": ["captures"], "write": ["."]}'))
    warnings = json.loads(run(tmp_path, "check", "--config", str(config), "--json").stdout)["warnings"]
    assert [one["path"] for one in warnings] == [f"mcpServers.notes.effects.{key}" for key in ("read[0]", "write[0]")]
    assert "can change files of the gateway" in warnings[1]["message"]
    assert "pactgate.json" in warnings[1]["message"]
