"""S3: what the checker of captured sessions promises."""

from __future__ import annotations

from tests.requirements.entry import Requirement

TITLE = "Conformance invariants"

_FAMILY = f"{TITLE}, The INV-NNN family"
_COMPOSITION = f"{TITLE}, Multi-server composition safety"
_RULES = "pactgate.conformance.rules"

REQUIREMENTS = (
    Requirement(
        id="S3/CLI",
        statement="`compliance invariants --capture FILE` contacts nobody, prints text or JSON, and exits 0 only when "
        "every invariant holds and no composition hazard was found, else 1.",
        source=f"{TITLE}, Running them",
        enforced_by=("pactgate.cli.compliance:invariants", "pactgate.conformance.report:ComplianceReport.exit_code"),
    ),
    Requirement(
        id="S3/CAPTURE",
        statement="A capture is one session object or an array of them, with a label, the capability block (absent "
        "means null) and the ordered exchanges; a notification is an exchange without a response.",
        source=f"{TITLE}, Capture format",
        enforced_by=("pactgate.capture.format:read",),
    ),
    Requirement(
        id="S3/INV-001",
        statement="The first request of a legacy session is initialize.",
        source=f"{_FAMILY}, INV-001",
        enforced_by=(f"{_RULES}.inv.inv001_initialize_not_first:InitializeNotFirst",),
    ),
    Requirement(
        id="S3/INV-002",
        statement="notifications/initialized follows the answer to initialize, before any other request but ping; its "
        "absence is a breach.",
        source=f"{_FAMILY}, INV-002",
        enforced_by=(f"{_RULES}.inv.inv002_initialized_missing:InitializedMissing",),
    ),
    Requirement(
        id="S3/INV-003",
        statement="A server that answers tools/list, resources/list or prompts/list had advertised that capability.",
        source=f"{_FAMILY}, INV-003",
        enforced_by=(f"{_RULES}.inv.inv003_list_without_capability:ListWithoutCapability",),
    ),
    Requirement(
        id="S3/INV-004",
        statement="A server does not answer every call to a capability it advertised with an error.",
        source=f"{_FAMILY}, INV-004",
        enforced_by=(f"{_RULES}.inv.inv004_capability_always_fails:CapabilityAlwaysFails",),
    ),
    Requirement(
        id="S3/INV-005",
        statement="A successful tools/call result has a content array or structured content, and isError is a boolean "
        "where it is there.",
        source=f"{_FAMILY}, INV-005",
        enforced_by=(f"{_RULES}.inv.inv005_tool_result_misshapen:ToolResultMisshapen",),
    ),
    Requirement(
        id="S3/INV-006",
        statement="Every JSON-RPC error has an integer code and a string message.",
        source=f"{_FAMILY}, INV-006",
        enforced_by=(f"{_RULES}.inv.inv006_error_misshapen:ErrorMisshapen",),
    ),
    Requirement(
        id="S3/INV-007",
        statement="An error that says a method is unknown has the code -32601.",
        source=f"{_FAMILY}, INV-007",
        enforced_by=(f"{_RULES}.inv.inv007_method_not_found_code:MethodNotFoundCode",),
    ),
    Requirement(
        id="S3/COMP-OVERLAP",
        statement="Two sessions whose servers offer the same unprefixed tool name are a hazard that names the tool "
        "and the servers.",
        source=f"{_COMPOSITION}, Tool-namespace overlap",
        enforced_by=(f"{_RULES}.composition.comp001_tool_namespace_overlap:ToolNamespaceOverlap",),
    ),
    Requirement(
        id="S3/COMP-ID",
        statement="One request id used towards two servers is a hazard; ids of different types are different ids.",
        source=f"{_COMPOSITION}, Shared-transport id collision",
        enforced_by=(f"{_RULES}.composition.comp002_request_id_collision:RequestIdCollision",),
    ),
    Requirement(
        id="S3/SCOPE",
        statement="The checker judges one run of one developer, without a network, a fleet or a score.",
        source=_COMPOSITION,
        enforced_by=("pactgate.conformance.check:check_capture",),
    ),
)
