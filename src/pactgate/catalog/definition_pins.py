"""Compares what servers offer with the lock file, and holds back what differs (`lock.mode`).

A list is compared when it is taken over, never at a call: what is held back is in no list, so no name finds it. A definition that the lock
file does not have counts like a changed one, because a tool that is renamed is a new one to everybody who approved it. Resources come and
go with what they show, so a new resource is no difference; a changed one is. Bounded by what a server may list.
Must not: change a definition, or read the lock file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pactgate.catalog.discovery import DiscoveredEntry, DiscoveredLists
from pactgate.catalog.index import SEPARATORS, exposed_name
from pactgate.catalog.uris import MARK
from pactgate.config.definition_lock import LISTS, Pins, ServerPins
from pactgate.config.sections.lock import LockMode
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import cut
from pactgate.core.events import DefinitionsDiffered, Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.canonical_json import digest_of
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.negotiate import Identity

Change = Literal["unknown", "changed", "removed"]
SERVER: Final = "server"
INSTRUCTIONS: Final = "instructions"
_NAMED: Final = 20
_NAME_CHARS: Final = 100
_ADVICE: Final = "`pactgate lock diff {0}` shows it, `pactgate lock accept {0}` approves it."


class LockFinding(NamedTuple):
    """One difference. `entries` is a list, `instructions`, or `server` for another command, address or name of the server."""

    server: str
    entries: str
    name: str
    change: Change

    @property
    def full_name(self) -> str:
        return self.server if self.entries == SERVER else f"{self.server}.{self.name}"

    @property
    def is_held(self) -> bool:
        return self.change != "removed"

    def __str__(self) -> str:
        if self.entries == SERVER:
            what = (
                "is not in the lock file"
                if self.change == "unknown"
                else f"has another {self.name} than in the lock file"
            )
            return f"{self.server} {what}. {_ADVICE.format(self.server)}"
        kind = "" if self.entries == INSTRUCTIONS else f" ({self.entries})"
        said = {"unknown": "is not in", "changed": "is not as in", "removed": "is only in"}[self.change]
        return f"{cut(self.name, _NAME_CHARS)}{kind} {said} the lock file. {_ADVICE.format(self.full_name)}"


def name_of(identity: Identity) -> str | None:
    """What a server calls itself."""
    name = identity.server_info.get("name")
    return name if isinstance(name, str) else None


def identity_of(config: ServerConfig, identity: Identity) -> tuple[str, ...]:
    """Who a server is: as the configuration has it, and who signs the gateway in there, where the configuration does not say."""
    is_said = identity.issuer is None or identity.issuer in config.identity
    return config.identity if is_said else (*config.identity, identity.issuer or "")


def lists_of(found: DiscoveredLists) -> dict[str, tuple[DiscoveredEntry, ...]]:
    return {"tools": found.tools, "prompts": found.prompts, "resources": found.resources, "templates": found.templates}


def compare(server: str, approved: ServerPins | None, offered: ServerPins) -> tuple[LockFinding, ...]:
    """The differences, those of the whole server first."""
    if approved is None:
        return (LockFinding(server, SERVER, "", "unknown"),)
    found: list[LockFinding] = []
    if approved.identity != offered.identity:
        found.append(LockFinding(server, SERVER, "command, address or issuer", "changed"))
    if approved.name != offered.name:
        found.append(LockFinding(server, SERVER, "name", "changed"))
    if approved.instructions != offered.instructions:
        found.append(LockFinding(server, INSTRUCTIONS, INSTRUCTIONS, "changed"))
    for listing in LISTS:
        found += _compare_list(server, listing, approved.digests[listing], offered.digests[listing])
    return tuple(found)


def _compare_list(
    server: str, listing: str, approved: Mapping[str, str], offered: Mapping[str, str]
) -> list[LockFinding]:
    comes_and_goes = listing == "resources"
    found = []
    for name in sorted(approved.keys() | offered.keys()):
        if name not in approved:
            change: Change = "unknown"
        elif name not in offered:
            change = "removed"
        elif approved[name] != offered[name]:
            change = "changed"
        else:
            continue
        if change == "changed" or not comes_and_goes:
            found.append(LockFinding(server, listing, name, change))
    return found


class _Checked(NamedTuple):
    """The last comparison of one server: of what, and what came of it."""

    identity: Identity
    found: DiscoveredLists
    findings: tuple[LockFinding, ...]
    admitted: DiscoveredLists


class Pinning(Struct, frozen=True):
    """What the lock file says, and what to do where servers differ from it."""

    mode: LockMode = "off"
    pins: Pins | None = None


class DefinitionGuard:
    """Compares and filters the lists of all servers."""

    def __init__(self, pinning: Pinning, emit: Emit, separator: str) -> None:
        self._mode = pinning.mode
        self._pins = pinning.pins or {}
        self._emit = emit
        self._separator = SEPARATORS[separator]
        self._checked: dict[str, _Checked] = {}
        self._digests: dict[str, dict[str, str]] = {}
        """Canonical digests by server and digest of the bytes: an unchanged definition is read once."""

    @property
    def compares(self) -> bool:
        """Whether there is anything to compare definitions with."""
        return self._mode != "off"

    @property
    def _holds(self) -> bool:
        return self._mode in ("hold", "refuse")

    def admit(self, config: ServerConfig, identity: Identity | None, found: DiscoveredLists) -> DiscoveredLists:
        """What may be listed of a server. Returns the same object while the server offers the same."""
        last = self._checked.get(config.id)
        identity = identity or (last.identity if last is not None else None)
        if identity is None:
            return found
        if last is None or last.identity is not identity or last.found is not found:
            findings = compare(config.id, self._pins.get(config.id), self._offered(config, identity, found))
            admitted = self._without_held(found, findings)
            same = last is not None and last.admitted == admitted
            self._checked[config.id] = _Checked(identity, found, findings, last.admitted if last and same else admitted)
            if findings and (last is None or last.findings != findings):
                names = tuple(cut(one.name or one.server, _NAME_CHARS) for one in findings[:_NAMED])
                self._emit(DefinitionsDiffered(config.id, self._mode, len(findings), names))
        return self._checked[config.id].admitted

    def admit_own(self, config: ServerConfig, identity: Identity, found: DiscoveredLists) -> DiscoveredLists:
        """The same for the lists of one caller's own session, which say nothing about the server as such."""
        return self._without_held(
            found, compare(config.id, self._pins.get(config.id), self._offered(config, identity, found))
        )

    def keep(self, servers: Mapping[str, Any]) -> None:
        """Forget the servers that are not among these."""
        for held in (self._checked, self._digests):
            for id_ in held.keys() - servers.keys():
                del held[id_]

    def findings(self, server: str) -> tuple[LockFinding, ...]:
        checked = self._checked.get(server)
        return () if checked is None else checked.findings

    def why_held(self, server: str) -> str | None:
        """Why the whole server is held back; None if it is not."""
        if not self._holds:
            return None
        held = [
            one for one in self.findings(server) if one.entries == SERVER or (self._mode == "refuse" and one.is_held)
        ]
        return f"held back: {held[0]}" if held else None

    def hides_instructions(self, server: str) -> bool:
        return self._holds and any(one.entries in (SERVER, INSTRUCTIONS) for one in self.findings(server))

    def require(self, server: str) -> None:
        """Raise if the whole server is held back."""
        why = self.why_held(server)
        if why is not None:
            raise GatewayFailure(Kind.DEFINITION_CHANGED, f"{server} is {why}", server=server)

    def require_named(self, listing: str, name: str, scope: str | None) -> None:
        """Raise if a name that no list has means an entry that is held back."""
        if not self._holds:
            return
        for server in self._checked if scope is None else [scope]:
            for one in self.findings(server):
                if one.entries == listing and one.is_held and name in self._spellings(one, scope):
                    message = f"{one.full_name} is held back: its definition is not as in the lock file."
                    raise GatewayFailure(
                        Kind.DEFINITION_CHANGED,
                        f"{message} {_ADVICE.format(one.full_name)}",
                        server=server,
                        tool=one.name if listing == "tools" else None,
                    )

    def _spellings(self, one: LockFinding, scope: str | None) -> tuple[str, ...]:
        if scope is not None:
            return (one.name,)
        if one.entries in ("resources", "templates"):
            return (one.name, f"{one.server}{MARK}{one.name}")
        exposed = exposed_name(one.server, one.name, self._separator)
        return (one.name, one.full_name, f"{one.server}__{one.name}", exposed)

    def _without_held(self, found: DiscoveredLists, findings: tuple[LockFinding, ...]) -> DiscoveredLists:
        if not self._holds or not any(one.is_held for one in findings):
            return found
        if self._mode == "refuse" or findings[0].entries == SERVER:
            return DiscoveredLists(left_out=found.left_out, failed=found.failed)
        held = {listing: {one.name for one in findings if one.entries == listing} for listing in LISTS}
        return replace(
            found,
            tools=tuple(tool for tool in found.tools if tool.key not in held["tools"]),
            prompts=tuple(entry for entry in found.prompts if entry.key not in held["prompts"]),
            resources=tuple(entry for entry in found.resources if entry.key not in held["resources"]),
            templates=tuple(entry for entry in found.templates if entry.key not in held["templates"]),
        )

    def _offered(self, config: ServerConfig, identity: Identity, found: DiscoveredLists) -> ServerPins:
        known = self._digests.get(config.id, {})
        digests = {
            entry.digest: known.get(entry.digest) or digest_of(entry.definition)
            for entries in lists_of(found).values()
            for entry in entries
        }
        self._digests[config.id] = digests
        return ServerPins(
            identity=identity_of(config, identity),
            name=name_of(identity),
            instructions=None if identity.instructions is None else digest_of(encode_json(identity.instructions)),
            digests={
                listing: {entry.key: digests[entry.digest] for entry in entries}
                for listing, entries in lists_of(found).items()
            },
        )
