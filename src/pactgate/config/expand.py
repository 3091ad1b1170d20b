"""Expands `${VAR}` and `${VAR:-default}` in strings. One pass: the value of a variable is never expanded again.

`${env:VAR}` is the same as `${VAR}`, as some clients write it; `$${` stands for `${`. Must not: read the process environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from pactgate.config.problems import ValueFault, show

_PLACEHOLDER: Final = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_INSIDE: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


class Expansion(Struct, frozen=True):
    """The expanded text; `taken` are the names and values that came from the environment."""

    text: str
    taken: tuple[tuple[str, str], ...] = ()
    faults: tuple[ValueFault, ...] = ()


def expand(text: str, environ: Mapping[str, str]) -> Expansion:
    if "${" not in text:
        return Expansion(text)
    taken: list[tuple[str, str]] = []
    faults: list[ValueFault] = []

    def fill(match: re.Match[str]) -> str:
        if match["inside"] is None:
            return "${"
        value = _value_of(match, environ, taken)
        if isinstance(value, ValueFault):
            faults.append(value)
            return ""
        return value

    return Expansion(_PLACEHOLDER.sub(fill, text), tuple(taken), tuple(faults))


def _value_of(match: re.Match[str], environ: Mapping[str, str], taken: list[tuple[str, str]]) -> str | ValueFault:
    inside = _INSIDE.fullmatch(match["inside"])
    if not match["end"]:
        return ValueFault("A ${ here has no }.", "Write ${NAME}, or $${ for the characters themselves.")
    if inside is None:
        return _misspelt(match["inside"])
    name, default = inside["name"], inside["default"]
    if default is not None and "${" in default:
        return ValueFault(f"The default of ${{{name}}} has another ${{ in it.", "A default is a plain string.")
    value = environ.get(name)
    if default is not None and not value:
        return default
    if value is None:
        return ValueFault(
            f"The environment variable {name} is not set.", f"Set it, or give a default as in ${{{name}:-something}}."
        )
    taken.append((name, value))
    return value


def _misspelt(inside: str) -> ValueFault:
    if inside.startswith("input:"):
        return ValueFault(
            f"{show('${' + inside + '}')} is a prompt of an editor, which a gateway does not have.",
            "Put the value in an environment variable and write ${NAME}.",
        )
    return ValueFault(
        f"{show('${' + inside + '}')} is not a variable.",
        "Write ${NAME} or ${NAME:-default}, or $${ for the characters themselves.",
    )
