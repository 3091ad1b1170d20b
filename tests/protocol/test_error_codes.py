"""A refusal keeps its meaning in the caller's era."""

from __future__ import annotations

import pytest

from pactgate.protocol.error_codes import code_for
from pactgate.protocol.messages import ErrorReply
from pactgate.protocol.versions import Era


@pytest.mark.parametrize(
    ("code", "era", "method", "expected"),
    [
        (-32002, Era.MODERN, "resources/read", -32602),
        (-32002, Era.LEGACY, "resources/read", -32002),
        (-32602, Era.LEGACY, "resources/read", -32002),
        (-32602, Era.MODERN, "resources/read", -32602),
        (-32602, Era.LEGACY, "prompts/get", -32602),
        (-32042, Era.MODERN, "prompts/get", -32603),
        (-32042, Era.LEGACY, "prompts/get", -32042),
        (-32023, Era.MODERN, "prompts/get", -32603),
        (-32099, Era.MODERN, "prompts/get", -32603),
        (-32021, Era.MODERN, "prompts/get", -32021),
        (-32000, Era.MODERN, "prompts/get", -32000),
        (7, Era.MODERN, "prompts/get", 7),
    ],
)
def test_a_code_is_one_the_callers_era_has(code: int, era: Era, method: str, expected: int) -> None:
    assert code_for(ErrorReply(1, code, "Resource not found"), era, method) == expected


@pytest.mark.parametrize(
    ("message", "data", "expected"),
    [("uri must be a text", None, -32602), ("no", b'{"uri":"a:b"}', -32002), ("Not Found: a:b", None, -32002)],
)
def test_only_what_clearly_means_missing_is_called_missing(message: str, data: bytes | None, expected: int) -> None:
    assert code_for(ErrorReply(1, -32602, message, data), Era.LEGACY, "resources/read") == expected
