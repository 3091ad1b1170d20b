"""docs/writing-tools.md is true: its file is the example, its commands print what it shows, its tests pass."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pactgate.config.load import load
from tests.cli.program import PROGRAM, WAIT_S, Served, environment, run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "writing-tools.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "notes.py"
POCKET = ROOT / "src" / "pactgate" / "demo" / "pocket.py"
REQUEST = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SOME_REQUEST = "273a86c1-2114-4255-8458-b207bcc8f1df"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("newcomer")
    shutil.copy(EXAMPLE, folder)
    shutil.copy(POCKET, folder)
    config = folder / "pactgate.jsonc"
    config.write_text('{ "mcpServers": { "notes": { "tools": "notes.py" }, "pocket": { "tools": "pocket.py" } } }')
    config.chmod(0o600)
    with Served(folder) as served:
        served.wait_for(r"ok +notes")
        served.wait_for(r"ok +pocket")
        yield served


def test_the_file_of_the_page_is_the_example() -> None:
    assert blocks("python")[0] == EXAMPLE.read_text(encoding="utf-8")


def test_the_liar_of_the_page_is_that_of_the_demo() -> None:
    assert blocks("python")[2] in POCKET.read_text(encoding="utf-8")


def test_the_resources_and_the_prompt_of_the_page_are_served_beside_its_tools(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(EXAMPLE.read_text(encoding="utf-8") + blocks("python")[1], encoding="utf-8")
    (tmp_path / "notes.txt").write_text("Buy milk\n", encoding="utf-8")
    server = ["--", *PROGRAM, "serve", "--stdio", "notes.py"]
    assert run(tmp_path, "read", "notes://all", *server).stdout == "Buy milk\n"
    assert json.loads(run(tmp_path, "read", "notes://1", *server).stdout) == {"number": 1, "text": "Buy milk"}
    assert "Summarise my notes on milk." in run(tmp_path, "prompt", "summarise", "topic=milk", *server).stdout


def test_every_command_prints_what_the_page_shows(gateway: Served) -> None:
    for block in blocks("console"):
        assert shown_by(gateway, block) == block


def shown_by(gateway: Served, block: str) -> str:
    """The same block with what the commands print now."""
    text = ""
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        done = subprocess.run(
            [*PROGRAM, *shlex.split(line)[1:]],
            cwd=gateway.folder,
            env=environment(gateway.folder, PACTGATE_URL=gateway.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * WAIT_S,
            check=False,
        )
        text += f"$ {line}\n" + REQUEST.sub(SOME_REQUEST, done.stdout)
    return text


@pytest.mark.parametrize("block", blocks("jsonc"))
def test_every_configuration_of_the_page_loads(block: str, tmp_path: Path) -> None:
    path = tmp_path / "pactgate.jsonc"
    path.write_text(block, encoding="utf-8")
    assert load(path, environ={}).servers["notes"].tools == str(tmp_path / "notes.py")


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "test_notes.py").write_text(blocks("python")[3], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_notes.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_every_link_of_the_page_leads_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", PAGE)
    assert targets
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []
