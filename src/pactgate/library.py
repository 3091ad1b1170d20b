"""Calling tools from the program that holds the gateway: arguments as Python values in, the runtime document's envelope out.

Must not: raise for whatever a tool, a server or an argument does. Enforces S1/RESP-001 for programs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.core.values import Caller, Silence
from pactgate.pipeline.kernel import TOOL_CALL, Kernel
from pactgate.pipeline.post_gates import facts_of
from pactgate.pipeline.pre_gates import TIMEOUT_KEY
from pactgate.policy.access import ADMINISTRATOR
from pactgate.policy.envelope import runtime_view
from pactgate.protocol.messages import Request, encode_json
from pactgate.protocol.versions import LATEST_MODERN, Era

_PRINCIPAL: Final = Principal("library", ADMINISTRATOR, PrincipalKind.LOCAL)


class Library:
    """The caller that made the gateway, and so may manage it."""

    def __init__(self, kernel: Kernel, *, client: str) -> None:
        self._kernel = kernel
        self._caller = Caller(_PRINCIPAL, Era.MODERN, LATEST_MODERN, Silence(), client=client)

    async def invoke(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, Any]:
        """Call one tool. The answer is always an envelope (success and data, or error; metadata), never an exception."""
        params: dict[str, Any] = {"name": tool_name, "arguments": {} if arguments is None else arguments}
        if timeout_ms is not None:
            params["_meta"] = {TIMEOUT_KEY: timeout_ms}
        ctx = ExecutionContext(TOOL_CALL, self._caller, time.monotonic())
        try:
            text = encode_json(params)
        except (TypeError, ValueError, RecursionError) as problem:
            unfit = GatewayFailure(
                Kind.INVALID_ARGUMENTS, f"The arguments can't be written as JSON: {problem}.", tool=tool_name
            )
            return runtime_view(facts_of(ctx, time.monotonic()), unfit)
        reply = await self._kernel.handle(ctx, Request(b"0", 0, TOOL_CALL, text))
        outcome = ctx.failure or reply.result
        assert outcome is not None, "a reply without a failure has a result"
        return runtime_view(facts_of(ctx, time.monotonic()), outcome)
