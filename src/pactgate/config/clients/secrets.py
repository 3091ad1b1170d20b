"""Finds credentials that are written into an entry, and replaces them by variables. Pure.

What is taken for a credential is decided by the name of its variable, header, flag or query parameter, or by the form of its value. Must
not: repeat a credential in a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pactgate.config.validate import CREDENTIAL_NAME

_FORMS: Final = re.compile(
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|ntn_\w{20,}|lin_api_\w{20,}|pg_\w{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"(?<=://)[^/:@\s]*:(?P<secret>[^/@\s]+)(?=@)")
_QUERY: Final = re.compile(r"[?&](?P<name>[^?=&#]+)=(?P<secret>[^&#]+)")
"""Linear: each part ends at the first character with which another may begin."""
_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


class SecretFinder:
    """Replaces the credentials of several entries. `values` has each by the variable that stands for it now."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.values = dict(known)

    def replace_in(self, server: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The entry without credentials."""
        done = dict(entry)
        if "env" in entry:
            done["env"] = {name: self._named(server, name, value, name) for name, value in entry["env"].items()}
        if "headers" in entry:
            done["headers"] = {name: self._header(server, name, value) for name, value in entry["headers"].items()}
        if "args" in entry:
            done["args"] = list(self._arguments(server, entry["args"]))
        if "url" in entry:
            done["url"] = self._url(server, entry["url"])
        return done

    def _named(self, server: str, name: str, value: str, variable: str) -> str:
        if "${" in value or not value:
            return value
        if not (CREDENTIAL_NAME.search(name) or _is_one(value)):
            return self._url(server, value) if "://" in value else value
        return self._keep(server, variable, value)

    def _header(self, server: str, name: str, value: str) -> str:
        if "${" in value or not (name.lower() in _HEADERS or CREDENTIAL_NAME.search(name) or _is_one(value)):
            return value
        scheme = _SCHEME.match(value)
        start = scheme.end() if scheme else 0
        return value[:start] + self._keep(server, f"{server}_{'token' if scheme else name}", value[start:])

    def _arguments(self, server: str, args: list[str]) -> Iterator[str]:
        flag = ""
        for argument in args:
            name, equals, value = argument.partition("=")
            if flag and not argument.startswith("-"):
                yield self._named(server, flag, argument, f"{server}_{flag}")
            elif equals and (name.startswith("-") or name.isidentifier()):
                yield f"{name}={self._named(server, name, value, f'{server}_{name}')}"
            else:
                yield self._named(server, "", argument, f"{server}_token")
            flag = argument if argument.startswith("-") and not equals else ""

    def _url(self, server: str, url: str) -> str:
        def user(match: re.Match[str]) -> str:
            kept = self._keep(server, f"{server}_password", match["secret"])
            return match[0][: match.start("secret") - match.start()] + kept

        def parameter(match: re.Match[str]) -> str:
            kept = self._named(server, match["name"], match["secret"], f"{server}_{match['name']}")
            return match[0][: match.start("secret") - match.start()] + kept

        return _QUERY.sub(parameter, url if "${" in url else _USER_INFO.sub(user, url))

    def _keep(self, server: str, wanted: str, value: str) -> str:
        name = _variable(wanted)
        if self.values.get(name, value) != value:
            name = _variable(f"{server}_{wanted}")
        number = 2
        while self.values.get(name, value) != value:
            name, number = f"{_variable(wanted)}_{number}", number + 1
        self.values[name] = value
        return f"${{{name}}}"


def _is_one(value: str) -> bool:
    return _FORMS.fullmatch(value.strip()) is not None


def _variable(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()
