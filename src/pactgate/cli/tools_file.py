"""A Python file of tools on the command line: `pactgate serve notes.py` and `pactgate check notes.py`.

For a tool whose declaration says less than it could, `check` proposes one from what running gateways saw it do. Must not: run the file's
code in this process; a child process does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from pactgate.cli import terminal
from pactgate.cli.errors import CommandError
from pactgate.cli.table import Column, show_table
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import legal_id
from pactgate.core.contract import CONTRACT_KEY, READ_ONLY_CATEGORIES, Effect
from pactgate.core.display import visible
from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.tool_interpreter import interpreter_of

CHECK_TIMEOUT_S: Final = 60.0
_NOT_DECLARED: Final = "not declared"
_CALLS_LOOKED_AT: Final = 20
_COLUMNS: Final = (
    Column("TOOL"),
    Column("CATEGORY"),
    Column("IDEMPOTENT"),
    Column("EFFECTS"),
    Column("ERRORS"),
    Column("DESCRIPTION", is_long=True),
)


class _Proposal(NamedTuple):
    """What to declare of a tool, and in how many calls it was seen."""

    declaration: str
    calls: int


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


def check_tools(file: str, *, as_json: bool, python: str | None = None) -> int:
    """List the tools of the file and return 0, or print every problem and return 1."""
    require_python_file(file)
    try:
        command = [*interpreter_of(file, python), "--check", file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_TIMEOUT_S, check=False)
    except GatewayFailure as failure:
        raise CommandError(failure.message, exit_code=1) from None
    except FileNotFoundError as problem:
        hint = "The file names its packages (`# /// script`): install uv, or name an interpreter that has them with `python`."
        raise CommandError(f"There is no program {problem.filename}.", hint, exit_code=1) from None
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
    proposals = _proposals(file, tools)
    if as_json:
        shown = {name: None if one is None else one._asdict() for name, one in proposals.items()}
        terminal.say_json({"ok": True, "tools": tools, "proposals": shown})
        return 0
    terminal.say(f"{file} is valid: {len(tools)} tool{'s' * (len(tools) != 1)}.")
    show_table(_COLUMNS, map(_cells, tools))
    _show_proposals(file, proposals)
    return 0


def _cells(tool: dict[str, Any]) -> list[Any]:
    contract = _contract(tool)
    shown = {
        "category": contract["category"],
        "idempotent": "yes" if contract["idempotent"] else "no",
        "effects": ", ".join(contract["effects"]) or "none",
    }
    return [
        tool["name"],
        *(_NOT_DECLARED if word in contract["assumed"] else text for word, text in shown.items()),
        ", ".join(one["code"] for one in contract["errorCodes"]),
        tool["description"].partition("\n")[0],
    ]


def _contract(tool: dict[str, Any]) -> dict[str, Any]:
    contract: dict[str, Any] = tool["_meta"][CONTRACT_KEY]
    return contract


def _proposals(file: str, tools: Sequence[dict[str, Any]]) -> dict[str, _Proposal | None]:
    """A declaration for each tool that has none, as its calls in running gateways were seen; None where none was."""
    server, found = tools_server(file).id, dict[str, _Proposal | None]()
    for tool in tools:
        if _contract(tool)["assumed"]:
            calls = _calls_of(f"{server}.{tool['name']}")
            found[tool["name"]] = _Proposal(_declaration(_contract(tool), calls), len(calls)) if calls else None
    return found


def _show_proposals(file: str, proposals: dict[str, _Proposal | None]) -> None:
    if proposals:
        terminal.say()
    for name, one in proposals.items():
        if one is not None:
            seen = f"as it was seen to do in {one.calls} call{'s' * (one.calls != 1)}"
            terminal.item(name, "bold", one.declaration, seen)
    if unseen := [name for name, one in proposals.items() if one is None]:
        terminal.say(
            f"Nothing is known of what these do: {', '.join(unseen)}. They count as tools that may do anything."
        )
        terminal.say(
            f"Call them through `pactgate serve {file}`, and check again while it runs: it proposes what to declare."
        )


def _declaration(contract: dict[str, Any], calls: Sequence[dict[str, Any]]) -> str:
    seen = sorted({str(done["kind"]) for call in calls for done in call["operations"] if done.get("kind")})
    category = contract["category"]
    if "category" in contract["assumed"]:  # what a request over the network does elsewhere can't be seen
        category = "execution" if Effect.PROCESS in seen else "query" if {*seen} <= {Effect.READ} else "mutation"
    idempotent = category in READ_ONLY_CATEGORIES if "idempotent" in contract["assumed"] else contract["idempotent"]
    effects = seen if "effects" in contract["assumed"] else contract["effects"]
    return f'@tool(category="{category}", idempotent={idempotent}, effects={json.dumps(effects)})'


def _calls_of(tool: str) -> list[dict[str, Any]]:
    """The last calls of a tool that went well, in the gateways of this user. One that lets nobody look has none."""
    from pactgate.cli.gateway_client import GatewayClient, GatewayClientError  # `serve FILE` needs none of it
    from pactgate.cli.running_gateways import running_gateways

    found: list[dict[str, Any]] = []
    for gateway in running_gateways():
        client = GatewayClient(gateway.url, os.environ.get("PACTGATE_TOKEN"), certificate=gateway.certificate)
        with suppress(GatewayClientError):
            listed = client.get(f"/api/calls?filter=tool:{tool}+outcome:ok")["calls"]
            found += [client.get(f"/api/calls/{call['requestId']}") for call in listed[:_CALLS_LOOKED_AT]]
    return found
