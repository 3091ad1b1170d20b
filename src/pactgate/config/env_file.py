"""Reads and writes files of `NAME=VALUE` lines, as `envFile` names them.

The usual form: `export` before a name, comments, values in single quotes as they are, in double quotes with escapes. Must not: expand
variables in values, or repeat a value in a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pactgate.config.problems import ValueFault

_LINE: Final = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*
        (?:'(?P<plain>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^#'"\s](?:[^#]|(?<!\s)\#)*?)?)(?:\s+\#.*)?\s*""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_BARE: Final = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")


def parse_env_file(text: str) -> dict[str, str] | ValueFault:
    """The variables; a name given twice has its last value."""
    variables: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            return ValueFault(f"Line {number} is not NAME=VALUE.", "Put a value with spaces or # in quotes.")
        if (quoted := match["quoted"]) is not None:
            variables[match["name"]] = _ESCAPE.sub(lambda one: _ESCAPED.get(one[1], one[1]), quoted)
        else:
            variables[match["name"]] = match["plain"] if match["plain"] is not None else match["bare"] or ""
    return variables


def with_variables(text: str, variables: Mapping[str, str]) -> str:
    """The text of the file with these variables, each behind what is there and in place of its older value."""
    kept = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        match = _LINE.fullmatch(line)
        if match is None or match["name"] not in variables:
            kept.append(line)
    return "\n".join([*kept, *(f"{name}={_spelled(value)}" for name, value in variables.items()), ""])


def _spelled(value: str) -> str:
    if _BARE.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
