"""`pactgate config`: settings of the running gateway, read and changed by its own tools, with an administrator's token.

Exit codes as everywhere: 0 done, 1 the gateway refused, 2 wrong invocation.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Final

import typer

from pactgate.cli import terminal
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.gateway_options import Json, Token, Url, ask

_SERVER: Final = "pactgate"
_NEEDS_ADMIN: Final = (
    "Give the token of an administrator with --token or in PACTGATE_TOKEN. In the configuration: "
    '"auth": {"tokens": {"ops": {"token": "${PACTGATE_ADMIN_TOKEN}", "roles": ["admin"]}}}'
)

app = typer.Typer(
    help="Read and change settings of the running gateway. Needs the token of an administrator.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Path = Annotated[
    str, typer.Argument(metavar="PATH", help='As limits.maxArraySize, or rateLimits.tools["files.*"].rpm.')
]


@app.command("get")
def get(path: _Path, url: Url = None, token: Token = None, as_json: Json = False) -> None:
    """Show one setting, or a section."""
    raise typer.Exit(ask(url, token, lambda client: _get(client, path, as_json=as_json)))


@app.command("set", epilog="Example: pactgate config set rateLimits.read.rpm 400 --persist")
def set_(
    path: _Path,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, else taken as text; null is the default.")],
    persist: Annotated[
        bool, typer.Option("--persist", help="Also write it to the configuration file of the gateway.")
    ] = False,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="REV", help="Only if the configuration is at this revision.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Change one setting at once. Without --persist it lasts until the file is read again."""
    given: dict[str, Any] = {"path": path, "value": _read(value), "persist": persist}
    if expect is not None:
        given["expectedRevision"] = expect
    raise typer.Exit(ask(url, token, lambda client: _set(client, given, as_json=as_json)))


@app.command("show")
def show(
    scope: Annotated[
        str, typer.Option("--scope", metavar="SCOPE", help="merged (in force), file, or changes (not written yet).")
    ] = "merged",
    url: Url = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show the configuration, without secrets."""
    raise typer.Exit(ask(url, token, lambda client: _show(client, scope, as_json=as_json)))


def _get(client: GatewayClient, path: str, *, as_json: bool) -> int:
    answer = client.call("config_get", {"path": path}, server=_SERVER)
    facts = _facts(answer, as_json=as_json)
    if facts is not None and not as_json:
        terminal.say(_in_words(facts["value"]))
    return 1 if facts is None else 0


def _set(client: GatewayClient, given: dict[str, Any], *, as_json: bool) -> int:
    facts = _facts(client.call("config_set", given, server=_SERVER), as_json=as_json)
    if facts is None:
        return 1
    if not as_json:
        lasts = "written to the file" if facts["persisted"] else "until the file is read again"
        late = "; takes effect at the next start" if facts["needsRestart"] else ""
        change = f"{facts['path']}: {json.dumps(facts['oldValue'])} -> {json.dumps(facts['newValue'])}"
        terminal.say(f"{change} ({lasts}{late}; revision {facts['revision']})")
    return 0


def _show(client: GatewayClient, scope: str, *, as_json: bool) -> int:
    facts = _facts(client.call("config_show", {"scope": scope}, server=_SERVER), as_json=as_json)
    if facts is None:
        return 1
    if not as_json:
        terminal.say(_in_words(facts["config"]))
        for path in facts["unwritten"]:
            terminal.warning(f"{path} is not in the file")
    return 0


def _facts(answer: dict[str, Any], *, as_json: bool) -> dict[str, Any] | None:
    """What the tool said; None after what went wrong has been shown."""
    result = answer.get("result")
    if isinstance(result, dict) and not result.get("isError"):
        facts: dict[str, Any] = result.get("structuredContent") or {}
        if as_json:
            terminal.say_json(facts)
        return facts
    failure = _failure(answer)
    if as_json:
        terminal.say_json({"error": failure})
        return None
    sys.stdout.flush()
    if failure.get("failure_mode") in ("unknown_tool", None):
        terminal.problem("This gateway does not let you manage it.", _NEEDS_ADMIN)
        return None
    problems = failure.get("problems")
    if isinstance(problems, list):
        terminal.problem("Nothing was changed.")
        for problem in problems:
            terminal.item("wrong", "red", f"{problem['path']}: {problem['message']}", problem["hint"])
    else:
        terminal.problem(str(failure.get("message")))
    return None


def _failure(answer: dict[str, Any]) -> dict[str, Any]:
    error = answer.get("error")
    if isinstance(error, dict):
        data = error.get("data")
        return {**(data if isinstance(data, dict) else {}), "message": error.get("message")}
    result = answer["result"]
    failure = result.get("_meta", {}).get("dev.pactgate/envelope", {}).get("failure", {})
    texts = [block.get("text") for block in result.get("content", []) if block.get("type") == "text"]
    return {**failure, "message": texts[0] if texts else None}


def _read(text: str) -> Any:
    """JSON first; what is not JSON is meant as it stands."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _in_words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
