"""Discovery of one server: fetches all pages of its tools, prompts, resources and templates, within bounds.

Definitions stay the bytes that the server sent. A malformed entry is skipped and does not hide the others. A server without prompts or
resources, or one that fails to list them, still has its tools. Each page is read before the next one is asked for, so the gateway never
holds more than one page beside the definitions it keeps.
Enforces the per-server half of S0/ECO-001 and S0/ECO-002, and refuses harmful schemas (S0/ECO-300).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from pactgate.core.contract import Contract
from pactgate.core.display import cut
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import SchemaCheck
from pactgate.policy.contracts import read_contract, without_contract
from pactgate.policy.schema.validation import LazySchema, Schema, compile_schema
from pactgate.protocol import headers, messages
from pactgate.protocol.cache_hints import STALE, Hint, read_hint, together
from pactgate.protocol.headers import HeaderParam
from pactgate.protocol.json_limits import find_duplicate_key
from pactgate.upstreams.dialer import Session

MAX_PAGES: Final = 1000
MAX_ENTRIES: Final = 10_000
MAX_NAME_CHARS: Final = 256
MAX_URI_CHARS: Final = 8192
MAX_DEFINITION_BYTES: Final = 512 * 1024
MAX_TEXT_BYTES: Final = 64 * 1024
"""Of one title or description: several times what servers write, and more than a model should read before it chooses a tool."""
MAX_LIST_BYTES: Final = 4 * 1024 * 1024
"""The definitions of one list. Every client gets them in one message, and four MiB are about a million tokens for a model."""
MAX_RAW_BYTES: Final = 16 * 1024 * 1024
"""All pages of one list as they arrived, with the entries that are skipped."""
MAX_PAGE_COMMAS: Final = 400_000
"""A bound for the number of values in a page before it is decoded: an entry of one byte takes a hundred bytes of memory."""
MAX_LEFT_OUT: Final = 50
_LENIENT_MARK: Final = b'"outputValidation":"warn"'
_REASON_CHARS: Final = 200
_AT_ONCE: Final = 16


class ListMethod(NamedTuple):
    """A list method, the member of its result with the entries, the capability it needs, and the member that names an entry."""

    method: str
    member: str
    capability: str
    key: str


TOOLS: Final = ListMethod("tools/list", "tools", "tools", "name")
PROMPTS: Final = ListMethod("prompts/list", "prompts", "prompts", "name")
RESOURCES: Final = ListMethod("resources/list", "resources", "resources", "uri")
TEMPLATES: Final = ListMethod("resources/templates/list", "resourceTemplates", "resources", "uriTemplate")


class DiscoveredEntry(Struct, frozen=True):
    """An entry of a list as its server defines it. `key` is its name or URI."""

    key: str
    definition: bytes
    digest: str


class DiscoveredTool(DiscoveredEntry, frozen=True):
    input_check: SchemaCheck | None = None
    output_check: SchemaCheck | None = None
    annotations: dict[str, Any] = {}
    header_params: tuple[HeaderParam, ...] = ()
    contract: Contract | None = None
    """Read only from the gateway's own tool runner: any other server could claim anything in its `_meta`."""


class DiscoveredLists(Struct, frozen=True):
    """The lists of one server, in `left_out` the reasons for skipped entries, and in `failed` those for whole lists that are missing."""

    tools: tuple[DiscoveredTool, ...] = ()
    prompts: tuple[DiscoveredEntry, ...] = ()
    resources: tuple[DiscoveredEntry, ...] = ()
    templates: tuple[DiscoveredEntry, ...] = ()
    left_out: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


Hints = dict[str, Hint]
"""The cache hint of each list, by method."""


async def discover(
    session: Session, known: DiscoveredLists | None = None, hints: Hints | None = None
) -> DiscoveredLists:
    """All lists of a connected server, each in the order of its names or URIs, whatever the order of the server. The caller sets the time
    limit.

    Tools with the same definition as in `known` are taken from there. `hints` receives the cache hints of the server.
    """
    skipped = _Skipped(session.left_out)
    told: Hints = {} if hints is None else hints
    definitions = await _ask(session, TOOLS, skipped, told)
    before = {tool.digest: tool for tool in known.tools} if known is not None else {}
    tools = await _read_tools(
        definitions, before, skipped, drops_bad_headers=session.is_modern_http, has_contracts=session.is_ours
    )
    failed: list[str] = []
    prompts, resources, templates = await asyncio.gather(
        *(_ask_leniently(session, listing, skipped, failed, told) for listing in (PROMPTS, RESOURCES, TEMPLATES))
    )
    return DiscoveredLists(
        tools=tools,
        prompts=prompts,
        resources=resources,
        templates=templates,
        left_out=(*failed, *skipped.reasons()),
        failed=tuple(failed),
    )


async def read_lists(
    tools: Iterable[bytes], prompts: Iterable[bytes], resources: Iterable[bytes], templates: Iterable[bytes]
) -> DiscoveredLists:
    """The lists of a server on stdio from definitions that were discovered before. Raises msgspec.DecodeError."""
    skipped = _Skipped(())
    return DiscoveredLists(
        tools=await _read_tools(_known(TOOLS, tools), {}, skipped, drops_bad_headers=False, has_contracts=False),
        prompts=_known(PROMPTS, prompts),
        resources=_known(RESOURCES, resources),
        templates=_known(TEMPLATES, templates),
        left_out=skipped.reasons(),
    )


def _known(listing: ListMethod, definitions: Iterable[bytes]) -> tuple[DiscoveredEntry, ...]:
    found = []
    for definition in definitions:
        raw = Raw(definition)
        key = _key(raw, listing)
        if isinstance(key, str):
            found.append(DiscoveredEntry(key=key, definition=definition, digest=_digest(raw)))
    return tuple(found)


class _Skipped:
    """The reasons for skipped entries. Bounded: the rest is counted."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self._reasons: list[str] = []
        self._more = 0
        for reason in reasons:
            self.add(reason)

    def add(self, reason: str) -> None:
        if len(self._reasons) < MAX_LEFT_OUT:
            self._reasons.append(cut(reason, _REASON_CHARS))
        else:
            self._more += 1

    def reasons(self) -> tuple[str, ...]:
        return (*self._reasons, f"and {self._more} more") if self._more else tuple(self._reasons)


_LENIENT: Final = (Kind.UPSTREAM_ERROR, Kind.MALFORMED_RESULT, Kind.RESPONSE_TOO_LARGE)


async def _ask_leniently(
    session: Session, listing: ListMethod, skipped: _Skipped, failed: list[str], hints: Hints
) -> tuple[DiscoveredEntry, ...]:
    """Fetch a list other than the tools. If the server fails to list it, the reason goes into `failed`."""
    try:
        return await _ask(session, listing, skipped, hints)
    except GatewayFailure as failure:
        if failure.kind not in _LENIENT:
            raise
        failed.append(f"{listing.method}: {failure.public}")
        return ()


async def _ask(session: Session, listing: ListMethod, skipped: _Skipped, hints: Hints) -> tuple[DiscoveredEntry, ...]:
    """The usable entries of all pages of one list, by name or URI: a server may list them in another order each time (ECO-001)."""
    if listing.capability not in session.identity.capabilities:
        return ()
    found = _EntryCollector(session, listing, skipped)
    seen: set[str] = set()
    members: dict[str, Raw] = {}
    said: list[Hint] = []
    for _ in range(MAX_PAGES):
        cursor, hint = found.take(await session.peer.request(listing.method, members))
        said.append(hint or STALE)
        if hint is not None or listing.method in hints:
            hints[listing.method] = together(said)
        if cursor is None:
            return tuple(found.entries[key] for key in sorted(found.entries))
        if cursor in seen:
            raise _unusable(session, listing, "it gave the same cursor twice")
        seen.add(cursor)
        members = {"cursor": Raw(messages.encode_json(cursor))}
    raise _unusable(session, listing, f"it has more than {MAX_PAGES} pages")


class _EntryCollector:
    """The usable entries of one list, page by page. Bounded: raises GatewayFailure for a list that is too large."""

    def __init__(self, session: Session, listing: ListMethod, skipped: _Skipped) -> None:
        self.entries: dict[str, DiscoveredEntry] = {}
        self._session = session
        self._listing = listing
        self._skipped = skipped
        self._count = 0
        self._raw_bytes = 0
        self._kept_bytes = 0

    def take(self, page: bytes) -> tuple[str | None, Hint | None]:
        """Keep the entries of a page. Returns the cursor of the next page, and the cache hint."""
        listing = self._listing
        self._raw_bytes += len(page)
        if self._raw_bytes > MAX_RAW_BYTES:
            raise self._too_large(f"its pages have more than {MAX_RAW_BYTES} bytes")
        if page.count(b",") > MAX_PAGE_COMMAS:
            raise self._too_large(f"a page has more than {MAX_PAGE_COMMAS} values")
        raws, cursor, hint = _page(page, listing, self._session)
        self._count += len(raws)
        if self._count > MAX_ENTRIES:
            raise self._too_large(f"it has more than {MAX_ENTRIES} entries")
        for raw in raws:
            self._keep(raw)
        return cursor, hint

    def _keep(self, raw: Raw) -> None:
        listing, key = self._listing, _key(raw, self._listing)
        if isinstance(key, _BadEntry):
            self._skipped.add(f"an entry of {listing.method}: {key.why}")
        elif key in self.entries:
            self._skipped.add(f"{key}: listed twice in {listing.method}, the first one is used")
        else:
            self._kept_bytes += len(bytes(raw)) - (_unannounced_bytes(raw) if self._session.is_ours else 0)
            if self._kept_bytes > MAX_LIST_BYTES:
                raise self._too_large(f"its definitions have more than {MAX_LIST_BYTES} bytes")
            self.entries[key] = DiscoveredEntry(key=key, definition=bytes(raw), digest=_digest(raw))

    def _too_large(self, why: str) -> GatewayFailure:
        server = self._session.peer.server
        message = f"skipped: its list is too large ({self._listing.method} of {server}: {why})"
        return GatewayFailure(Kind.RESPONSE_TOO_LARGE, message, server=server, operation="discover")


_entries: Final = msgspec.json.Decoder(list[Raw])
_text: Final = msgspec.json.Decoder(str)


def _page(text: bytes, listing: ListMethod, session: Session) -> tuple[list[Raw], str | None, Hint | None]:
    try:
        members = messages.members(text)
        entries = _entries.decode(members[listing.member])
        cursor = members.get("nextCursor", Raw(b"null"))
        return entries, None if bytes(cursor) == b"null" else _text.decode(cursor), read_hint(members)
    except KeyError:
        raise _unusable(session, listing, f"it has no member {listing.member!r}") from None
    except msgspec.DecodeError as problem:
        raise _unusable(session, listing, str(problem)) from problem


async def _read_tools(
    definitions: tuple[DiscoveredEntry, ...],
    before: dict[str, DiscoveredTool],
    skipped: _Skipped,
    *,
    drops_bad_headers: bool,
    has_contracts: bool,
) -> tuple[DiscoveredTool, ...]:
    tools: list[DiscoveredTool] = []
    for number, found in enumerate(definitions):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)  # a thousand schemas take a second; other requests must not wait for it
        tool = before.get(found.digest) or _tool(
            found, drops_bad_headers=drops_bad_headers, has_contracts=has_contracts
        )
        if isinstance(tool, str):
            skipped.add(f"{found.key}: {tool}")
        else:
            tools.append(tool)
    return tuple(tools)


def _tool(found: DiscoveredEntry, *, drops_bad_headers: bool, has_contracts: bool) -> DiscoveredTool | str:
    """The tool, or why it is skipped."""
    members = messages.members(found.definition)
    if "inputSchema" not in members:
        return "it has no inputSchema"
    schema = compile_schema(bytes(members["inputSchema"]), noun="argument", clock=time.thread_time)
    if not isinstance(schema, Schema):
        return f"its inputSchema can't be used: {schema}"
    mirrored = headers.header_params(messages.value(members["inputSchema"]))
    if isinstance(mirrored, str):
        if drops_bad_headers:  # an HTTP client must not call such a tool (streamable HTTP, custom headers)
            return mirrored
        mirrored = ()
    contract = read_contract(found.definition) if has_contracts else None
    if isinstance(contract, str):
        return contract
    is_lenient = contract is not None and contract.output_validation == "warn"
    output = _output_check(members, is_lenient=is_lenient)
    if isinstance(output, str):
        return f"its outputSchema can't be used: {output}"
    annotations = messages.value(members.get("annotations", Raw(b"{}")))
    told = annotations if isinstance(annotations, dict) else {}
    return DiscoveredTool(
        key=found.key,
        definition=found.definition
        if contract is None
        else without_contract(found.definition, announces_output=not is_lenient),
        digest=found.digest,
        input_check=schema,
        output_check=output,
        annotations=told,
        header_params=mirrored,
        contract=contract,
    )


def _output_check(members: dict[str, Raw], *, is_lenient: bool) -> SchemaCheck | str | None:
    """The check of the output schema. Where a result that does not fit is passed on, the schema is compiled for the first result only."""
    if "outputSchema" not in members:
        return None
    source = bytes(members["outputSchema"])
    return LazySchema(source) if is_lenient else compile_schema(source, clock=time.thread_time)


def _unannounced_bytes(raw: Raw) -> int:
    """The bytes of an output schema that no client gets, because results that do not fit are passed on."""
    text = bytes(raw)
    return len(bytes(messages.members(text).get("outputSchema", b""))) if _LENIENT_MARK in text else 0


class _BadEntry(NamedTuple):
    why: str


def _key(raw: Raw, listing: ListMethod) -> str | _BadEntry:
    text = bytes(raw)
    if len(text) > MAX_DEFINITION_BYTES:
        return _BadEntry(f"its definition has more than {MAX_DEFINITION_BYTES} bytes")
    try:
        members = messages.members(text)
        key = _text.decode(members[listing.key])
        if find_duplicate_key(text) is not None:
            return _BadEntry("a key stands twice in one object of its definition")
    except (KeyError, msgspec.DecodeError, RecursionError):
        return _BadEntry(f"it needs a text as its {listing.key}")
    for name in ("description", "title"):
        if len(bytes(members.get(name, b""))) > MAX_TEXT_BYTES:
            return _BadEntry(f"the {name} of {key[:40]!r} has more than {MAX_TEXT_BYTES} bytes")
    bound = MAX_NAME_CHARS if listing.key == "name" else MAX_URI_CHARS
    if not 0 < len(key) <= bound or not key.isprintable():
        return _BadEntry(f"its {listing.key} {key[:40]!r} needs 1 to {bound} printable characters")
    return key


def _digest(raw: Raw) -> str:
    return hashlib.sha256(bytes(raw)).hexdigest()[:32]


def _unusable(session: Session, listing: ListMethod, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.MALFORMED_RESULT,
        f"{listing.method} of {session.peer.server} can't be used: {why}",
        server=session.peer.server,
        operation=listing.method,
    )
