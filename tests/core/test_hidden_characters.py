"""Characters that a model reads and a person does not see."""

from __future__ import annotations

import pytest

from pactgate.core.hidden_characters import MAX_TEXTS, find_hidden, hidden_in


@pytest.mark.parametrize(
    ("text", "code_point"),
    [
        ("a\u200bb", "U+200B"),
        ("a\u202eb", "U+202E"),
        ("\x1b[2J", "U+001B"),
        ("a\U000e0049", "U+E0049"),
        ("a\u3164b", "U+3164"),
        ("pass\u200dword", "U+200D"),
        ("ordinary text\nin lines\tand tabs", None),
        ("naïve café, 東京 👩\u200d🚀", None),
        ("नमस्\u200dते", None),
    ],
)
def test_hidden_characters_are_found_and_useful_joiners_are_not(text: str, code_point: str | None) -> None:
    assert find_hidden(text) == code_point


def test_every_text_and_member_name_of_a_value_is_looked_at() -> None:
    found = hidden_in({"title": "a", "properties": [{"description": "x\u2060"}]})
    assert found is not None
    assert (found.place, found.code_point) == (("properties", 0, "description"), "U+2060")
    assert hidden_in({"a": {"b\u200b": 1}}) is not None
    assert hidden_in({"a": ["b", 1, None, {"c": "d"}]}) is None


def test_the_search_is_bounded() -> None:
    assert hidden_in(["x"] * MAX_TEXTS + ["\u200b"]) is None
