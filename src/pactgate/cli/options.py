"""The options of `serve`, and a reader for the plain case that needs no command tree.

Must not: import anything that takes time, or complain; whatever is not plain is left to the full command line.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_OPTIONS: Final = {
    "--config": "config",
    "-c": "config",
    "--host": "host",
    "--port": "port",
    "--log-level": "log_level",
}


class ServeOptions(NamedTuple):
    """What was given on the command line; None means that the configuration decides."""

    config: str | None = None
    stdio: bool = False
    host: str | None = None
    port: int | None = None
    log_level: str | None = None
    file: str | None = None
    """A file of Python tools to serve alone."""
    admin: bool = False


def parse(words: list[str]) -> ServeOptions | None:
    """The options, if every word is plainly one of them. None leaves help and complaints to the full command line."""
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        field = _OPTIONS.get(name)
        if word in ("--stdio", "--admin"):
            given[word[2:]] = True
        elif word.endswith(".py") and not word.startswith("-") and "file" not in given:
            given["file"] = word
        elif field is None:
            return None
        else:
            given[field] = value if separator else next(rest, "")
            if not given[field]:
                return None
    if "port" in given:
        if not (given["port"].isascii() and given["port"].isdecimal()):
            return None
        given["port"] = int(given["port"])
    return ServeOptions(**given)
