"""The policy of each tool: its time limit, bounds and cache policy, computed once per tool and configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw, Struct

from pactgate.catalog.index import server_of
from pactgate.config.model import Config
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.values import Tool
from pactgate.policy.cache_policy import CachePolicy, ToolCachePolicy
from pactgate.policy.categories import ToolCategory
from pactgate.policy.contracts import declared_level
from pactgate.policy.envelope import room_bytes
from pactgate.policy.limits import BodyLimits, Bounds, bounds_for
from pactgate.policy.scopes import RequiredScope, ScopePolicy
from pactgate.policy.timeouts import ToolTimeout, for_tool
from pactgate.policy.tool_patterns import most_specific
from pactgate.protocol.json_limits import MAX_VALUES
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import LATEST_MODERN

_REMEMBERED: Final = 20_000
_ERA_BYTES: Final = 80
"""What a modern result has beside our identity: its type, and the name the identity goes by."""


class GateStep(Struct, frozen=True):
    """One gate as it is run. Calling a bound method costs 0.1 us less than calling the gate itself, and a call passes nine."""

    name: str
    run: Callable[[Any], Any]


class ChosenGates(Struct, frozen=True):
    """The gates that apply to a tool, in their order (`tool_call.Gate`)."""

    before: tuple[GateStep, ...]
    after: tuple[GateStep, ...]
    """Verifying and finishing a fresh answer."""
    finish: tuple[GateStep, ...]
    """Finishing one from the cache."""


class ToolPolicy(Struct):
    """Everything the settings say about one tool."""

    tool: Tool
    wire_name: Raw
    """The name its server knows it by, as JSON."""
    limit: ToolTimeout
    bounds: Bounds
    cache: ToolCachePolicy
    max_result_bytes: int
    room_bytes: int
    """What the stamp and the members of the caller's era take of that, at most."""
    is_rate_limited: bool
    is_guarded: bool
    """Whether permissions decide about its calls; the role admin decides about the gateway's own tools."""
    scope: RequiredScope | None
    """What tokens of identity providers need for the tool; None where there are no such tokens."""
    effects_level: str
    """At which level the effects of the tool are known, where its session does not say more (D12)."""
    gates: ChosenGates | None = None
    """Chosen at the first call of the tool: asking each gate again would cost every call 6 us."""


class PolicyTable:
    """Looks policies up by tool; a tool whose definition changed is another tool. A new configuration means a new table.

    The gateway's own tools keep the default times and bounds, so that no setting can lock out whoever has to take it back.
    """

    def __init__(self, config: Config, server_info: bytes) -> None:
        self._config = config
        self.progress_timeout_ms = config.timeouts.progress_timeout_ms
        """How long a call may take in all, while its server reports progress; None where progress extends nothing."""
        self.input_timeout_ms = config.timeouts.input_timeout_ms
        """How long a call may wait for what its caller is asked."""
        self._era_bytes = len(server_info) + _ERA_BYTES
        self._cache = CachePolicy(
            config.cache, frozenset(id_ for id_, server in config.servers.items() if server.may_have_caller_sessions)
        )
        self.scopes = ScopePolicy(config.auth.scopes) if config.auth.issuers else None
        self.default_limit = ToolTimeout(config.timeouts.default_timeout_ms, "timeouts.defaultTimeoutMs")
        self._known: dict[str, ToolPolicy] = {}
        self._reads: dict[str, ToolCachePolicy] = {}

        self.wire = config.wire.planes()
        self.max_response_bytes = config.response.max_response_bytes
        limits = config.limits
        self.body_limits = BodyLimits(
            max_values=MAX_VALUES + max(limits.max_array_size, *limits.tool_array_limits.values(), 0),
            max_string=max(limits.max_string_length, Limits().max_string_length),
        )
        """What a request may have at most, whichever tool it calls: a tool that may get a long array must be able to get it."""

    def of(self, tool: Tool) -> ToolPolicy:
        known = self._known.get(tool.full_name)
        if known is None or known.tool is not tool:
            if len(self._known) >= _REMEMBERED:  # a server may invent names without end
                self._known.clear()
            known = self._known[tool.full_name] = self._work_out(tool)
        return known

    def of_reads(self, server: str) -> ToolCachePolicy:
        """How long resources of a server are kept: as long as the server says, and no longer than the default."""
        known = self._reads.get(server)
        if known is None:
            known = self._reads[server] = self._cache.hinted(server, "resources/read")
        return known

    def server_limit_ms(self, server: str) -> int:
        """For requests that are about no tool."""
        default_ms = self._config.timeouts.default_timeout_ms
        known = self._config.servers.get(server)
        return default_ms if known is None else min(default_ms, known.request_timeout_ms)

    def is_extension(self, server: str, method: str) -> bool:
        """Whether the operator lets this method outside the protocol pass to a server."""
        known = self._config.servers.get(server)
        return known is not None and most_specific(method, known.extensions) is not None

    def _work_out(self, tool: Tool) -> ToolPolicy:
        config, traits = self._config, tool.traits
        plan = self._cache.plan(
            tool,
            is_read_only=traits.is_read_only if traits.is_known else None,
            is_idempotent=traits.is_idempotent,
        )
        is_own = tool.server == OWN_SERVER_ID
        # What is set for `files.read` is not meant for a tool of another server that calls itself so.
        bare_name = tool.name if server_of(tool.name, config.servers) in (None, tool.server) else tool.full_name
        server = config.servers.get(tool.server)
        return ToolPolicy(
            tool=tool,
            wire_name=Raw(encode_json(tool.name)),
            limit=for_tool(
                tool.full_name,
                bare_name,
                ToolCategory(traits.category) if traits.is_known else None,
                server.request_timeout_ms if server else config.timeouts.default_timeout_ms,
                Timeouts() if is_own else config.timeouts,
                is_hinted=traits.is_hinted,
            ),
            bounds=bounds_for(tool.full_name, bare_name, Limits() if is_own else config.limits),
            cache=plan,
            max_result_bytes=config.response.max_response_bytes,
            room_bytes=room_bytes(tool.server, tool.full_name, LATEST_MODERN) + self._era_bytes,
            is_rate_limited=config.rate_limits.enabled,
            is_guarded=bool(config.permissions) and not is_own,
            scope=None if self.scopes is None else self.scopes.of(traits.category),
            effects_level=declared_level(tool),
        )
