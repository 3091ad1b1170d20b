"""The editor of JSON and YAML follows the style of the text around an edit."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.config.problems import ConfigFindings, EditError
from pactgate.config.reader import Format, read
from pactgate.config.text_edit import TextEditor, block_text, nested


def editor(text: str, form: Format) -> TextEditor:
    found = ConfigFindings("")
    return TextEditor(text, read(text, form, found), found.positions, form)


def test_members_of_yaml_are_written_one_a_line_and_keys_that_are_words_in_quotes() -> None:
    members: dict[str, Any] = {"a.b": {"true": [1, "x"]}, "c d": {}, "e": None}
    assert block_text("  ", members) == '  a.b:\n    "true": [1, "x"]\n  "c d": {}\n  e: null'


def test_a_value_is_nested_under_its_path() -> None:
    assert nested(("a", "b"), 1) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("form", "before", "after"),
    [
        (Format.JSON, '{\r\n    "a": 1\r\n}\r\n', '{\r\n    "a": 1,\r\n    "b": {\r\n        "c": 1\r\n    }\r\n}\r\n'),
        (Format.JSON, '{ "a": 1,\n  "x": 2 }', '{ "a": 1,\n  "x": 2, "b": {"c": 1} }'),
        (Format.YAML, "a: 1\r\nx: 2\r\n", "a: 1\r\nx: 2\r\nb:\r\n  c: 1\r\n"),
        (Format.YAML, "a: |\n  text\n\n# end\n", "a: |\n  text\nb:\n  c: 1\n\n# end\n"),
        (Format.YAML, "{a: 1, # one\n}\n", '{a: 1, # one\n  b: {\n    "c": 1\n  }\n}\n'),
    ],
)
def test_a_new_member_has_the_indentation_and_line_ends_of_its_neighbours(
    form: Format, before: str, after: str
) -> None:
    assert editor(before, form).put(("b", "c"), 1) == after


def test_an_edit_within_an_alias_is_refused() -> None:
    with pytest.raises(EditError):
        editor("a: &x {b: 1}\nc: *x\n", Format.YAML).remove(("c", "b"))
