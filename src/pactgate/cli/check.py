"""`pactgate check`: check the configuration before anything runs, and look for conflicts between the servers.

Conflicts are found in the configuration alone, or with `--live` in what the servers offer.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import click
from msgspec.structs import asdict, replace

from pactgate.catalog.conflicts import Conflict, ConflictSeverity, find_static_conflicts
from pactgate.cli import terminal
from pactgate.cli.config_file import InvalidConfigError, find_config, load_config, show_warnings
from pactgate.cli.conflict_text import has_conflict, sentences
from pactgate.cli.key_warnings import warnings_of_keys
from pactgate.cli.openapi_report import documents_report, read_documents, show_documents
from pactgate.cli.sandbox_report import opened_files, show_opened_files
from pactgate.cli.shared_options import config_option, json_option
from pactgate.cli.table import Column, show_table
from pactgate.config.model import Config
from pactgate.config.package_versions import unpinned_package
from pactgate.config.problems import ConfigProblem
from pactgate.config.reader import FORMATS
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.core.masking import Mask
from pactgate.state.key_file import KeyFile

_SEVERITY_TEXTS: Final = {ConflictSeverity.HAZARD: ("conflict", "red"), ConflictSeverity.NOTE: ("note", "yellow")}

_SHOWN_TOOLS: Final = 10


@click.command()
@click.argument("file", metavar="[FILE]", required=False)
@config_option
@click.option("--live", is_flag=True, help="Connect to every server once, and check for conflicts between their tools.")
@json_option
def check(*, file: str | None, config: str | None, live: bool, as_json: bool) -> int:
    """Check the configuration: every problem with its place, else what would be served. Starts nothing without --live.

    FILE is a Python file of tools to check instead.
    """
    if file is not None:
        from pactgate.cli.tools_file import check_tools

        return check_tools(file, as_json=as_json)
    try:
        settings = _load_existing(config)
    except InvalidConfigError as error:
        if not as_json:
            raise
        terminal.say_json({"ok": False, "problems": [_as_dict(problem) for problem in error.problems]})
        return error.exit_code
    return _check_live(settings, as_json=as_json) if live else _check_text(settings, as_json=as_json)


def _load_existing(given: str | None) -> Config:
    """The configuration; an error where there is none."""
    path = find_config(given)
    if path is None:
        names = f"pactgate{{{','.join(FORMATS)}}}"
        message = f"There is no {names} here, nor in the user's configuration folder."
        hint = "Give a file with --config. Without one, `pactgate serve` runs its demo."
        raise InvalidConfigError([ConfigProblem("", message, hint)])
    config = load_config(path)
    if config.unresolved:
        raise InvalidConfigError(config.unresolved)
    if config.key_file is not None:
        try:
            ring = KeyFile(config.key_file).read()
        except GatewayFailure as failure:
            raise InvalidConfigError([ConfigProblem("auth.keys", failure.message)]) from None
        config = replace(config, warnings=(*config.warnings, *warnings_of_keys(config, ring)))
    return config


def _check_text(config: Config, *, as_json: bool) -> int:
    hazards = find_static_conflicts(config.servers.values())
    read = read_documents(config)
    code = 1 if has_conflict(hazards) or any(isinstance(found, str) for found in read.values()) else 0
    if as_json:
        report = _report(config, hazards, is_ok=code == 0)
        opened = opened_files(config)
        for row in report["servers"]:
            if row["serverId"] in opened:
                row["opens"] = opened[row["serverId"]]
        for row in report["servers"]:
            row["unpinned"] = _unpinned(config.servers[row["serverId"]])
        terminal.say_json({**report, **documents_report(read)})
        return code
    show_warnings(config)
    _say_valid(config)
    if config.servers:
        _show_settings(config)
        _show_conflicts(hazards)
        _show_unpinned(config)
        show_documents(read)
        show_opened_files(opened_files(config))
        terminal.say("`pactgate check --live` also connects to the servers once.")
    return code


def _check_live(config: Config, *, as_json: bool) -> int:
    import asyncio  # imported here, because only this check needs a gateway

    from pactgate.catalog.conflicts import merge
    from pactgate.cli.connect_once import connect_once
    from pactgate.cli.server_table import is_troubled, show_servers
    from pactgate.cli.tool_cost import costs_of, hints_of

    with terminal.spinner("connecting to the servers") as tell:
        seen = asyncio.run(connect_once(config, tell))
    hazards = merge(find_static_conflicts(config.servers.values()), seen.conflicts)
    code = 1 if has_conflict(hazards) or any(map(is_troubled, seen.rows)) else 0
    if as_json:
        cost = costs_of(seen.tools)[0].facts()
        terminal.say_json({**_report(config, hazards, is_ok=code == 0), "live": seen.rows, "cost": cost})
        return code
    show_warnings(config)
    _say_valid(config)
    if config.servers:
        show_servers(seen.rows, is_verbose=True)
        _show_conflicts(hazards)
        for hint in hints_of(costs_of(seen.tools)[0]):
            terminal.item("hint", "yellow", hint)
    return code


def _unpinned(server: ServerConfig) -> str | None:
    return unpinned_package(server.command, server.args) if server.command is not None else None


def _show_unpinned(config: Config) -> None:
    for server in config.servers.values():
        package = _unpinned(server) if server.enabled else None
        if package is not None:
            text = f"{server.id} runs any version of {package} that is published."
            terminal.item("note", "yellow", text, "Name a version, as in package@1.2.3 or image:1.2.3.")


def _say_valid(config: Config) -> None:
    count = len(config.servers)
    terminal.say(f"{config.file} is valid: {count} server{'s' * (count != 1)}, on {config.listen.shown()}.")


def _show_settings(config: Config) -> None:
    mask = Mask(config.secrets)
    columns = (
        Column("SERVER"),
        Column("ENABLED", {"no": "dim"}),
        Column("TIMEOUT", is_number=True),
        Column("TARGET", is_long=True, wraps=True),
    )
    shown = (
        [server.id, "yes" if server.enabled else "no", f"{server.request_timeout_ms} ms", mask(_target(server))]
        for server in config.servers.values()
    )
    show_table(columns, shown)
    tools, categories = config.timeouts.tool_overrides, asdict(config.timeouts.tool_timeouts)
    others = [f"{name} {ms} ms" for name, ms in (*categories.items(), *islice(tools.items(), _SHOWN_TOOLS)) if ms]
    if others:
        more = f" and {len(tools) - _SHOWN_TOOLS} more" if len(tools) > _SHOWN_TOOLS else ""
        terminal.say(f"Timeouts of categories and tools (timeouts): {', '.join(others)}{more}.")


def _show_conflicts(hazards: Iterable[Conflict]) -> None:
    for severity, text in sentences(hazards):
        terminal.item(*_SEVERITY_TEXTS[severity], text)


def _report(config: Config, hazards: Iterable[Conflict], *, is_ok: bool) -> dict[str, Any]:
    mask = Mask(config.secrets)
    return {
        "ok": is_ok,
        "file": config.file,
        "servers": [_server(server, mask) for server in config.servers.values()],
        "warnings": [_as_dict(problem) for problem in config.warnings],
        "hazards": [_as_dict(hazard) for hazard in hazards],
    }


def _server(server: ServerConfig, mask: Mask) -> dict[str, Any]:
    return {
        "serverId": server.id,
        "enabled": server.enabled,
        "era": server.era,
        "connectionTimeoutMs": server.connection_timeout_ms,
        "requestTimeoutMs": server.request_timeout_ms,
        "maxRetries": server.max_retries,
        "target": mask(_target(server)),
    }


def _target(server: ServerConfig) -> str:
    return server.openapi or server.tools or server.address or " ".join([server.command or "", *server.args])


def _as_dict(found: ConfigProblem | Conflict) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}
