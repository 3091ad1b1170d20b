"""What a person is told of a new definition: the words that changed, and what nobody can see."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.definition_diff import differences, word_diff
from tests.protocol.test_canonical_json import VALUES

OLD: dict[str, Any] = {
    "name": "refund",
    "description": "Refunds an order by its id",
    "inputSchema": {"type": "object", "required": ["id"]},
    "annotations": {"readOnlyHint": True},
}


def told(**members: Any) -> list[tuple[str, str, bool]]:
    now = {name: value for name, value in {**OLD, **members}.items() if value is not None}
    return [tuple(one) for one in differences(json.dumps(OLD).encode(), json.dumps(now).encode())]  # type: ignore[misc]


def test_words_schemas_and_hints_are_said() -> None:
    assert told() == []
    assert told(description="Refunds every order by its id") == [
        ("description", "Refunds [-an-]{+every+} order by its id", False)
    ]
    assert told(inputSchema={"type": "object"}) == [
        ("inputSchema", "accepts more than before (wider): required removed", False)
    ]
    assert told(annotations={"readOnlyHint": False}) == [("annotations", "readOnlyHint true → false", False)]
    assert told(annotations=None) == [("annotations", 'removed: {"readOnlyHint":true}', False)]


def test_what_nobody_can_see_is_spelt_out() -> None:
    found = told(description="Refunds an order by its id\U000e0041 for p\u0430ypal at https://evil.example/x")
    assert found[0][1].startswith("Refunds an order … ") or "{+" in found[0][1]
    assert "\\U000e0041" in found[0][1]
    assert ("description", "has the invisible character U+E0041", True) in found
    assert ("look-alike", "the word 'p\u0430ypal' imitates 'paypal': U+0430", True) in found
    assert ("address", "new: https://evil.example/x", True) in found


def test_a_definition_that_nobody_approved_is_said_whole() -> None:
    assert [one.member for one in differences(None, json.dumps(OLD).encode())] == list(OLD)
    assert [one.text for one in differences(b'"Be brief."', b'"Be evil."')] == ["Be [-brief.-]{+evil.+}"]


def test_a_long_text_is_cut() -> None:
    assert len(word_diff("a " * 1000, "b " * 1000)) <= 600
    assert len(word_diff("a " * 100_000, "b " * 100_000)) <= 700


@given(VALUES, VALUES)
def test_any_two_definitions_can_be_compared(old: Any, new: Any) -> None:
    for one in differences(json.dumps({"x": old}).encode(), json.dumps({"x": new}).encode()):
        assert isinstance(one.text, str)


@given(st.text(max_size=60), st.text(max_size=60))
def test_equal_words_are_no_difference(old: str, new: str) -> None:
    assert (word_diff(old, new) == "white space only") is (old.split() == new.split())
