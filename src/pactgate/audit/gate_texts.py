"""The gates of a call in the words of a user. Must not: know what a gate does beyond these words."""

from __future__ import annotations

from typing import Final

GATE_TEXTS: Final = {
    "parse_params": ("read the parameters", "read the parameters"),
    "resolve_tool": ("found the tool", "find the tool"),
    "authorize": ("checked access", "check access"),
    "check_scope": ("checked the scope of the token", "check the scope of the token"),
    "check_header_params": ("checked headers", "check headers"),
    "check_limits": ("checked the limits", "check the limits"),
    "rate_limit": ("checked the rate limit", "check the rate limit"),
    "validate_input": ("validated the arguments", "validate the arguments"),
    "answer_search": ("searched the tools", "search the tools"),
    "cache_lookup": ("looked in the cache", "look in the cache"),
    "dispatch": ("called the server", "call the server"),
    "check_result": ("checked the result", "check the result"),
    "check_effects": ("checked the effects", "check the effects"),
    "validate_output": ("validated the output", "validate the output"),
    "limit_size": ("checked the size", "check the size"),
    "cache_store": ("stored in the cache", "store in the cache"),
    "adapt_for_client": ("adapted to the client's version", "adapt to the client's version"),
    "add_envelope": ("added metadata", "add metadata"),
}
"""What each gate did, and what it does, in a user's words."""


def gate_text(gate: str, *, is_past: bool) -> str:
    """What the gate did, where the call has passed it, else what it does."""
    done, does = GATE_TEXTS.get(gate, (gate, gate))
    return done if is_past else does
