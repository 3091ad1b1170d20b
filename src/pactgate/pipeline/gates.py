"""The gates of a `tools/call`, in their order.

The first ones find the tool; those up to the dispatch admit the call; the next ones judge what came back, and the last ones shape what goes
out. A cached result meets only the last ones. Must not: decide anything; each gate has a class of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from pactgate.catalog.connections import Connections
from pactgate.catalog.name_resolution import NameResolution
from pactgate.core.events import Emit
from pactgate.core.masking import Mask
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.pipeline.dispatch import Dispatch
from pactgate.pipeline.post_gates import (
    AdaptForClient,
    AddEnvelope,
    CheckEffects,
    CheckResult,
    LimitSize,
    StoreInCache,
    ValidateOutput,
)
from pactgate.pipeline.pre_gates import (
    AnswerSearch,
    Authorize,
    CheckHeaderParams,
    CheckLimits,
    CheckScope,
    LookInCache,
    ParseParams,
    RateLimit,
    ResolveTool,
    ValidateInput,
)
from pactgate.pipeline.server_requests import ServerRequestBridge
from pactgate.pipeline.task_owners import TaskOwners
from pactgate.pipeline.tool_call import ToolCall
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.policy.rate_limits import RatePolicy
from pactgate.policy.result_cache import ResultCache
from pactgate.policy.result_pages import PagedResultStore


def tool_call(
    *,
    connections: Connections,
    names: NameResolution,
    bridge: ServerRequestBridge,
    dispatch: Dispatch,
    rates: RatePolicy,
    results: ResultCache,
    pages: PagedResultStore,
    tasks: TaskOwners,
    policies: Callable[[], PolicyTable],
    timeouts: TimeoutQueue,
    server_info: bytes,
    emit: Emit,
    mask: Mask,
) -> ToolCall:
    add_envelope = AddEnvelope(server_info)
    return ToolCall(
        find=(ParseParams(), ResolveTool(connections, names)),
        before=(
            Authorize(emit),
            CheckScope(),
            CheckHeaderParams(),
            CheckLimits(),
            RateLimit(rates),
            ValidateInput(),
            AnswerSearch(connections),
            LookInCache(results, bridge.session_key),
        ),
        dispatch=dispatch,
        verify=(CheckResult(tasks), CheckEffects(emit, mask), ValidateOutput(emit)),
        finish=(LimitSize(pages), StoreInCache(), AdaptForClient(), add_envelope),
        input_required=(add_envelope,),
        policies=policies,
        timeouts=timeouts,
    )
