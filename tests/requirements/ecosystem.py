"""S0: what the catalog of servers promises."""

from __future__ import annotations

from tests.requirements.entry import Requirement

TITLE = "MCP Ecosystem Invariants"

REQUIREMENTS = (
    Requirement(
        id="S0/ECO-001",
        statement="Two discoveries of an unchanged server give equal tools in the same order, forced or not, whatever "
        "the order in which the server lists them; a "
        "restarted server is seen with its new tools, and the time of discovery moves only when the server "
        "was really asked.",
        source=f"{TITLE}, INV-MCP-ECO-001: Tool Discovery is Idempotent",
        enforced_by=(
            "pactgate.catalog.discovery:discover",
            "pactgate.catalog.list_cache:ListCache",
            "pactgate.catalog.discovery_report:discover_all",
        ),
    ),
    Requirement(
        id="S0/ECO-002",
        statement="Servers are discovered at the same time, each under its own deadline, and one that fails or hangs "
        "costs neither the tools of the others nor their time; every server gets a row of its own, with the "
        "reason where it failed.",
        source=f"{TITLE}, INV-MCP-ECO-002: Failed Servers Don't Block Others",
        enforced_by=(
            "pactgate.catalog.connections:Connections",
            "pactgate.catalog.supervisor:Supervisor",
            "pactgate.catalog.discovery_report:discover_all",
        ),
    ),
    Requirement(
        id="S0/ECO-003",
        statement="A tool is identified by server id, dot and tool name; that name always resolves to exactly one "
        "tool, a bare name only while a single server offers it, and otherwise the answer is AMBIGUOUS_TOOL "
        "with the candidates.",
        source=f"{TITLE}, INV-MCP-ECO-003: Tool Namespacing Prevents Collisions",
        enforced_by=(
            "pactgate.catalog.index:NameIndex.resolve",
            "pactgate.catalog.uris:resolve_uri",
        ),
    ),
    Requirement(
        id="S0/ECO-100",
        statement="Connecting ends within connectionTimeoutMs and a call within requestTimeoutMs, as "
        "CONNECTION_TIMEOUT and INVOCATION_FAILED, and both messages name the server and the operation.",
        source=f"{TITLE}, INV-MCP-ECO-100: Connection Timeout Enforced",
        enforced_by=(
            "pactgate.catalog.supervisor:Supervisor",
            "pactgate.pipeline.tool_call:ToolCall.run",
        ),
    ),
    Requirement(
        id="S0/ECO-101",
        statement="A server is tried at most maxRetries + 1 times with growing waits between the attempts, and the "
        "number of attempts is reported whether the last one failed or succeeded.",
        source=f"{TITLE}, INV-MCP-ECO-101: Retry Logic Bounded",
        enforced_by=(
            "pactgate.catalog.supervisor:Supervisor",
            "pactgate.catalog.backoff:Backoff.before",
        ),
    ),
    Requirement(
        id="S0/ECO-200",
        statement="The status shown for a server is its real one at the moment an operation returns: connecting "
        "clears the last error, failing sets it, and the counts are those of the latest successful "
        "discovery.",
        source=f"{TITLE}, INV-MCP-ECO-200: Server State Consistency",
        enforced_by=(
            "pactgate.catalog.lifecycle:next_status",
            "pactgate.catalog.server_row:server_row",
        ),
    ),
    Requirement(
        id="S0/ECO-201",
        statement="A server with enabled: false has the status disabled and costs no process, socket or name look-up; "
        "discovery passes it over, and enabling it starts a connection.",
        source=f"{TITLE}, INV-MCP-ECO-201: Disabled Servers Not Connected",
        enforced_by=(
            "pactgate.catalog.supervisor:Supervisor.enable",
            "pactgate.catalog.supervisor:Supervisor.disable",
            "pactgate.catalog.lifecycle:TRANSITIONS",
        ),
    ),
    Requirement(
        id="S0/ECO-300",
        statement="Arguments are checked against the tool's input schema before anything is sent, and arguments the "
        "schema leaves open reach the server unchanged.",
        source=f"{TITLE}, INV-MCP-ECO-300: Tool Arguments Validated",
        enforced_by=(
            "pactgate.pipeline.pre_gates:ValidateInput",
            "pactgate.policy.schema.validation:compile_schema",
        ),
    ),
    Requirement(
        id="S0/ECO-301",
        statement="Every failure of an invocation is in the response with isError and a message, a lost connection "
        "and a timeout as INVOCATION_FAILED, and whatever content the tool did return is kept.",
        source=f"{TITLE}, INV-MCP-ECO-301: Invocation Errors Propagated",
        enforced_by=(
            "pactgate.pipeline.kernel:Kernel.start",
            "pactgate.policy.envelope:ecosystem_view",
        ),
    ),
)
