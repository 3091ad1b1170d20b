"""A Python file of tools on the command line: `pactgate serve notes.py` and `pactgate check notes.py`.

Must not: run the file's code in this process; a child process does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
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
    """The configuration of the only server, when a gateway serves a file alone."""
    path = os.path.abspath(file)
    return ServerConfig(id=legal_id(os.path.splitext(os.path.basename(path))[0]), tools=path)


def require_python_file(file: str) -> None:
    """Raise CommandError where the file can't be one of tools, as far as that is visible without running it."""
    if not file.endswith(".py"):
        raise CommandError(f"{file} is not a Python file: its name must end with .py.")
    if not os.path.isfile(file):
        raise CommandError(f"There is no file {file}.")


def check_tools(file: str, *, as_json: bool) -> int:
    """List the tools of the file and return 0, or print every problem and return 1."""
    require_python_file(file)
    command = [sys.executable, "-P", "-m", "pactgate.runner", "--check", file]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        hint = "Does it run an endless loop at module level?"
        raise CommandError(f"{file} was not loaded within {CHECK_TIMEOUT_S:.0f} s.", hint, exit_code=1) from None
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
    terminal.say(f"{file} is valid: {len(tools)} tool{'s' * (len(tools) != 1)}.")
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
