"""The baseline: failures that are known and accepted for now. A list of rules, optionally for one server and with a reason.

A YAML or JSON file: `server:` with a list, or the list alone; an entry is a code, or an object with `rule_id` and optionally
`server_label`, `reason` and `tracking`. An entry whose rule passes is stale and fails the run, so the file stays current.
Must not: check captures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pactgate.config.problems import ConfigFindings
from pactgate.config.reader import Format, read
from pactgate.conformance.report import BaselineEntry
from pactgate.conformance.selection import BY_CODE

_MEMBERS: Final = frozenset({"rule_id", "server_label", "reason", "tracking"})


class BaselineError(Exception):
    """The file can't be read as a baseline."""


def load(path: Path) -> tuple[BaselineEntry, ...]:
    value = read_plain(path)
    entries = value.get("server") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise BaselineError(f"{path}: a baseline is a list of rules, or has one under `server`.")
    return tuple(_entry(path, number, entry) for number, entry in enumerate(entries))


def read_plain(path: Path) -> Any:
    """The values of a small YAML or JSON file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise BaselineError(f"{path} can't be read: {problem.strerror or problem}.") from None
    except UnicodeDecodeError:
        raise BaselineError(f"{path} is not UTF-8.") from None
    found = ConfigFindings(str(path))
    value = read(text, Format.YAML, found)
    if found.problems:
        raise BaselineError("; ".join(map(str, found.problems)))
    return value


def _entry(path: Path, number: int, entry: Any) -> BaselineEntry:
    fields = {"rule_id": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, dict) or not fields.keys() <= _MEMBERS:
        raise BaselineError(f"{path}: entry {number} must be a rule, or have {', '.join(sorted(_MEMBERS))}.")
    if not all(isinstance(text, str) for text in fields.values()):
        raise BaselineError(f"{path}: the members of entry {number} must be strings.")
    code = fields.get("rule_id", "").upper()
    if code not in BY_CODE:
        raise BaselineError(f"{path}: entry {number} names no rule: {fields.get('rule_id')!r}.")
    return BaselineEntry(code, fields.get("server_label"), fields.get("reason"), fields.get("tracking"))
