"""`pactgate audit`: is the log what was written, and what does it say? Reads files, asks no gateway, changes nothing.

Exit codes: 0 the chain holds; 1 it is broken, or there is nothing to read; 2 wrong invocation or configuration.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from pactgate.cli import terminal
from pactgate.cli.table import Column, Styled, show_table
from pactgate.core.display import flat

_EXAMPLES: Final = """\
\b
Examples:
  pactgate audit verify                    the log of the configuration, with all files set aside
  pactgate audit verify audit.jsonl --json
  pactgate audit show -n 50                the last records

Exit codes: 0 the chain holds, 1 it is broken or can't be read, 2 wrong invocation or configuration.
"""
_COLUMNS: Final = (
    Column("TIME"),
    Column("TOOL"),
    Column("CALLER", from_width=100),
    Column("OUTCOME"),
    Column("ACTION", from_width=90),
    Column("MS", is_number=True),
    Column("REQUEST"),
)
_WRONG: Final = 2
_VALUE_CHARS: Final = 40

_MADE_AT_START = "The gateway makes it when it starts with audit.file."

app = typer.Typer(help="Check and read the audit log.", epilog=_EXAMPLES, no_args_is_help=True, rich_markup_mode=None)

_File = Annotated[str | None, typer.Argument(metavar="FILE", help="The log. Default: audit.file of the configuration.")]
_Config = Annotated[str | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration file.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class NoLogError(Exception):
    """There is no log to read; the text says what to do."""


@app.command(epilog=_EXAMPLES)
def verify(file: _File = None, config: _Config = None, as_json: _Json = False) -> None:
    """Check the chain from the first record to the last, across all files of the log."""
    from pactgate.audit import verify as family

    log = _log(file, config)
    try:
        verdict = family.verify_log(log)
    except OSError as error:
        terminal.problem(f"{error.filename} can't be read: {error.strerror}.")
        raise typer.Exit(1) from None
    if as_json:
        terminal.say_json({"valid": verdict.is_valid, **msgspec.to_builtins(verdict)})
    else:
        _show_verdict(verdict)
    raise typer.Exit(0 if verdict.is_valid else 1)


@app.command(epilog=_EXAMPLES)
def show(
    file: _File = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10000, help="How many.")] = 20,
    config: _Config = None,
    as_json: _Json = False,
) -> None:
    """Show the last records, the newest last."""
    from pactgate.audit.verify import files_of, latest

    log = _log(file, config)
    try:
        records = latest(files_of(log), count)
    except OSError as error:
        terminal.problem(f"{error.filename} can't be read: {error.strerror}.")
        raise typer.Exit(1) from None
    if as_json:
        for record in records:
            print(json.dumps(record))
    else:
        show_table(_COLUMNS, map(_cells, records))


def configured_log(config: str | None) -> Path:
    """The log the configuration names. Raises NoLogError, or ConfigurationError."""
    from pactgate.config.load import find, load

    path = Path(config) if config is not None else find(Path.cwd(), os.environ)
    settings = load(path, environ=os.environ).audit if path is not None else None
    if settings is None or settings.file is None:
        raise NoLogError("There is no audit log: the configuration names no audit.file.")
    return Path(settings.file)


def _log(file: str | None, config: str | None) -> Path:
    from pactgate.audit.verify import files_of
    from pactgate.cli.check import show_problems
    from pactgate.config.problems import ConfigurationError

    try:
        log = Path(file) if file is not None else configured_log(config)
    except NoLogError as missing:
        terminal.problem(str(missing), "Name the file: pactgate audit verify FILE.")
        raise typer.Exit(_WRONG) from None
    except ConfigurationError as error:
        show_problems(error)
        raise typer.Exit(_WRONG) from None
    if not files_of(log):
        terminal.problem(f"There is no {log}.", _MADE_AT_START)
        raise typer.Exit(_WRONG)
    return log


def _show_verdict(verdict: Any) -> None:
    files = ", ".join(verdict.files)
    if verdict.is_valid:
        terminal.say(f"The chain holds: {verdict.records} records, {verdict.calls} calls, in {files}.")
        terminal.say(f"The last is number {verdict.head.seq}, {verdict.head.hash}.")
    for note in verdict.notes:
        terminal.say(f"Note: {note}.")
    if verdict.is_valid:
        return
    sys.stdout.flush()
    lines = [f"  {one.file}:{one.line}: {one.why}" for one in verdict.breaks]
    if verdict.break_count > len(verdict.breaks):
        lines.append(f"  and {verdict.break_count - len(verdict.breaks)} more")
    terminal.problem(
        f"The chain is broken, {verdict.break_count} times in {verdict.records} sound records:", "\n".join(lines)
    )


def _cells(record: dict[str, Any]) -> list[Any]:
    if record.get("kind") == "change":
        words = f"{flat(str(record.get('old')), _VALUE_CHARS)} -> {flat(str(record.get('new')), _VALUE_CHARS)}"
        return [record.get("time"), f"(setting {record.get('path')})", record.get("subject"), words, "", "", ""]
    if record.get("kind") != "call":
        return [record.get("time"), f"(log {record.get('kind')})", "", _own_words(record), "", "", ""]
    outcome = str(record.get("outcome"))
    return [
        record.get("time"),
        record.get("tool") or record.get("requested"),
        record.get("subject"),
        Styled(
            outcome if record.get("code") is None else f"{outcome} {record['code']}",
            "" if outcome == "ok" else "yellow",
        ),
        str(record.get("verdict")).replace("_", " "),
        f"{record.get('durationMs', 0):.1f}",
        record.get("requestId"),
    ]


def _own_words(record: dict[str, Any]) -> str:
    known = {name: fact for name, fact in record.items() if name not in ("seq", "prev", "hash", "kind", "time")}
    return ", ".join(f"{name} {fact}" for name, fact in known.items())
