"""Whether the result of a call may be kept, under which key, and for how long.

Nothing is kept unless the operator named the tool or its contract says how long, and then only what is known to be safe to give again:
complete, whole, successful results of tools that are read-only or idempotent. A key is the caller, the server, the tool, its
definition and the exact bytes of the arguments: whatever differs in any of them is another key. A caller with a session of its own with
the server has keys of its own: another session may be logged in as somebody else. What an upstream says about freshness
shortens a life and never lengthens it. Pure. Must not: store anything. Enforces decision D11, S1/CACHE-003 (hints) and the keys of
S1/CACHE-005.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.config.sections.cache import Cache
from pactgate.core.values import Tool
from pactgate.policy.tool_patterns import most_specific

_KEY_BYTES: Final = 16
_WHOLE_NUMBER: Final = re.compile(rb"[0-9]{1,15}")
_PLAIN_MEMBERS: Final = frozenset({"name", "arguments"})
_TRACE_CONTEXT: Final = frozenset({"traceparent", "tracestate", "baggage"})


class CacheKeys(Struct, frozen=True, gc=False):
    """The keys of a result: the caller's own, then the one of results that are public."""

    own: bytes
    shared: bytes | None = None


class Storable(NamedTuple):
    """A result may be kept this long (0: until something evicts it), and perhaps for everybody."""

    ttl_ms: int
    is_public: bool


class ToolCachePolicy:
    """What the cache does for one tool. `ttl_ms` None: nothing is kept. `is_writer`: a call may outdate what is kept of its server."""

    __slots__ = ("_seed", "follows_hints", "is_writer", "may_be_private", "ttl_ms")

    def __init__(
        self,
        ttl_ms: int | None,
        *,
        is_writer: bool,
        follows_hints: bool,
        identity: tuple[str, ...],
        may_be_private: bool = False,
    ) -> None:
        self.ttl_ms = ttl_ms
        self.may_be_private = may_be_private
        """Whether callers may have sessions of their own with the server, so that `keys` has to be told which."""
        self.is_writer = is_writer
        self.follows_hints = follows_hints
        """Kept only as long as the upstream says so, and shared where it says so: what the specification gives lists and reads."""
        named = b"".join(b"%d:%b" % (len(part), part) for part in (_encoded(text) for text in identity))
        self._seed = blake2b(named, digest_size=_KEY_BYTES)

    def keys(self, subject: str, arguments: bytes, session: str | None = None) -> CacheKeys:
        """Where this caller's result for exactly these bytes is kept.

        `session` names the caller's own session with the server. What was answered there is for nobody else, whatever the server says.
        """
        digest = self._seed.copy()
        digest.update(arguments)
        shared = digest.digest()
        if session is not None:
            return CacheKeys(shared + b"\1" + _encoded(session))
        return CacheKeys(shared + b"\0" + _encoded(subject), shared if self.follows_hints else None)


class CachePolicy:
    """The rules of one configuration."""

    def __init__(self, settings: Cache, private: Collection[str] = ()) -> None:
        """`private` are the servers with which callers may have sessions of their own."""
        self._default_ttl_ms = settings.default_ttl_ms
        self._tools = settings.tools
        self._private = private

    def plan(self, tool: Tool, *, is_read_only: bool | None, is_idempotent: bool | None) -> ToolCachePolicy:
        """The cache policy of a tool. None means that neither the operator nor the server declared it.

        A pattern covers tools that are known to be safe. A full name is the operator's word for this very tool, and vouches for one
        nobody said anything about; it can't make a tool read-only that says it is not.
        """
        is_vouched_for = tool.full_name in self._tools and is_read_only is None
        ttl_ms = self.rule_for(tool.full_name)
        if ttl_ms is None and tool.contract is not None and tool.contract.cache_ttl_ms is not UNSET:
            ttl_ms = tool.contract.cache_ttl_ms
        is_safe = is_read_only is True or is_idempotent is True or is_vouched_for
        return ToolCachePolicy(
            ttl_ms if is_safe else None,
            is_writer=not (is_read_only or is_vouched_for),
            follows_hints=False,
            identity=("tools/call", tool.server, tool.name, tool.digest),
            may_be_private=tool.server in self._private,
        )

    def hinted(self, server: str, method: str) -> ToolCachePolicy:
        """The cache policy of results with cache hints, such as those of `resources/read`."""
        return ToolCachePolicy(
            self._default_ttl_ms,
            is_writer=False,
            follows_hints=True,
            identity=(method, server),
            may_be_private=server in self._private,
        )

    def rule_for(self, full_name: str) -> int | None:
        """The time to live the operator gave a tool, or None."""
        pattern = most_specific(full_name, self._tools)
        if pattern is None:
            return None
        ttl_ms = self._tools[pattern].ttl_ms
        return self._default_ttl_ms if ttl_ms is None else ttl_ms


def is_plain(members: Collection[str], meta: Collection[str]) -> bool:
    """Whether a call has only a name and arguments. With other members the answer may differ, so such a call is never looked up.

    `meta` are the members of `_meta` that reach the upstream; those that only trace the call change nothing about its answer.
    """
    return _PLAIN_MEMBERS.issuperset(members) and only_traces(meta)


def only_traces(meta: Collection[str]) -> bool:
    """Whether nothing in `_meta` can change the answer."""
    return not meta or _TRACE_CONTEXT.issuperset(meta)


class _Result(Struct):
    isError: Raw | UnsetType = UNSET  # noqa: N815 - the wire's spelling
    resultType: Raw | UnsetType = UNSET  # noqa: N815
    ttlMs: Raw | UnsetType = UNSET  # noqa: N815
    cacheScope: Raw | UnsetType = UNSET  # noqa: N815


_result: Final = msgspec.json.Decoder(_Result)


def judge(plan: ToolCachePolicy, result: bytes, *, is_truncated: bool = False) -> Storable | None:
    """Whether and how long a result may be kept, by what it says itself. None: not at all."""
    if plan.ttl_ms is None or is_truncated:
        return None
    try:
        read = _result.decode(result)
    except msgspec.DecodeError:
        return None
    if not _is(read.isError, b"false") or not _is(read.resultType, b'"complete"'):
        return None
    if isinstance(read.ttlMs, UnsetType):
        return None if plan.follows_hints else Storable(plan.ttl_ms, False)
    hint_ms = _milliseconds(bytes(read.ttlMs))
    if hint_ms == 0:
        return None
    ttl_ms = min(plan.ttl_ms, hint_ms) if plan.ttl_ms else hint_ms
    return Storable(ttl_ms, plan.follows_hints and bytes(read.cacheScope or b"") == b'"public"')


def _is(said: Raw | UnsetType, expected: bytes) -> bool:
    """Whether a member has the expected value. An absent member has it, as the specification says."""
    return isinstance(said, UnsetType) or bytes(said) == expected


def _milliseconds(said: bytes) -> int:
    """An upstream's time to live. Zero means stale at once; so does whatever is no whole number."""
    return int(said) if _WHOLE_NUMBER.fullmatch(said) else 0


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
