"""S2: what tools promise, and what the gateway enforces of it."""

from __future__ import annotations

from tests.requirements.entry import Requirement

TITLE = "MCP Tool Contract V1 - Behavioral Invariants"


REQUIREMENTS = (
    Requirement(
        id="S2/MCP-001",
        statement="Input is validated before a tool runs and output after it, by the declared schemas alone; a breach "
        "is INVALID_INPUT or INVALID_OUTPUT and is never delivered as success.",
        source=f"{TITLE}, INV-MCP-001: Schema Conformance",
        enforced_by=(
            "pactgate.pipeline.pre_gates:ValidateInput",
            "pactgate.pipeline.post_gates:ValidateOutput",
            "pactgate.policy.schema.validation:compile_schema",
        ),
    ),
    Requirement(
        id="S2/MCP-002",
        statement="What a tool was observed to do is a subset of the effects it declares; the operations are audited "
        "and a breach is recorded.",
        source=f"{TITLE}, INV-MCP-002: No Undeclared Side Effects",
        enforced_by=(
            "pactgate.tools:tool",
            "pactgate.runner.observe:EffectWatch",
            "pactgate.pipeline.post_gates:CheckEffects",
            "pactgate.policy.contracts:undeclared_operations",
            "pactgate.upstreams.process.sandbox:confine",
            "pactgate.upstreams.process.launcher:launch",
            "pactgate.audit.record:call_facts",
        ),
    ),
    Requirement(
        id="S2/MCP-003",
        statement="Every failure carries a standard code or one the tool declared, a message a person can read and "
        "details to act on.",
        source=f"{TITLE}, INV-MCP-003: Standardized Error Codes",
        enforced_by=(
            "pactgate.core.failures:ErrorCode",
            "pactgate.policy.contracts:take_contract_result",
            "pactgate.runner.calls:CallRunner",
        ),
    ),
    Requirement(
        id="S2/MCP-004",
        statement="Every tool written under the contract declares whether it is idempotent, or counts as one that is not; "
        "no error of one that is not is retryable.",
        source=f"{TITLE}, INV-MCP-004: Idempotency Declaration",
        enforced_by=(
            "pactgate.tools:tool",
            "pactgate.runner.load:load",
            "pactgate.policy.envelope:is_retryable",
            "pactgate.cli.probe:probe",
        ),
    ),
    Requirement(
        id="S2/MCP-005",
        statement="The arguments a caller handed over are the same after the call, whatever the tool did with its own.",
        source=f"{TITLE}, INV-MCP-005: Input Isolation",
        enforced_by=("pactgate.runner.calls:CallRunner", "pactgate.runner.signature:serve"),
    ),
    Requirement(
        id="S2/MCP-006",
        statement="Calls are limited by the category of the tool (execution 30 a minute and 5 at once, mutation 100 "
        "and 20, read 200 and 50), the excess is RATE_LIMITED with retryAfter, and config_set changes the "
        "limits.",
        source=f"{TITLE}, INV-MCP-006: Rate Limiting",
        enforced_by=(
            "pactgate.pipeline.pre_gates:RateLimit",
            "pactgate.policy.rate_limits:RatePolicy",
            "pactgate.state.memory_rates:MemoryRateStore",
            "pactgate.pipeline.tool_invoke:unwrap",
            "pactgate.pipeline.live_configuration:LiveConfiguration.change",
            "pactgate.pipeline.management:Management.config_set",
        ),
    ),
    Requirement(
        id="S2/MCP-007",
        statement="A refused caller learns how many seconds to wait and what is left of the quota, and the limits can "
        "be looked up.",
        source=f"{TITLE}, INV-MCP-007: Rate Limit Transparency",
        enforced_by=(
            "pactgate.pipeline.pre_gates:RateLimit",
            "pactgate.policy.rate_limits:RatePolicy",
            "pactgate.state.memory_rates:MemoryRateStore",
            "pactgate.inbound.replies:status_of",
            "pactgate.telemetry.snapshot:GatewaySnapshot.limits",
        ),
    ),
)
