"""docs/first-tool.md is true: its commands print what it shows, in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import PROGRAM, WAIT_S, Served, environment

PAGE = (Path(__file__).parents[1] / "docs" / "first-tool.md").read_text(encoding="utf-8")
REQUEST = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SOME_REQUEST = "273a86c1-2114-4255-8458-b207bcc8f1df"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def shown_by(folder: Path, block: str, **env: str) -> str:
    """The same block with what the commands print now."""
    text = ""
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        done = subprocess.run(
            line,
            shell=True,
            cwd=folder,
            env=environment(folder, **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * WAIT_S,
            check=False,
        )
        text += f"$ {line}\n" + REQUEST.sub(SOME_REQUEST, done.stdout)
    return text


def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pactgate").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    (programs / "pactgate").chmod(0o755)
    (tmp_path / "hello.py").write_text(blocks("python")[0], encoding="utf-8")
    path = f"{programs}{os.pathsep}{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    alone, *served = blocks("console")
    assert shown_by(tmp_path, alone, PATH=path) == alone
    with Served(tmp_path, "hello.py") as gateway:
        gateway.wait_for("ok +hello")
        for block in served:
            assert shown_by(tmp_path, block, PATH=path) == block
