"""The lock file: the approved definitions of all servers, as `pactgate lock` writes and the gateway reads them.

One JSON file beside the configuration, meant for git: sorted, one line per definition, ASCII only, so that invisible characters are seen
in a review. The definitions stand in it whole, for `pactgate lock diff`; the digests decide. Must not: ask a server for anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from pactgate.config.file_access import read_regular_file
from pactgate.config.problems import UnreadableError, show
from pactgate.protocol.canonical_json import as_ascii, canonical, digest_of
from pactgate.protocol.json_limits import find_duplicate_key

MAX_LOCK_BYTES: Final = 64 * 1024 * 1024
LISTS: Final = ("tools", "prompts", "resources", "templates")
_SUFFIX: Final = ".lock"
_HINT: Final = "Restore it, or have a new one written from what servers offer now: `pactgate lock`."
Digest = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]


class LockedDefinition(Struct, frozen=True, forbid_unknown_fields=True):
    """One definition, or the instructions of a server as a JSON string."""

    digest: Digest
    definition: Raw


class LockedServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The approved definitions of one server. `identity` is its command line or address as the configuration has it, before variables are
    filled in, so no secret gets into the file and it is the same on every machine. `name` is what the server calls itself."""

    identity: tuple[str, ...]
    name: str | None = None
    instructions: LockedDefinition | None = None
    tools: dict[str, LockedDefinition] = {}
    prompts: dict[str, LockedDefinition] = {}
    resources: dict[str, LockedDefinition] = {}
    templates: dict[str, LockedDefinition] = {}

    def entries(self, listing: str) -> dict[str, LockedDefinition]:
        lists = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources, "templates": self.templates}
        return lists[listing]

    def pins(self) -> ServerPins:
        return ServerPins(
            identity=self.identity,
            name=self.name,
            instructions=None if self.instructions is None else self.instructions.digest,
            digests={
                listing: {name: entry.digest for name, entry in self.entries(listing).items()} for listing in LISTS
            },
        )


class LockFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says."""

    version: Literal[1] = 1
    servers: dict[str, LockedServer] = {}


class ServerPins(Struct, frozen=True, kw_only=True):
    """What counts of a server: who it is, and the digest of each definition by list and name."""

    identity: tuple[str, ...]
    name: str | None
    instructions: str | None
    digests: dict[str, dict[str, str]]


Pins = Mapping[str, ServerPins]
"""By server."""
_decoder: Final = msgspec.json.Decoder(LockFile)


def lock_path(config: str | Path) -> Path:
    return Path(config).with_suffix(_SUFFIX)


def locked(definition: bytes) -> LockedDefinition:
    return LockedDefinition(digest_of(definition), Raw(definition))


def read_lock(path: Path) -> LockFile:
    """The lock file. Raises UnreadableError, also where a digest is not that of the definition beside it: a reviewer reads the
    definition, and the gateway compares the digest."""
    data = read_regular_file(path, MAX_LOCK_BYTES + 1)
    if len(data) > MAX_LOCK_BYTES:
        raise UnreadableError(f"The lock file is larger than {MAX_LOCK_BYTES} bytes.", "Is it the right file?")
    try:
        lock = _decoder.decode(data)
        twice = find_duplicate_key(data)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise UnreadableError(f"The lock file can't be read: {problem}.", _HINT) from None
    if twice is not None:
        raise UnreadableError(f"The lock file has the key {show(twice)} twice in one object.", _HINT)
    for server, entry in lock.servers.items():
        for name, held in _definitions(entry):
            if digest_of(bytes(held.definition)) != held.digest:
                message = f"The lock file: the digest of {server}.{name} is not that of the definition beside it."
                raise UnreadableError(message, _HINT)
    return lock


def lock_text(lock: LockFile) -> str:
    """The text of the file: sorted, one line per definition."""
    servers = {id_: _server_text(server) for id_, server in sorted(lock.servers.items())}
    return _block({"version": str(lock.version), "servers": _block(servers, "  ")}, "") + "\n"


def _server_text(server: LockedServer) -> str:
    parts = {"identity": _line(server.identity)}
    if server.name is not None:
        parts["name"] = _line(server.name)
    if server.instructions is not None:
        parts["instructions"] = _entry_text(server.instructions)
    for listing in LISTS:
        if entries := server.entries(listing):
            parts[listing] = _block({name: _entry_text(entry) for name, entry in sorted(entries.items())}, "      ")
    return _block(parts, "    ")


def _block(parts: Mapping[str, str], indent: str) -> str:
    lines = ",\n".join(f"{indent}  {_line(name)}: {text}" for name, text in parts.items())
    return f"{{\n{lines}\n{indent}}}" if lines else "{}"


def _entry_text(entry: LockedDefinition) -> str:
    return f'{{"digest": {_line(entry.digest)}, "definition": {as_ascii(canonical(bytes(entry.definition)))}}}'


def _line(value: Any) -> str:
    return json.dumps(value)


def _definitions(server: LockedServer) -> list[tuple[str, LockedDefinition]]:
    own = [("instructions", server.instructions)] if server.instructions is not None else []
    return [*own, *(found for listing in LISTS for found in server.entries(listing).items())]
