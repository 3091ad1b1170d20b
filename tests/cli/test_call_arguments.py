"""From words on the command line to the arguments of a call."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.cli.call import read_arguments
from pactgate.cli.errors import CommandError

SCHEMA: dict[str, Any] = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "flag": {"type": ["boolean", "null"]},
        "names": {"type": "array"},
        "loose": {"type": ["string", "integer"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "number": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        "any": {},
        "odd": True,
    }
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["text=5"], {"text": "5"}),
        (["text="], {"text": ""}),
        (["text=a=b"], {"text": "a=b"}),
        (["count=5", "flag=null", 'names=["a"]'], {"count": 5, "flag": None, "names": ["a"]}),
        (
            ["loose=5", "either=5", "any=5", "odd=5", "unknown=5"],
            dict.fromkeys(["loose", "either", "any", "odd", "unknown"], "5"),
        ),
        (["number=0.5"], {"number": 0.5}),
        (["text:=5", "any:={}"], {"text": 5, "any": {}}),
        (["count=18446744073709551616"], {"count": 2**64}),
        (["text=1", "text=2"], {"text": "2"}),
        (["text=naïve 東京"], {"text": "naïve 東京"}),
    ],
)
def test_text_stays_text_unless_the_schema_or_the_caller_wants_json(words: list[str], expected: dict[str, Any]) -> None:
    assert read_arguments(words, None, SCHEMA) == expected


def test_single_words_go_over_the_object() -> None:
    assert read_arguments(["b=2"], '{"a": 1, "b": 1}', {}) == {"a": 1, "b": "2"}


def test_without_a_schema_everything_is_text() -> None:
    assert read_arguments(["a=5"], None, {}) == {"a": "5"}
    assert read_arguments(["a=5"], None, {"properties": []}) == {"a": "5"}


@pytest.mark.parametrize(
    ("words", "args"),
    [
        (["word"], None),
        (["=5"], None),
        ([":=5"], None),
        (["count=five"], None),
        (["count=NaN"], None),
        (["a:=five"], None),
        (["a:=" + "[" * 100_000], None),
        ([], "[]"),
        ([], "{"),
        (["text=\udcff"], None),
    ],
)
def test_what_can_not_be_read_is_a_wrong_invocation(words: list[str], args: str | None) -> None:
    with pytest.raises(CommandError):
        read_arguments(words, args, SCHEMA)


def test_the_complaint_says_what_the_tool_wants() -> None:
    with pytest.raises(CommandError, match="integer"):
        read_arguments(["count=five"], None, SCHEMA)
