"""`pactgate check`: is the configuration good, before anything runs? Every problem with its place, or what would be served."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pactgate.cli import console
from pactgate.cli.console import Column
from pactgate.config.load import find, load
from pactgate.config.model import Config, ServerConfig
from pactgate.config.problems import ConfigurationError, Problem
from pactgate.config.text import FORMATS
from pactgate.core.display import Mask, visible


def check(path: str | None, *, as_json: bool) -> int:
    try:
        file = Path(path) if path is not None else find(Path.cwd(), os.environ)
        if file is None:
            raise ConfigurationError([_nothing_found()])
        config = load(file, environ=os.environ)
    except ConfigurationError as error:
        if as_json:
            console.say_json({"ok": False, "problems": [_as_dict(problem) for problem in error.problems]})
        else:
            show_problems(error)
        return 2
    if as_json:
        rows = [_server(server, Mask(config.secrets)) for server in config.servers.values()]
        warnings = [_as_dict(problem) for problem in config.warnings]
        console.say_json({"ok": True, "file": config.file, "servers": rows, "warnings": warnings})
    else:
        _summarize(config)
    return 0


def show_problems(error: ConfigurationError) -> None:
    """Every problem on standard error, each with its place and what to do."""
    for problem in error.problems:
        place = problem.file if problem.line is None else f"{problem.file}:{problem.line}:{problem.column}"
        where = "  ".join(part for part in (place, problem.path) if part)
        if where:
            print(console.paint(visible(where), "bold", sys.stderr), file=sys.stderr)
        print(f"  {visible(problem.message)}", file=sys.stderr)
        if problem.hint:
            print(f"  {visible(problem.hint)}", file=sys.stderr)
    count = len(error.problems)
    console.problem(f"{count} problem{'s' * (count != 1)} in the configuration.")


def show_warnings(config: Config) -> None:
    for problem in config.warnings:
        console.warning(str(problem))


def _summarize(config: Config) -> None:
    show_warnings(config)
    mask = Mask(config.secrets)
    count = len(config.servers)
    console.say(
        f"{config.file} is good: {count} server{'s' * (count != 1)}, on {config.listen.host}:{config.listen.port}."
    )
    if not count:
        return
    rows = (_server(server, mask) for server in config.servers.values())
    columns = (
        Column("SERVER"),
        Column("ENABLED", {"no": "dim"}),
        Column("ERA"),
        Column("TIMEOUT", is_number=True),
        Column("COMMAND OR URL", is_long=True, wraps=True),
    )
    shown = (
        [row["serverId"], "yes" if row["enabled"] else "no", row["era"], f"{row['requestTimeoutMs']} ms", row["target"]]
        for row in rows
    )
    console.table(columns, shown)


def _server(server: ServerConfig, mask: Mask) -> dict[str, Any]:
    target = server.url if server.url is not None else " ".join([server.command or "", *server.args])
    return {
        "serverId": server.id,
        "enabled": server.enabled,
        "era": server.era,
        "connectionTimeoutMs": server.connection_timeout_ms,
        "requestTimeoutMs": server.request_timeout_ms,
        "maxRetries": server.max_retries,
        "target": mask(target),
    }


def _as_dict(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in problem.__struct_fields__}


def _nothing_found() -> Problem:
    names = f"pactgate{{{','.join(FORMATS)}}}"
    return Problem(
        "",
        f"There is no {names} here, nor in the user's config folder.",
        "Name a file with --config. Without one, `pactgate serve` runs its demo.",
    )
