"""S4: what is promised about failures, with the four questions the document leaves open as they were decided here."""

from __future__ import annotations

from tests.requirements.entry import Requirement

TITLE = "MCP Gateway Failure Model"

_TAXONOMY = f"{TITLE}, Failure Taxonomy"
_RULES = f"{TITLE}, Failure Propagation Rules"
_FORMAT = f"{TITLE}, Failure Response Format"
_UNDECIDED = f"{TITLE}, Undecided Points"
_SIBLING = "Invariants of the gateway the failure model belongs to"
_FAILURES = "pactgate.core.failures"
_READER = "pactgate.upstreams.rest.response:ResponseReader"

REQUIREMENTS = (
    Requirement(
        id="S4/F1",
        statement="A request that breaks the protocol or an invariant of ours ends in a JSON-RPC error of the right "
        "code, and nothing was sent upstream.",
        source=f"{_TAXONOMY}, 1. ContractViolation",
        enforced_by=(
            "pactgate.pipeline.kernel:Kernel.start",
            "pactgate.pipeline.pre_gates:ParseParams",
            f"{_FAILURES}:TABLE",
        ),
    ),
    Requirement(
        id="S4/F2",
        statement="An upstream that answered badly is a tool result with isError, while the record keeps the category "
        "and the gateway stays healthy.",
        source=f"{_TAXONOMY}, 2. UpstreamFailure",
        enforced_by=(
            f"{_FAILURES}:TABLE",
            f"{_FAILURES}:to_reply",
            _READER,
        ),
    ),
    Requirement(
        id="S4/F3",
        statement="A timeout is the error -32603 with failure_mode timeout, the tool and the limit; every other "
        "trouble of the transport is a tool result with isError.",
        source=f"{_TAXONOMY}, 3. TransportFailure",
        enforced_by=(
            "pactgate.pipeline.tool_call:ToolCall.run",
            f"{_FAILURES}:to_reply",
        ),
    ),
    Requirement(
        id="S4/F4",
        statement="A configuration with a mistake in it stops the start, with every mistake listed, before anything "
        "is spawned or bound.",
        source=f"{_TAXONOMY}, 4. ConfigurationError",
        enforced_by=(
            "pactgate.config.load:load",
            "pactgate.config.problems:ConfigurationError",
        ),
    ),
    Requirement(
        id="S4/R1",
        statement="Every failure is of a defined kind, and a handler for any exception stands only at a boundary, with "
        "its reason; what it catches is recorded and none of its text reaches the wire.",
        source=f"{_RULES}, Rule 1: Failures Must Be Explicit",
        enforced_by=(
            "pactgate.pipeline.kernel:Kernel.start",
            f"{_FAILURES}:Kind",
        ),
    ),
    Requirement(
        id="S4/R2",
        statement="What can be read in two ways is refused: missing arguments, unknown and ambiguous tools, blank "
        "ids, repeated JSON keys.",
        source=f"{_RULES}, Rule 2: Ambiguity Must Hard-Fail",
        enforced_by=(
            "pactgate.catalog.index:NameIndex.resolve",
            "pactgate.pipeline.pre_gates:ValidateInput",
            "pactgate.protocol.messages:decode",
        ),
    ),
    Requirement(
        id="S4/R3",
        statement="Partial, missing or unexpected data of an upstream is never turned into success.",
        source=f"{_RULES}, Rule 3: No Silent Degradation",
        enforced_by=(
            _READER,
            "pactgate.pipeline.post_gates:CheckResult",
            "pactgate.pipeline.post_gates:ValidateOutput",
        ),
    ),
    Requirement(
        id="S4/R4",
        statement="The execution context is made from the request alone, binds one tool once, keeps the failure, is "
        "sealed on every return and then refuses every change.",
        source=f"{_RULES}, Rule 4: Context Preserves Failure State",
        enforced_by=(
            "pactgate.core.context:ExecutionContext",
            "pactgate.core.frozen:FrozenTable",
            "pactgate.pipeline.kernel:Kernel.start",
        ),
    ),
    Requirement(
        id="S4/FMT-ERR",
        statement="Every error response echoes the id with its type and has data with failure_mode, and with the tool "
        "where one is known.",
        source=f"{_FORMAT}, Error Response Structure",
        enforced_by=(
            "pactgate.core.failures:to_reply",
            "pactgate.protocol.messages:encode_error",
        ),
    ),
    Requirement(
        id="S4/FMT-RES",
        statement="A failure shown as a tool result has one text content that explains it, and isError: true.",
        source=f"{_FORMAT}, Tool Error Result Structure",
        enforced_by=(f"{_FAILURES}:error_result",),
    ),
    Requirement(
        id="S4/CODES",
        statement="Parse, request, method and params violations are -32700, -32600, -32601 and -32602, transport "
        "failures shown as errors are -32603, and upstream failures are no errors at all.",
        source=f"{TITLE}, Error Code Mapping",
        enforced_by=(f"{_FAILURES}:TABLE",),
    ),
    Requirement(
        id="S4/NONGOALS",
        statement="A tool call goes upstream at most once, whatever kind of failure it meets; only connecting is "
        "tried again.",
        source=f"{TITLE}, Non-Goals",
        enforced_by=("pactgate.pipeline.dispatch:Dispatch",),
    ),
    Requirement(
        id="S4/UNDECIDED-1",
        statement="An empty upstream answer is an error unless the endpoint declares none or the status says so (204, "
        "205); an empty list is an answer.",
        source=f"{_UNDECIDED}, 1",
        enforced_by=(_READER,),
    ),
    Requirement(
        id="S4/UNDECIDED-2",
        statement="Invalid configuration stops the start with exit code 2; a server that can't be reached does not.",
        source=f"{_UNDECIDED}, 2",
        enforced_by=(
            "pactgate.config.load:load",
            "pactgate.cli.serve:serve",
        ),
    ),
    Requirement(
        id="S4/UNDECIDED-3",
        statement="An answer without the fields its schema requires is INVALID_OUTPUT; where nothing is declared it "
        "passes unchanged and is marked as not validated.",
        source=f"{_UNDECIDED}, 3",
        enforced_by=("pactgate.pipeline.post_gates:ValidateOutput", _READER),
    ),
    Requirement(
        id="S4/UNDECIDED-4",
        statement="An endpoint that promises JSON and answers anything else has failed as an upstream; an MCP server "
        "that does not answer in JSON-RPC is a failed transport.",
        source=f"{_UNDECIDED}, 4",
        enforced_by=(_READER, "pactgate.upstreams.http.streamable:HttpChannel"),
    ),
    Requirement(
        id="S4/SIB-3",
        statement="A message with members outside the JSON-RPC envelope is refused, while unknown members of params "
        "and _meta pass.",
        source=f"{_SIBLING}, 3: protocol models refuse extra fields",
        enforced_by=("pactgate.protocol.messages:decode",),
    ),
    Requirement(
        id="S4/SIB-4",
        statement="Every request of every face enters through one method of one class, and none gets around it.",
        source=f"{_SIBLING}, 4: one entry point",
        enforced_by=("pactgate.pipeline.kernel:Kernel.start", "pactgate.inbound.replies:Kernel"),
    ),
    Requirement(
        id="S4/SIB-5",
        statement="The set of tools a request sees can't change while it runs: discovery builds a new one and swaps "
        "it in whole.",
        source=f"{_SIBLING}, 5: the registry of tools is immutable",
        enforced_by=(
            "pactgate.catalog.catalog:Catalog",
            "pactgate.catalog.connections:Connections",
        ),
    ),
)
