"""`pactgate check`: is the configuration good, before anything runs? Every problem with its place, or what would be served.

Also whether the servers get in each other's way: from the configuration alone, or with `--live` from what they offer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pactgate.catalog.conflicts import Conflict, ConflictSeverity, find_static_conflicts
from pactgate.cli import terminal
from pactgate.cli.composition import is_hazardous, sentences
from pactgate.cli.document_check import documents_report, read_documents, show_documents
from pactgate.cli.table import Column, show_table
from pactgate.config.load import find, load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigurationError, Problem
from pactgate.config.reader import FORMATS
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import Mask, visible

_SEVERITY_STYLES: Final = {ConflictSeverity.HAZARD: "red", ConflictSeverity.NOTE: "yellow"}


def check(path: str | None, *, is_live: bool, as_json: bool) -> int:
    try:
        config = _load_existing(path)
    except ConfigurationError as error:
        if as_json:
            terminal.say_json({"ok": False, "problems": [_as_dict(problem) for problem in error.problems]})
        else:
            show_problems(error)
        return 2
    return _check_live(config, as_json=as_json) if is_live else _check_text(config, as_json=as_json)


def _load_existing(path: str | None) -> Config:
    """The configuration that was named, or that of this folder. Raises ConfigurationError, also where there is none."""
    file = Path(path) if path is not None else find(Path.cwd(), os.environ)
    if file is None:
        raise ConfigurationError([_nothing_found()])
    return load(file, environ=os.environ)


def show_problems(error: ConfigurationError) -> None:
    """Every problem on standard error, each with its place and what to do."""
    for problem in error.problems:
        place = problem.file if problem.line is None else f"{problem.file}:{problem.line}:{problem.column}"
        where = "  ".join(part for part in (place, problem.path) if part)
        if where:
            print(terminal.paint(visible(where), "bold", sys.stderr), file=sys.stderr)
        print(f"  {visible(problem.message)}", file=sys.stderr)
        if problem.hint:
            print(f"  {visible(problem.hint)}", file=sys.stderr)
    count = len(error.problems)
    terminal.problem(f"{count} problem{'s' * (count != 1)} in the configuration.")


def show_warnings(config: Config) -> None:
    for problem in config.warnings:
        terminal.warning(str(problem))


def _check_text(config: Config, *, as_json: bool) -> int:
    hazards = find_static_conflicts(config.servers.values())
    read = read_documents(config)
    code = 1 if is_hazardous(hazards) or any(isinstance(found, str) for found in read.values()) else 0
    if as_json:
        terminal.say_json({**_report(config, hazards, is_ok=code == 0), **documents_report(read)})
        return code
    show_warnings(config)
    _say_good(config)
    if config.servers:
        _show_settings(config)
        _show_hazards(hazards)
        show_documents(read)
        terminal.say("`pactgate check --live` connects to the servers once and compares what they offer.")
    return code


def _check_live(config: Config, *, as_json: bool) -> int:
    # Imported here: a look at the text alone needs no gateway.
    import asyncio

    from pactgate.catalog.conflicts import merge
    from pactgate.cli.connect_once import visit
    from pactgate.cli.server_table import is_troubled, show_servers

    with terminal.spinner("connecting to the servers") as turning:
        seen = asyncio.run(visit(config, turning.tell if turning else None))
    hazards = merge(find_static_conflicts(config.servers.values()), seen.hazards)
    code = 1 if is_hazardous(hazards) or any(map(is_troubled, seen.rows)) else 0
    if as_json:
        terminal.say_json({**_report(config, hazards, is_ok=code == 0), "live": seen.rows})
        return code
    show_warnings(config)
    _say_good(config)
    if config.servers:
        show_servers(seen.rows, is_verbose=True)
        _show_hazards(hazards)
    return code


def _say_good(config: Config) -> None:
    count = len(config.servers)
    terminal.say(
        f"{config.file} is good: {count} server{'s' * (count != 1)}, on {config.listen.host}:{config.listen.port}."
    )


def _show_settings(config: Config) -> None:
    mask = Mask(config.secrets)
    rows = (_server(server, mask) for server in config.servers.values())
    columns = (
        Column("SERVER"),
        Column("ENABLED", {"no": "dim"}),
        Column("ERA"),
        Column("TIMEOUT", is_number=True),
        Column("WHAT IT IS", is_long=True, wraps=True),
    )
    shown = (
        [row["serverId"], "yes" if row["enabled"] else "no", row["era"], f"{row['requestTimeoutMs']} ms", row["target"]]
        for row in rows
    )
    show_table(columns, shown)


def _show_hazards(hazards: Iterable[Conflict]) -> None:
    for severity, text in sentences(hazards):
        terminal.item(severity, _SEVERITY_STYLES[severity], text)


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
    target = server.openapi or server.tools or server.address or " ".join([server.command or "", *server.args])
    return {
        "serverId": server.id,
        "enabled": server.enabled,
        "era": server.era,
        "connectionTimeoutMs": server.connection_timeout_ms,
        "requestTimeoutMs": server.request_timeout_ms,
        "maxRetries": server.max_retries,
        "target": mask(target),
    }


def _as_dict(found: Problem | Conflict) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def _nothing_found() -> Problem:
    names = f"pactgate{{{','.join(FORMATS)}}}"
    return Problem(
        "",
        f"There is no {names} here, nor in the user's config folder.",
        "Name a file with --config. Without one, `pactgate serve` runs its demo.",
    )
