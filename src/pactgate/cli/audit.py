"""`pactgate audit`: verify and show the audit log. Reads files only; contacts no gateway, changes nothing."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from pactgate.cli import terminal
from pactgate.cli.call import executed
from pactgate.cli.errors import CommandError
from pactgate.cli.logs import earliest_of
from pactgate.cli.shared_options import config_option, json_option
from pactgate.cli.table import Column, Styled, show_table
from pactgate.core.display import SHORT_ID_CHARS, flat

_EXAMPLES: Final = """\
\b
Examples:
  pactgate audit verify                check the configured log, all its files
  pactgate audit verify audit.jsonl
  pactgate audit show -n 50            show the last 50 records
  pactgate audit show --failed --since 1h
  pactgate audit show --caller ops -f  follow one client, until Ctrl-C
  pactgate audit show --format csv > calls.csv

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
_CELL_CHARS: Final = 2000
_PAUSE_S: Final = 0.3
_REFUSALS: Final = ("refused", "rejected")
_FINE: Final = ("ok", "open")
_FORMULA: Final = ("=", "+", "-", "@")
CSV_COLUMNS: Final = (
    *(
        "seq",
        "time",
        "kind",
        "requestId",
        "subject",
        "client",
        "peer",
        "server",
        "tool",
        "requested",
        "method",
        "category",
    ),
    *("outcome", "code", "verdict", "durationMs", "cached", "status", "request", "message"),
)
Writer = Callable[[list[dict[str, Any]]], None]

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
@click.option("--caller", metavar="NAME", help="Only records of this client.")
@click.option("--tool", metavar="NAME", help="Only calls of this tool; * stands for anything, as in files.*.")
@click.option("--failed", is_flag=True, help="Only what failed or was refused.")
@click.option("--since", metavar="TIME", help="Only records of this last while, as 30s, 5m, 2h.")
@click.option("--follow", "-f", is_flag=True, help="Go on with new records until Ctrl-C.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", help="Default table.")
@config_option
@json_option
def show(
    *,
    file: str | None,
    count: int,
    caller: str | None,
    tool: str | None,
    failed: bool,
    since: str | None,
    follow: bool,
    form: str,
    config: str | None,
    as_json: bool,
) -> int:
    """Show the last records, the newest last.

    FILE is the log. Default: audit.file of the configuration.
    """
    from pactgate.audit.verify import files_of, latest
    from pactgate.audit.verify import follow as follow_log

    wanted = RecordFilter(caller=caller, tool=tool, failed=failed, earliest=earliest_of(since))
    writer = _writer("json" if as_json else form)
    log, key = _existing_log(file, config)
    try:
        fresh = follow_log(log, key) if follow else None
        if fresh is not None:
            next(
                fresh
            )  # begins at the end as it is now, so that nothing is written unseen while the last records are read
        last = latest(files_of(log), count, key, wanted.matches if wanted.says_anything else None)
        writer(last)
        if fresh is not None:
            shown = last[-1]["seq"] if last else 0
            _follow(fresh, shown, wanted, writer if writer is not _write_table else _write_lines)
    except OSError as error:
        raise CommandError(f"{error.filename} can't be read: {error.strerror}.", exit_code=1) from None
    return 0


class RecordFilter(Struct, frozen=True):
    """Which records are shown: those that match everything that was asked for."""

    caller: str | None = None
    tool: str | None = None
    failed: bool = False
    earliest: str = ""

    @property
    def says_anything(self) -> bool:
        return self != RecordFilter()

    def matches(self, record: Mapping[str, Any]) -> bool:
        if self.caller is not None and record.get("subject") != self.caller:
            return False
        if self.tool is not None and not fnmatchcase(str(record.get("tool") or record.get("requested")), self.tool):
            return False
        if self.failed and not (record.get("kind") in _REFUSALS or record.get("outcome", "ok") not in _FINE):
            return False
        return str(record.get("time", "")) >= self.earliest


def _follow(fresh: Iterator[dict[str, Any] | None], shown: int, wanted: RecordFilter, write: Writer) -> None:
    """Write what is recorded after the record number `shown`."""
    for record in fresh:
        if record is None:
            time.sleep(_PAUSE_S)
        elif record["seq"] > shown and wanted.matches(record):
            write([record])


def _writer(form: str) -> Writer:
    """Writes records in a form. A table has its head once, CSV too."""
    if form == "json":
        return _write_json
    if form == "csv":
        rows = csv.DictWriter(sys.stdout, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()

        def write(records: list[dict[str, Any]]) -> None:
            rows.writerows({name: safe_cell(record.get(name)) for name in CSV_COLUMNS} for record in records)
            sys.stdout.flush()

        return write
    return _write_table


def _write_json(records: list[dict[str, Any]]) -> None:
    for record in records:
        print(json.dumps(record), flush=True)


def _write_table(records: list[dict[str, Any]]) -> None:
    show_table(CALL_COLUMNS, map(_cells, records))
    sys.stdout.flush()


def _write_lines(records: list[dict[str, Any]]) -> None:
    """Records one by one, as they come: there is no table to align them to."""
    for record in records:
        terminal.say("  ".join(str(cell.text if isinstance(cell, Styled) else cell) for cell in _cells(record) if cell))
        sys.stdout.flush()


def safe_cell(value: Any) -> str:
    """A cell that no spreadsheet takes for a formula, and no control character gets through."""
    if value is None:
        return ""
    text = flat(value if isinstance(value, str) else json.dumps(value), _CELL_CHARS)
    return f"'{text}" if text[:1] in _FORMULA else text


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
