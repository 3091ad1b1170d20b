"""`pactgate audit`: verify and show the audit log. Reads files only; contacts no gateway, changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from pactgate.cli import terminal
from pactgate.cli.call import executed
from pactgate.cli.errors import CommandError
from pactgate.cli.shared_options import config_option, json_option
from pactgate.cli.table import Column, Styled, show_table
from pactgate.core.display import SHORT_ID_CHARS, flat

_EXAMPLES: Final = """\
\b
Examples:
  pactgate audit verify                check the configured log, all its files
  pactgate audit verify audit.jsonl
  pactgate audit show -n 50            show the last 50 records

Exit codes: 0 intact, 1 broken or unreadable, 2 wrong invocation.
"""
_STYLES: Final = {"ok": "green", "tool_error": "yellow"}
CALL_COLUMNS: Final = (
    Column("ID"),
    Column("TIME"),
    Column("TOOL"),
    Column("OUTCOME", is_long=True),
    Column("MS", is_number=True),
    Column("EXECUTED", from_width=90),
    Column("SUBJECT", from_width=100),
)
"""A table of calls, from the audit log or from the gateway. On a terminal, ids and times are short."""
REQUEST_ID_CHARS: Final = 36
_VALUE_CHARS: Final = 40

_file_argument: Final = click.argument("file", metavar="[FILE]", required=False)


@click.group(epilog=_EXAMPLES)
def audit() -> None:
    """Check and read the audit log."""


@audit.command(epilog=_EXAMPLES)
@_file_argument
@config_option
@json_option
def verify(*, file: str | None, config: str | None, as_json: bool) -> int:
    """Check the hash chain of the log.

    Every record is checked, from the first to the last, across all files of the log.

    FILE is the log. Default: audit.file of the configuration. A log with a key is checked with audit.key of the configuration.
    """
    from pactgate.audit.verify import verify_log

    log, key = _existing_log(file, config)
    try:
        verdict = verify_log(log, key)
    except OSError as error:
        raise CommandError(f"{error.filename} can't be read: {error.strerror}.", exit_code=1) from None
    if as_json:
        terminal.say_json({"valid": verdict.is_valid, **msgspec.to_builtins(verdict)})
    else:
        _show_verdict(verdict)
    return 0 if verdict.is_valid else 1


@audit.command(epilog=_EXAMPLES)
@_file_argument
@click.option(
    "--count", "-n", type=click.IntRange(1, 10000), default=20, metavar="N", help="How many records. Default 20."
)
@config_option
@json_option
def show(*, file: str | None, count: int, config: str | None, as_json: bool) -> int:
    """Show the last records, the newest last.

    FILE is the log. Default: audit.file of the configuration.
    """
    from pactgate.audit.verify import files_of, latest

    log, key = _existing_log(file, config)
    try:
        records = latest(files_of(log), count, key)
    except OSError as error:
        raise CommandError(f"{error.filename} can't be read: {error.strerror}.", exit_code=1) from None
    if as_json:
        for record in records:
            print(json.dumps(record))
    else:
        show_table(CALL_COLUMNS, map(_cells, records))
    return 0


def configured_log(config: str | None) -> tuple[Path, bytes]:
    """The log that the configuration names, and its key. Raises CommandError where there is none."""
    from pactgate.cli.config_file import find_config, load_config

    settings = load_config(find_config(config), only=("audit",)).audit
    if settings.file is None:
        raise CommandError(
            "There is no audit log: the configuration has no audit.file.", "Name the file: pactgate audit verify FILE."
        )
    return Path(settings.file), (settings.key or "").encode()


def _existing_log(file: str | None, config: str | None) -> tuple[Path, bytes]:
    """The named log, with the key of a configuration that is named too; else the configured one."""
    from pactgate.audit.verify import files_of

    if file is None:
        log, key = configured_log(config)
    else:
        log, key = Path(file), configured_log(config)[1] if config is not None else b""
    if not files_of(log):
        raise CommandError(f"There is no {log}.", "The gateway creates it when it starts with audit.file.")
    return log, key


def _show_verdict(verdict: Any) -> None:
    files = ", ".join(verdict.files)
    if verdict.is_valid:
        terminal.say(f"The chain is intact: {verdict.records} records, {verdict.calls} calls, in {files}.")
        terminal.say(f"The last record is number {verdict.head.seq}, hash {verdict.head.hash}.")
    for note in verdict.notes:
        terminal.say(f"Note: {note}.")
    if verdict.is_valid:
        return
    lines = [f"  {one.file}:{one.line}: {one.why}" for one in verdict.breaks]
    if verdict.break_count > len(verdict.breaks):
        lines.append(f"  and {verdict.break_count - len(verdict.breaks)} more")
    terminal.problem(
        f"The chain is broken: {verdict.break_count} breaks, {verdict.records} intact records:", "\n".join(lines)
    )


def what(record: Mapping[str, Any]) -> str:
    """What was called or, of any other request, the method and what it names."""
    method, requested = record.get("method"), record.get("requested")
    if method is None:
        return str(record.get("tool") or requested or "")
    return f"{method} {requested or record.get('server') or ''}".strip()


def call_cells(record: Mapping[str, Any]) -> list[Any]:
    outcome = str(record.get("outcome"))
    request_id = str(record.get("requestId"))
    return [
        request_id[:SHORT_ID_CHARS] if terminal.is_terminal(sys.stdout) else request_id,
        _time(record),
        what(record),
        Styled(f"{outcome} {record.get('code') or ''}".strip(), _STYLES.get(outcome, "red")),
        f"{record.get('durationMs', 0):.1f}",
        executed(record.get("verdict")),
        record.get("subject"),
    ]


def _time(record: Mapping[str, Any]) -> str:
    """On a terminal the local time of day, with the date where that is another day."""
    time = str(record.get("time"))
    if not terminal.is_terminal(sys.stdout):
        return time
    try:
        moment = datetime.fromisoformat(time).astimezone()
    except ValueError:
        return time
    is_today = moment.date() == datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def _cells(record: dict[str, Any]) -> list[Any]:
    if record.get("kind") == "change":
        change = f"{flat(str(record.get('old')), _VALUE_CHARS)} -> {flat(str(record.get('new')), _VALUE_CHARS)}"
        return ["", _time(record), f"(setting {record.get('path')})", change, "", "", record.get("subject")]
    if "requestId" not in record:
        return ["", _time(record), f"(log {record.get('kind')})", _log_event(record), "", "", ""]
    return call_cells(record)


def _log_event(record: dict[str, Any]) -> str:
    known = {name: fact for name, fact in record.items() if name not in ("seq", "prev", "hash", "kind", "time")}
    return ", ".join(f"{name} {fact}" for name, fact in known.items())
