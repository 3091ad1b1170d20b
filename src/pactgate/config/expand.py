"""Expands `${VAR}`, `${VAR:-default}` and `${file:/path}` in strings. One pass: a value is never expanded again.

Clients' spellings are understood: `${env:VAR}` is `${VAR}`, and `${input:some-id}` is `${SOME_ID}`. `$${` stands for `${`.
Must not: read the process environment or a file by itself; both are handed in.
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
_INPUT: Final = "input:"


ReadSecret = Callable[[str], str | ValueFault]
"""Reads the secret in a file, by the path a configuration names it with."""


class Expansion(Struct, frozen=True):
    """The expanded text; `taken` are the names and values that came from the environment or from files.

    `missing` are the faults of variables that are not set and of files that can't be read; `faults` are all others.
    """

    text: str
    taken: tuple[tuple[str, str], ...] = ()
    faults: tuple[ValueFault, ...] = ()
    missing: tuple[ValueFault, ...] = ()


def no_secret_files(path: str) -> ValueFault:
    """Refuse every file, where values are no file's."""
    return ValueFault("A file of a secret can only be named in a configuration file.", "Write the value itself.")


def expand(text: str, environ: Mapping[str, str], read_secret: ReadSecret = no_secret_files) -> Expansion:
    if "${" not in text:
        return Expansion(text)
    taken: list[tuple[str, str]] = []
    faults: list[ValueFault] = []
    missing: list[ValueFault] = []

    def fill(match: re.Match[str]) -> str:
        if match["inside"] is None:
            return "${"
        fault = _fault_of(match)
        if fault is not None:
            faults.append(fault)
            return ""
        value = _value_of(match["inside"], environ, read_secret, taken)
        if isinstance(value, ValueFault):
            missing.append(value)
            return ""
        return value

    return Expansion(_PLACEHOLDER.sub(fill, text), tuple(taken), tuple(faults), tuple(missing))


def _fault_of(match: re.Match[str]) -> ValueFault | None:
    """What is wrong with a placeholder, whatever the environment."""
    inside = _INSIDE.fullmatch(match["inside"])
    if not match["end"]:
        return ValueFault("A ${ here has no }.", "Write ${NAME}, or $${ for the characters themselves.")
    if match["inside"].startswith((_FILE, _INPUT)):
        return None
    if inside is None:
        return _misspelt(match["inside"])
    if "${" in (inside["default"] or ""):
        return ValueFault(
            f"The default of ${{{inside['name']}}} has another ${{ in it.", "A default is a plain string."
        )
    return None


def _value_of(
    inside: str, environ: Mapping[str, str], read_secret: ReadSecret, taken: list[tuple[str, str]]
) -> str | ValueFault:
    if inside.startswith(_FILE):
        secret = read_secret(inside.removeprefix(_FILE))
        if isinstance(secret, str):
            taken.append((inside, secret))
        return secret
    if inside.startswith(_INPUT):
        return _asked_for(inside, environ, taken)
    found = _INSIDE.fullmatch(inside)
    assert found is not None, "a placeholder without a fault is a variable or a file"
    name, default = found["name"], found["default"]
    value = environ.get(name)
    if default is not None and not value:
        return str(default)
    if value is None:
        return ValueFault(
            f"The environment variable {name} is not set.", f"Set it, or give a default as in ${{{name}:-something}}."
        )
    taken.append((name, value))
    return value


def input_variable(id_: str) -> str:
    """The variable that stands for what an editor asks its user under this id."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", id_).strip("_").upper()
    return name if name[:1].isalpha() else f"INPUT_{name}"


def _asked_for(inside: str, environ: Mapping[str, str], taken: list[tuple[str, str]]) -> str | ValueFault:
    name = input_variable(inside.removeprefix(_INPUT))
    value = environ.get(name)
    if value is None:
        return ValueFault(
            f"An editor asks its user for {show('${' + inside + '}')}; a gateway takes it from the environment.",
            f"Set {name}.",
        )
    taken.append((name, value))
    return value


def _misspelt(inside: str) -> ValueFault:
    return ValueFault(
        f"{show('${' + inside + '}')} is not a variable.",
        "Write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for the characters themselves.",
    )
