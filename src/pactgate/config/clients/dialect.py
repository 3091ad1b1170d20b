"""Translates entries between a client's dialect and ours. Pure.

Variables keep their meaning: `$NAME`, `${env:NAME}`, `{env:NAME}` and `${input:id}` become `${NAME}`, and a text that only looks like a
variable of ours is escaped. Must not: drop a member in silence; what is not taken over is a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pactgate.config.clients.table import Client
from pactgate.config.expand import input_variable

_PLACEHOLDER: Final = re.compile(
    r"\$\{(?P<inside>[^}]*)\}|\{env:(?P<env>[A-Za-z_]\w*)\}|\{file:(?P<file>[^}]+)\}|\$(?P<plain>[A-Za-z_]\w*)"
)
_OURS: Final = re.compile(r"(?:env:)?([A-Za-z_]\w*)(:-.*)?", re.DOTALL)
_ADDRESSES: Final = ("httpUrl", "serverUrl", "uri", "url")
_UNUSED: Final = frozenset(
    {
        "alwaysAllow",
        "autoApprove",
        "bundled",
        "dev",
        "display_name",
        "enabled",
        "disabled",
        "gallery",
    }
    | {"id", "inputs", "metadata", "name", "oauth", "source", "transport", "transportType", "trust", "type", "version"}
)
"""Members that say nothing about how a server is reached, or that are read elsewhere here."""
_CHOICES: Final = {
    "includeTools": ("includeTools", "enabled_tools", "allowedTools", "available_tools", "tools"),
    "excludeTools": ("excludeTools", "disabledTools", "disabled_tools"),
}
"""Which tools a client shows, in the words of clients."""
_NOT_MCP: Final = frozenset({"builtin", "platform", "frontend", "inline_python"})


class OurEntry(NamedTuple):
    """An entry for our file. `notes` say what was not taken over; `asked_for` are variables that the client asks its user for."""

    entry: dict[str, Any]
    notes: tuple[str, ...] = ()
    asked_for: tuple[str, ...] = ()


def to_ours(client: Client, given: Mapping[str, Any], folder: Path) -> OurEntry | None:
    """None where the entry is no MCP server that can be reached. `folder` is what `${workspaceFolder}` means."""
    kind = given.get("type")
    if isinstance(kind, str) and kind in _NOT_MCP:
        return None
    reader = _Reader(client, given, folder)
    address = next((key for key in _ADDRESSES if isinstance(given.get(key), str)), None)
    entry = reader.program() if address is None else reader.address(address)
    if entry is None:
        return None
    if given.get("enabled") is False or given.get("disabled") is True:
        entry["enabled"] = False
    entry |= reader.choices()
    return OurEntry(entry, tuple(reader.notes()), tuple(reader.asked_for))


def to_address(client: Client, url: str, token_variable: str | None) -> dict[str, Any]:
    """The client's entry for the gateway at a URL; the client takes the token from this variable of its environment."""
    assert client.url is not None, "the client takes addresses"
    entry: dict[str, Any] = {**client.fixed, client.url: url}
    if token_variable is None:
        return entry
    if client.token_variable:
        return {**entry, client.token_variable: token_variable}
    assert client.variable is not None, "the client knows variables"
    return with_token(client, entry, client.variable.replace("NAME", token_variable))


def with_token(client: Client, entry: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The entry with a header that has this token."""
    headers: Any = {"Authorization": f"Bearer {token}"}
    for key in reversed(client.headers):
        headers = {key: headers}
    return {**entry, **headers}


def to_program(client: Client, argv: Sequence[str]) -> dict[str, Any]:
    """The client's entry for a gateway that the client starts itself."""
    if client.program == "array":
        return {**client.program_fixed, "command": list(argv)}
    names = ("cmd", "args") if client.program == "goose" else ("command", "args")
    return {**client.program_fixed, names[0]: argv[0], names[1]: list(argv[1:])}


class _Reader:
    """Reads one entry of a client."""

    def __init__(self, client: Client, given: Mapping[str, Any], folder: Path) -> None:
        self._client = client
        self._given = given
        self._folder = folder
        self._read: set[str] = set()
        self.asked_for: dict[str, None] = {}

    def program(self) -> dict[str, Any] | None:
        given = self._given
        command = self._take("command", "cmd")
        args, env = self._take("args"), self._take("env", "environment", "envs")
        if isinstance(command, dict):  # Zed, before 2025
            args, env, command = command.get("args"), command.get("env"), command.get("path")
        if isinstance(command, list) and command:
            command, args = command[0], command[1:]
        if not isinstance(command, str) or not command:
            return None
        entry: dict[str, Any] = {"command": self._text(command)}
        if isinstance(args, list) and args:
            entry["args"] = [self._text(str(one)) for one in args]
        if isinstance(env, dict) and env:
            entry["env"] = self._texts(env)
        names = self._take("env_keys")
        if isinstance(names, list) and names:  # Goose keeps the values in a keyring
            entry["env"] = {**entry.get("env", {}), **{str(name): self._asked(str(name)) for name in names}}
        for member in ("cwd", "envFile"):
            if isinstance(path := self._take(member), str) and path:
                entry[member] = self._path(path)
        if isinstance(given.get("description"), str):
            self._read.add("description")
        return entry

    def address(self, key: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"url": self._text(str(self._take(key)))}
        kind = str(self._given.get("type") or self._given.get("transport") or "")
        if kind == "sse" or (key == "url" and self._client.url == "httpUrl" and kind != "http"):
            entry["transport"] = "sse"
        headers = self._texts(self._headers())
        named = self._take("env_http_headers")
        if isinstance(named, dict):
            headers |= {name: f"${{{variable}}}" for name, variable in named.items()}
        if isinstance(variable := self._take("bearer_token_env_var"), str):
            headers["Authorization"] = f"Bearer ${{{variable}}}"
        if headers:
            entry["headers"] = headers
        return entry

    def choices(self) -> dict[str, list[str]]:
        """The tools that the client shows, and those that it does not."""
        chosen: dict[str, list[str]] = {}
        for ours, names in _CHOICES.items():
            for name in names:
                tools = self._given.get(name)
                if isinstance(tools, list) and all(isinstance(one, str) for one in tools):
                    self._read.add(name)
                    if tools and tools != ["*"]:
                        chosen.setdefault(ours, []).extend(tools)
        return chosen

    def notes(self) -> list[str]:
        left = [
            key
            for key, value in self._given.items()
            if key not in self._read | _UNUSED and key != "description" and value not in (None, {}, [])
        ]
        return [f"not taken over: {', '.join(left)}"] if left else []

    def _headers(self) -> dict[str, Any]:
        held: Any = self._given
        for key in self._client.headers:
            self._read.add(key)
            held = held.get(key) if isinstance(held, dict) else None
        usual = self._take("headers")
        return {**(usual if isinstance(usual, dict) else {}), **(held if isinstance(held, dict) else {})}

    def _take(self, *names: str) -> Any:
        self._read.update(names)
        return next((self._given[name] for name in names if self._given.get(name) is not None), None)

    def _texts(self, given: Mapping[str, Any]) -> dict[str, str]:
        return {str(name): self._text(str(value)) for name, value in given.items() if value is not None}

    def _text(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._ours, text)

    def _ours(self, match: re.Match[str]) -> str:
        inside = match["inside"]
        if inside is None:
            if match["file"]:
                return f"${{file:{match['file']}}}"
            is_variable = match["env"] or self._client.dollar
            return f"${{{match['env'] or match['plain']}}}" if is_variable else match[0]
        known = {
            "workspaceFolder": str(self._folder),
            "workspaceFolderBasename": self._folder.name,
            "userHome": "${HOME}",
            "pathSeparator": "/",
            "/": "/",
        }
        if inside in known:
            return known[inside]
        if inside.startswith("input:"):
            return self._asked(input_variable(inside.removeprefix("input:")))
        found = _OURS.fullmatch(inside)
        return f"${{{found[1]}{found[2] or ''}}}" if found else f"$${{{inside}}}"

    def _path(self, text: str) -> str:
        """A path from the folder of the project; one that begins with a variable is left as it is."""
        path = self._text(text)
        return path if path.startswith("${") else str(self._folder / path)

    def _asked(self, name: str) -> str:
        self.asked_for[name] = None
        return f"${{{name}}}"
