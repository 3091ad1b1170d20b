"""How deep, how many parts, no key twice. (What becomes of a message that breaks this: `test_messages`.)"""

from __future__ import annotations

import pytest

from pactgate.protocol import json_limits


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        (b"[" * 64 + b"]" * 64, True),
        (b"[" * 65 + b"]" * 65, False),
        (b'{"a":' * 65 + b"1" + b"}" * 65, False),
        (b"[" + b"[]," * 1000 + b"1]", True),
        (b'"%b"' % (b"[" * 1000), True),
        (b'"\\"%b"' % (b"[" * 1000), True),
        (b'["\\\\",%b' % (b"[" * 70), False),
    ],
)
def test_levels_count_outside_of_strings_only(text: bytes, is_fine: bool) -> None:
    assert (json_limits.check_shape(text, 64) is None) is is_fine


def test_more_containers_than_a_message_may_hold_are_too_many() -> None:
    assert json_limits.check_shape(b"[%b1]" % (b"[]," * json_limits.MAX_CONTAINERS), 64) is not None


@pytest.mark.requirement("S4/R2")
@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        (b'{"a":1,"b":2}', None),
        (b'[{"a":1},{"a":2}]', None),
        (b'{"a":{"a":{"a":1}}}', None),
        (b'{"a":"b:c:","d":"http://x"}', None),
        (b'{"a":1e400,"b":2}', None),
        (b'{"a":"\\u003a","b":2}', None),
        (b'{"a":1,"a":1}', "a"),
        (b'{"a":1,"\\u0061":1}', "a"),
        (b'[[{"a":1,"b":{"c":1,"d":2,"c":3}}]]', "c"),
        (b'{"a":1,"a":2,"b":"\\u003a"}', "a"),
        (b'{"a":1,"a":":","b":"\\u003A\\u003a"}', "a"),
        (b'{"a:":1,"a:":2}', "a:"),
        (b'{"a":%b,"b":1,"b":1}' % (b"9" * 5000), "b"),
        (b'{"":1,"":2}', ""),
    ],
)
def test_a_repeated_key_is_found_at_any_depth_and_in_any_spelling(text: bytes, repeated: str | None) -> None:
    assert json_limits.find_duplicate_key(text) == repeated
