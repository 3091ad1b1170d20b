"""Expands `${VAR}`, `${VAR:-default}` and `${file:/path}` in strings. One pass: a value is never expanded again.

`${env:VAR}` is the same as `${VAR}`, as some clients write it; `$${` stands for `${`. Must not: read the process environment or a file
by itself; both are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from pactgate.config.problems import ValueFault, show

_PLACEHOLDER: Final = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_FILE: Final = "file:"
_INSIDE: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


ReadSecret = Callable[[str], str | ValueFault]
"""Reads the secret in a file, by the path a configuration names it with."""


class Expansion(Struct, frozen=True):
    """The expanded text; `taken` are the names and values that came from the environment or from files."""

    text: str
    taken: tuple[tuple[str, str], ...] = ()
    faults: tuple[ValueFault, ...] = ()


def no_secret_files(path: str) -> ValueFault:
    """Refuse every file, where values are no file's."""
    return ValueFault("A file of a secret can only be named in a configuration file.", "Write the value itself.")


def expand(text: str, environ: Mapping[str, str], read_secret: ReadSecret = no_secret_files) -> Expansion:
    if "${" not in text:
        return Expansion(text)
    taken: list[tuple[str, str]] = []
    faults: list[ValueFault] = []

    def fill(match: re.Match[str]) -> str:
        if match["inside"] is None:
            return "${"
        value = _value_of(match, environ, read_secret, taken)
        if isinstance(value, ValueFault):
            faults.append(value)
            return ""
        return value

    return Expansion(_PLACEHOLDER.sub(fill, text), tuple(taken), tuple(faults))


def _value_of(
    match: re.Match[str], environ: Mapping[str, str], read_secret: ReadSecret, taken: list[tuple[str, str]]
) -> str | ValueFault:
    inside = _INSIDE.fullmatch(match["inside"])
    if not match["end"]:
        return ValueFault("A ${ here has no }.", "Write ${NAME}, or $${ for the characters themselves.")
    if match["inside"].startswith(_FILE):
        secret = read_secret(match["inside"].removeprefix(_FILE))
        if isinstance(secret, str):
            taken.append((match["inside"], secret))
        return secret
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
        "Write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for the characters themselves.",
    )
