"""`pactgate config`: read and change settings of the running gateway through its management tools."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from pactgate.cli import terminal
from pactgate.cli.completions import setting_paths
from pactgate.cli.gateway_client import GatewayClient
from pactgate.cli.shared_options import with_gateway

_SERVER: Final = "pactgate"
_NEEDS_ADMIN: Final = (
    "Give the token or key of an administrator with --token or in PACTGATE_TOKEN; "
    "`pactgate keys add ops --roles admin` makes one."
)

_path_argument: Final = click.argument("path", shell_complete=setting_paths)


@click.group()
def config() -> None:
    """Read and change settings of the running gateway. Needs the token of an administrator."""


@config.command("get", epilog="Example: pactgate config get limits.maxArraySize")
@_path_argument
@with_gateway
def get(client: GatewayClient, *, path: str, as_json: bool) -> int:
    """Show one setting or one section.

    PATH is a name as limits.maxArraySize, or rateLimits.tools["files.*"].rpm.
    """
    facts = _call(client, "config_get", {"path": path}, as_json=as_json)
    if not as_json:
        terminal.say_as_it_is(_setting_text(facts["value"]))
    return 0


@config.command("set", epilog="Example: pactgate config set rateLimits.read.rpm 400 --persist")
@_path_argument
@click.argument("value")
@click.option("--persist", is_flag=True, help="Also write it to the configuration file of the gateway.")
@click.option("--dry-run", is_flag=True, help="Only check the change, and show what it would do.")
@click.option("--expect", metavar="REV", help="Change it only if the configuration is at this revision.")
@with_gateway
def set_(
    client: GatewayClient, *, path: str, value: str, persist: bool, dry_run: bool, expect: str | None, as_json: bool
) -> int:
    """Change one setting at once. Without --persist the change lasts until the file is reloaded.

    PATH is a name as limits.maxArraySize. VALUE is JSON, else a string; null restores the default.
    """
    arguments: dict[str, Any] = {"path": path, "value": _read(value), "persist": persist, "dryRun": dry_run}
    if expect is not None:
        arguments["expectedRevision"] = expect
    facts = _call(client, "config_set", arguments, as_json=as_json)
    if not as_json:
        lasts = "written to the file" if facts["persisted"] else "until the file is reloaded"
        if dry_run:
            lasts = "not applied"
        late = "; takes effect at the next start" if facts["needsRestart"] else ""
        change = f"{facts['path']}: {json.dumps(facts['oldValue'])} -> {json.dumps(facts['newValue'])}"
        terminal.say(f"{change} ({lasts}{late}; revision {facts['revision']})")
    return 0


@config.command("show")
@click.option("--scope", default="merged", metavar="SCOPE", help="merged (in force), file, or changes (not written).")
@with_gateway
def show(client: GatewayClient, *, scope: str, as_json: bool) -> int:
    """Show the configuration, without secrets."""
    facts = _call(client, "config_show", {"scope": scope}, as_json=as_json)
    if not as_json:
        terminal.say_as_it_is(_setting_text(facts["config"]))
        for path in facts["unwritten"]:
            terminal.warning(f"{path} is not in the file")
    return 0


def _call(client: GatewayClient, tool: str, arguments: dict[str, Any], *, as_json: bool) -> dict[str, Any]:
    """The result of a management tool, printed as JSON if asked for. A failure is printed and ends the command."""
    answer = client.call(tool, arguments, server=_SERVER)
    result = answer.get("result")
    if not isinstance(result, dict) or result.get("isError"):
        _show_failure(_failure(answer), as_json=as_json)
        click.get_current_context().exit(1)
    facts: dict[str, Any] = result.get("structuredContent") or {}
    if as_json:
        terminal.say_json(facts)
    return facts


def _show_failure(failure: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        terminal.say_json({"error": failure})
    elif failure.get("failure_mode") in ("unknown_tool", "unknown_path", None):
        terminal.problem("You may not manage this gateway.", _NEEDS_ADMIN)
    elif isinstance(problems := failure.get("problems"), list):
        terminal.problem("Nothing was changed.")
        for problem in problems:
            terminal.item("wrong", "red", f"{problem['path']}: {problem['message']}", problem["hint"])
    else:
        terminal.problem(str(failure.get("message")))


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
    """The value as JSON; text that is not JSON is a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _setting_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
