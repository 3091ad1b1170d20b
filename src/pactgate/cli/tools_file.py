"""A Python file of tools on the command line: `pactgate serve notes.py` and `pactgate check notes.py`.

Must not: run the file's code in this process; a child of its own does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.options import ServeOptions
from pactgate.cli.table import Column, show_table
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import legal_id
from pactgate.core.contract import CONTRACT_KEY
from pactgate.core.display import visible

CHECK_TIMEOUT_S: Final = 60.0
_COLUMNS: Final = (
    Column("TOOL"),
    Column("CATEGORY"),
    Column("IDEMPOTENT"),
    Column("EFFECTS"),
    Column("ERRORS"),
    Column("DESCRIPTION", is_long=True),
)


def tools_server(file: str) -> ServerConfig:
    """The one server of a gateway that serves a file alone."""
    path = os.path.abspath(file)
    return ServerConfig(id=legal_id(os.path.splitext(os.path.basename(path))[0]), tools=path)


def unfit_file(options: ServeOptions) -> str | None:
    """Why the named file can't be served, as far as that can be seen without running it."""
    assert options.file is not None
    if options.config is not None:
        return "Serve a file of tools or a configuration, not both; a configuration has `tools` for this."
    return _unreadable(options.file)


def _unreadable(file: str) -> str | None:
    if not file.endswith(".py"):
        return f"{file} is no Python file: its name must end with .py."
    return None if os.path.isfile(file) else f"There is no file {file}."


def check_tools(file: str, *, as_json: bool) -> int:
    """0 and what the file offers, or 1 and every problem; 2 where there is no such file."""
    wrong = _unreadable(file)
    if wrong:
        terminal.problem(wrong)
        return 2
    command = [sys.executable, "-P", "-m", "pactgate.runner", "--check", file]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        terminal.problem(
            f"{file} was not loaded within {CHECK_TIMEOUT_S:.0f} s.",
            "Does it do something endless outside of its tools?",
        )
        return 1
    problems = done.stderr.strip().splitlines()
    if done.returncode:
        if as_json:
            terminal.say_json({"ok": False, "problems": problems})
        else:
            for line in problems:
                print(visible(line), file=sys.stderr)
            terminal.problem(f"{file} can't be served.")
        return 1
    tools = json.loads(done.stdout.strip().splitlines()[-1])
    if as_json:
        terminal.say_json({"ok": True, "tools": tools})
        return 0
    terminal.say(f"{file} is good: {len(tools)} tool{'s' * (len(tools) != 1)}.")
    show_table(_COLUMNS, map(_cells, tools))
    return 0


def _cells(tool: dict[str, Any]) -> list[Any]:
    contract = tool["_meta"][CONTRACT_KEY]
    return [
        tool["name"],
        contract["category"],
        "yes" if contract["idempotent"] else "no",
        ", ".join(contract["effects"]) or "none",
        ", ".join(one["code"] for one in contract["errorCodes"]),
        tool["description"].partition("\n")[0],
    ]
