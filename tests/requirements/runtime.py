"""S1: what the runtime promises about cache, time, answers, request limits and shutdown."""

from __future__ import annotations

from tests.requirements.entry import Requirement

TITLE = "MCP Runtime Invariants"

REQUIREMENTS = (
    Requirement(
        id="S1/CACHE-001",
        statement="After every operation the cache holds at most maxSizeBytes, and crossing the high water mark "
        "evicts down to the low one.",
        source=f"{TITLE}, INV-MCP-CACHE-001: Size Bound",
        enforced_by=("pactgate.state.memory_cache:MemoryCache.put",),
    ),
    Requirement(
        id="S1/CACHE-002",
        statement="After every operation the cache holds at most maxEntries entries.",
        source=f"{TITLE}, INV-MCP-CACHE-002: Entry Bound",
        enforced_by=("pactgate.state.memory_cache:MemoryCache.put",),
    ),
    Requirement(
        id="S1/CACHE-003",
        statement="An entry older than its time to live is never returned, and idle ones are swept away without being "
        "asked for.",
        source=f"{TITLE}, INV-MCP-CACHE-003: TTL Expiration",
        enforced_by=(
            "pactgate.state.memory_cache:MemoryCache.get",
            "pactgate.policy.cache_policy:judge",
        ),
    ),
    Requirement(
        id="S1/CACHE-004",
        statement="Under lru no entry that was used later is evicted before one that was used earlier, even within "
        "one clock tick.",
        source=f"{TITLE}, INV-MCP-CACHE-004: LRU Ordering",
        enforced_by=("pactgate.state.memory_cache:MemoryCache",),
    ),
    Requirement(
        id="S1/CACHE-005",
        statement="No reader sees half of a cache operation, and a failed one leaves the previous entry in place.",
        source=f"{TITLE}, INV-MCP-CACHE-005: Atomic Operations",
        enforced_by=(
            "pactgate.state.memory_cache:MemoryCache",
            "pactgate.policy.result_cache:ResultCache",
        ),
    ),
    Requirement(
        id="S1/CACHE-006",
        statement="The reported size of the cache is the sum of the sizes of its entries, within one per cent and "
        "zero when it is empty.",
        source=f"{TITLE}, INV-MCP-CACHE-006: Size Accuracy",
        enforced_by=("pactgate.state.memory_cache:MemoryCache.recount",),
    ),
    Requirement(
        id="S1/TIMEOUT-001",
        statement="Every tool call has ended 100 ms after its limit at the latest, whatever the tool does, and leaves "
        "no work behind.",
        source=f"{TITLE}, INV-MCP-TIMEOUT-001: Guaranteed Termination",
        enforced_by=("pactgate.pipeline.tool_call:ToolCall.run",),
    ),
    Requirement(
        id="S1/TIMEOUT-002",
        statement="Tools of one category have the same default timeout, because it is looked up by category alone.",
        source=f"{TITLE}, INV-MCP-TIMEOUT-002: Category Consistency",
        enforced_by=(
            "pactgate.policy.timeouts:for_tool",
            "pactgate.policy.categories:categorise",
        ),
    ),
    Requirement(
        id="S1/TIMEOUT-003",
        statement="A timeout set for one tool wins over the timeout of its category.",
        source=f"{TITLE}, INV-MCP-TIMEOUT-003: Override Precedence",
        enforced_by=("pactgate.policy.timeouts:for_tool",),
    ),
    Requirement(
        id="S1/TIMEOUT-004",
        statement="A call that ran into its limit is an error with the code TOOL_TIMEOUT, and only such a call is.",
        source=f"{TITLE}, INV-MCP-TIMEOUT-004: Timeout Error Code",
        enforced_by=(
            "pactgate.pipeline.tool_call:ToolCall.run",
            "pactgate.policy.envelope:runtime_view",
        ),
    ),
    Requirement(
        id="S1/TIMEOUT-005",
        statement="Every result, whether completed, failed or timed out, carries how long it took, measured by a "
        "clock that never runs back.",
        source=f"{TITLE}, INV-MCP-TIMEOUT-005: Duration Tracking",
        enforced_by=(
            "pactgate.policy.envelope:encode_envelope",
            "pactgate.policy.envelope:runtime_view",
        ),
    ),
    Requirement(
        id="S1/RESP-001",
        statement="Every response is exactly one of two envelopes: a success with data, or an error.",
        source=f"{TITLE}, INV-MCP-RESP-001: Consistent Envelope",
        enforced_by=("pactgate.policy.envelope:runtime_view",),
    ),
    Requirement(
        id="S1/RESP-002",
        statement="Every error has a code of the closed set of error codes and a message that is not empty.",
        source=f"{TITLE}, INV-MCP-RESP-002: Error Code Required",
        enforced_by=(
            "pactgate.policy.envelope:runtime_view",
            "pactgate.core.failures:ErrorCode",
        ),
    ),
    Requirement(
        id="S1/RESP-003",
        statement="What is sent for one response is never larger than maxResponseBytes, counted in the bytes really "
        "written.",
        source=f"{TITLE}, INV-MCP-RESP-003: Size Limit",
        enforced_by=(
            "pactgate.pipeline.post_gates:LimitSize",
            "pactgate.policy.response_size:fit",
        ),
    ),
    Requirement(
        id="S1/RESP-004",
        statement="A response that was cut says truncated: true with its original size, and one that was not cut says "
        "false.",
        source=f"{TITLE}, INV-MCP-RESP-004: Truncation Transparency",
        enforced_by=(
            "pactgate.pipeline.post_gates:LimitSize",
            "pactgate.policy.envelope:encode_envelope",
        ),
    ),
    Requirement(
        id="S1/RESP-005",
        statement="Every response says in its metadata how many milliseconds it took.",
        source=f"{TITLE}, INV-MCP-RESP-005: Duration Tracking",
        enforced_by=("pactgate.policy.envelope:encode_envelope",),
    ),
    Requirement(
        id="S1/RESP-006",
        statement="An error is marked retryable exactly when its code is among the retryable ones and the tool is not "
        "declared non-idempotent; the plain membership is there too, as transient.",
        source=f"{TITLE}, INV-MCP-RESP-006: Retryable Accuracy",
        enforced_by=("pactgate.policy.envelope:is_retryable",),
    ),
    Requirement(
        id="S1/LIMIT-001",
        statement="An array longer than its limit, at any depth of the arguments, is refused with ARRAY_TOO_LARGE "
        "before the tool runs.",
        source=f"{TITLE}, INV-MCP-LIMIT-001: Array Size Enforcement",
        enforced_by=(
            "pactgate.pipeline.pre_gates:CheckLimits",
            "pactgate.policy.limits:check",
        ),
    ),
    Requirement(
        id="S1/LIMIT-002",
        statement="A request that breaks a limit reaches no upstream: no call, no connection attempt, no cache entry.",
        source=f"{TITLE}, INV-MCP-LIMIT-002: Early Rejection",
        enforced_by=("pactgate.pipeline.tool_call:ToolCall.run",),
    ),
    Requirement(
        id="S1/LIMIT-003",
        statement="A limit set for one tool replaces the general one, upwards as well as downwards.",
        source=f"{TITLE}, INV-MCP-LIMIT-003: Tool-Specific Limits",
        enforced_by=("pactgate.policy.limits:bounds_for",),
    ),
    Requirement(
        id="S1/LIMIT-004",
        statement="Every limit error says where in the arguments it happened, what the limit is and what was sent.",
        source=f"{TITLE}, INV-MCP-LIMIT-004: Descriptive Errors",
        enforced_by=("pactgate.policy.limits:LimitError",),
    ),
    Requirement(
        id="S1/XC-001",
        statement="Nothing reports success while a part of what it promised has failed; log, events and answer agree.",
        source=f"{TITLE}, INV-MCP-XC-001: No Silent Failures",
        enforced_by=("pactgate.pipeline.kernel:Kernel", "pactgate.core.context:ExecutionContext"),
    ),
    Requirement(
        id="S1/XC-002",
        statement="A cache that is broken or full never keeps a tool call from being answered; it counts as a miss.",
        source=f"{TITLE}, INV-MCP-XC-002: Graceful Degradation",
        enforced_by=("pactgate.policy.result_cache:ResultCache",),
    ),
    Requirement(
        id="S1/XC-003",
        statement="After a shutdown, orderly or half-way through the start, no child process, socket, task or timer "
        "of the gateway is left.",
        source=f"{TITLE}, INV-MCP-XC-003: Resource Cleanup",
        enforced_by=("pactgate.app:Gateway.stop",),
    ),
)
