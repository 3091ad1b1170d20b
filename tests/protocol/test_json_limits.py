"""How deep, how many parts, no key twice. (What becomes of a message that breaks this: `test_messages`.)"""

from __future__ import annotations

import pytest

from pactgate.protocol import json_limits, messages


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


@pytest.mark.parametrize(
    ("text", "has_more"),
    [
        (b"[%b1]" % (b"1," * 1000), True),
        (b"[%b1]" % (b"1," * 98), False),
        (b'[%b""]' % (b'"",' * 1000), True),
        (b'[%b""]' % (b'"\\"",' * 1000), True),
        (b"[%b[]]" % (b"[]," * 1000), True),
        (b"{%b}" % b",".join(b'"%d":1' % number for number in range(1000)), True),
        (b'["%b"]' % (b",[{" * 1000), False),
        (b'["\\"%b"]' % (b",[{" * 1000), False),
        (b'["\\\\",%b1]' % (b"1," * 1000), True),
        (b'["%b"]' % (b"\\\\" * 1000), False),
        (b'["%b"]' % (b'\\"' * 1000), False),
        (b'["",%b' % (b"1," * 1000), True),
        (b"[" * 1000, True),
    ],
)
def test_values_are_counted_outside_of_strings_only(text: bytes, has_more: bool) -> None:
    assert json_limits.has_more_values(text, 100) is has_more


def test_a_window_may_end_anywhere_in_a_string() -> None:
    inside = b'["%b",1]' % (b",[" * 200_000)
    assert not json_limits.has_more_values(inside, 100)
    assert json_limits.has_more_values(inside[:-1] + b",%b1]" % (b"1," * 100), 100)


@pytest.mark.parametrize("character", [b"a", b"\\n", b"\\u003a", b'\\"', b"true or false", b"\xc3\xa9"])
@pytest.mark.parametrize("shift", range(4))
def test_a_run_of_twice_the_size_is_found_wherever_it_begins(character: bytes, shift: int) -> None:
    text = b'[%b"%b"]' % (b" " * shift, character * (2000 // len(character) + 1))
    assert json_limits.has_long_run(text, 1000)


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"[%b1]" % (b" " * 5000),
        b"[%b1]" % (b"-1.5e400, " * 5000),
        b"[%b1]" % (b"true,false,null,[{}]," * 5000),
        b'["%b"]' % b'","'.join([b"a" * 900] * 20),
        b'["%b"]' % b'","'.join([b'\\"' * 450] * 20),
        b'["%b"]' % b'","'.join([b"\\\\" * 450] * 20),
        b"{%b}" % b",".join([b'"%b":"%b"' % (b"k" * 900, b'a\\"' * 300)] * 20),
    ],
)
def test_short_strings_are_no_run_however_many_there_are(text: bytes) -> None:
    assert not json_limits.has_long_run(text, 1000)


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        (b"{}", False),
        (b'{"a":{"b":1,"b":2}}', False),
        (b'{"a":1,"a":{"b":":"}}', True),
        (b'{"a" : 1 , "\\u0061" : 2}', True),
        (b'{"a:":1,"b":":"}', False),
        (b'{"a:":1,"a\\u003a":2}', True),
        (b'{"a":"\\u003a","b":"\\u003c"}', False),
    ],
)
def test_a_repeated_member_is_found_at_the_first_level(text: bytes, is_repeated: bool) -> None:
    assert json_limits.has_duplicate_member(text) is is_repeated


@pytest.mark.parametrize(
    ("text", "is_repeated"),
    [
        (b'{"a":{"b":1,"b":2}}', True),
        (b'{"a":1e400,"b":[{"c":1},{"c":1}]}', False),
        (b'{"a":1e400,"b":{"c":1,"c":1}}', True),
        (b'{"a":"\\u003a","b":{"c":1,"c":":"}}', True),
        (b"[%b1]" % (b"9" * 5000 + b","), False),
    ],
)
def test_a_repeated_key_is_found_with_the_decoded_value(text: bytes, is_repeated: bool) -> None:
    assert json_limits.repeats_key(text, messages.value(text)) is is_repeated


def test_what_has_too_many_values_to_search_may_repeat_a_key() -> None:
    assert json_limits.may_repeat_key(b'{"a":1,"a":1}')
    assert not json_limits.may_repeat_key(b'{"a":1,"b":1}')
    assert json_limits.may_repeat_key(b"[%b1]" % (b"1," * 2_000_000))
