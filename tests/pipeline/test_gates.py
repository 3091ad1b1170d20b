"""The order of the gates: what is checked before what."""

from __future__ import annotations

from pactgate.app import build
from pactgate.config.model import Config


def test_a_call_meets_the_gates_in_this_order() -> None:
    assert [gate.name for gate in build(Config(), lambda event: None).tool_call.gates] == [
        "parse_params",
        "resolve_tool",
        "authorize",
        "check_scope",
        "check_header_params",
        "check_limits",
        "rate_limit",
        "validate_input",
        "answer_search",
        "cache_lookup",
        "dispatch",
        "check_result",
        "check_effects",
        "validate_output",
        "limit_size",
        "cache_store",
        "adapt_for_client",
        "add_envelope",
    ]
