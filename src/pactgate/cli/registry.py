"""A server as a registry describes it (`server.json`), made into an entry of the configuration.

The registry is a URL with the API v0.1, or a file. Which package is taken is said, with the exact command; secrets become variables.
Must not: start anything, or trust what the registry says: a person confirms it.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from pactgate.cli.errors import CommandError
from pactgate.config.file_access import read_regular_file
from pactgate.config.problems import UnreadableError
from pactgate.config.sections.openapi import is_url
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import legal_id
from pactgate.core.display import flat
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol import messages
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.http.request_message import HttpTarget, header_block

_MAX_BYTES: Final = 1024 * 1024
_FETCH_S: Final = 30.0
_MAX_WORDS: Final = 256
_SHOWN_CHARS: Final = 2000
_RUNNERS: Final = {
    "npm": ("npx", ["-y"], "{identifier}@{version}"),
    "pypi": ("uvx", [], "{identifier}=={version}"),
    "oci": ("docker", ["run", "-i", "--rm"], "{identifier}"),
}
NewEntry = tuple[str, dict[str, Any], None, tuple[str, ...]]


def read_entry(name: str, registry: str) -> NewEntry:
    """The id, the entry, and what a person has to confirm. Raises CommandError."""
    server = _server(name, _fetch(name, registry) if is_url(registry) else _read(Path(registry)))
    for package in _objects(server.get("packages")):
        if package.get("registryType") in _RUNNERS and _transport(package) == "stdio":
            return _new(name, _of_package(package), f"{package['registryType']} package")
    for remote in _objects(server.get("remotes")):
        if remote.get("type") in ("streamable-http", "sse") and isinstance(remote.get("url"), str):
            headers = _variables(remote.get("headers"))
            transport = {"transport": "sse"} if remote["type"] == "sse" else {}
            return _new(
                name,
                {"url": _literal(remote["url"]), **transport, **({"headers": headers} if headers else {})},
                "remote",
            )
    raise CommandError(
        f"{name} has no package or address that can be used here.", f"Usable: {', '.join(_RUNNERS)}, remotes."
    )


def _new(name: str, entry: dict[str, Any], kind: str) -> NewEntry:
    notes = [f"{name}, {kind}:"]
    if "url" in entry:
        notes.append(f"  calls   {flat(entry['url'], _SHOWN_CHARS)}")
    else:
        notes.append(f"  starts  {flat(shlex.join([entry['command'], *entry.get('args', [])]), _SHOWN_CHARS)}")
    for key in ("env", "headers"):
        notes += [f"  {key:<7} {flat(f'{one}={value}', _SHOWN_CHARS)}" for one, value in entry.get(key, {}).items()]
    return legal_id(name.rpartition("/")[2]), entry, None, tuple(notes)


def _of_package(package: dict[str, Any]) -> dict[str, Any]:
    runner, flags, form = _RUNNERS[package["registryType"]]
    identifier, version = package.get("identifier"), package.get("version")
    if not isinstance(identifier, str) or not identifier or identifier.startswith("-"):
        raise CommandError("The package has no identifier.")
    has_version = isinstance(version, str) and version != "latest"
    word = _literal(form.format(identifier=identifier, version=version) if has_version else identifier)
    env = _variables(package.get("environmentVariables"))
    own = [part for name in env for part in ("-e", name)] if runner == "docker" else []
    command = package.get("runtimeHint") or runner
    args = [*flags, *_words(package.get("runtimeArguments")), *own, word, *_words(package.get("packageArguments"))]
    if command != runner:  # another program than we know: exactly what is said, and nothing of ours
        args = [*_words(package.get("runtimeArguments")), word, *_words(package.get("packageArguments"))]
    entry = {"command": _literal(command), "args": args[:_MAX_WORDS]}
    return {**entry, "env": env} if env else entry


def _words(arguments: Any) -> Iterator[str]:
    for one in _objects(arguments):
        name, value = one.get("name"), one.get("value", one.get("default"))
        if one.get("type") == "named" and isinstance(name, str):
            yield _literal(name)
        if value is not None:
            yield _literal(value)
        elif one.get("isRequired") and one.get("type") != "named":
            yield _variable(str(one.get("valueHint") or name or "VALUE"))


def _variables(given: Any) -> dict[str, str]:
    """A variable or header with its value; one that is secret, or has none and is required, is taken from the environment."""
    found = {}
    for one in _objects(given):
        name, value = one.get("name"), one.get("value", one.get("default"))
        if not isinstance(name, str):
            continue
        if value is not None and not one.get("isSecret"):
            found[name] = _literal(value)
        elif one.get("isRequired") or one.get("isSecret"):
            found[name] = _variable(name)
    return found


def _literal(value: Any) -> str:
    """Text of the registry for our file: a `${NAME}` in it must not read the environment of the gateway."""
    return str(value).replace("${", "$${")


def _variable(name: str) -> str:
    return f"${{{''.join(letter if letter.isalnum() else '_' for letter in name.upper())}}}"


def _transport(package: dict[str, Any]) -> Any:
    transport = package.get("transport")
    return transport.get("type", "stdio") if isinstance(transport, dict) else "stdio"


def _server(name: str, data: bytes) -> dict[str, Any]:
    """The description with this name in a `server.json`, an answer of the API, or a list of them."""
    try:
        root = messages.value(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise CommandError("The registry's answer is not JSON.", exit_code=1) from None
    waiting = _objects(root.get("servers")) if isinstance(root, dict) and "servers" in root else _objects([root])
    for one in waiting:
        server = one.get("server", one)
        if isinstance(server, dict) and server.get("name") == name:
            return server
    raise CommandError(f"The registry has no server {name!r}.", exit_code=1)


def _objects(values: Any) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def _read(path: Path) -> bytes:
    try:
        data = read_regular_file(path, _MAX_BYTES + 1)
    except UnreadableError as problem:
        raise CommandError(f"{path}: {problem.message}", problem.hint) from None
    if len(data) > _MAX_BYTES:
        raise CommandError(f"{path} is larger than {_MAX_BYTES} bytes.")
    return data


def _fetch(name: str, registry: str) -> bytes:
    url = f"{registry.rstrip('/')}/v0.1/servers/{quote(name, safe='')}/versions/latest"
    try:
        return asyncio.run(_get(url))
    except GatewayFailure as failure:
        raise CommandError(f"The registry can't be asked: {failure.message}", exit_code=1) from None
    except TimeoutError:
        raise CommandError(f"The registry did not answer within {_FETCH_S:g} s.", exit_code=1) from None


async def _get(url: str) -> bytes:
    target = HttpTarget("registry", url, network=network_of(ServerConfig(id="registry", url=url)))
    head = header_block([("User-Agent", "pactgate"), ("Accept", "application/json")])
    client = HttpClient()
    try:
        async with asyncio.timeout(_FETCH_S):
            response = await client.request(b"GET", target, head, max_body_bytes=_MAX_BYTES, takes_any=True)
    finally:
        await client.close()
    if response.status != 200:
        raise GatewayFailure(Kind.HTTP_STATUS, f"it answered HTTP {response.status}", operation="add")
    return response.body
