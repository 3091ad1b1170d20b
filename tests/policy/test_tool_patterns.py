"""Which setting by name counts for a tool."""

from __future__ import annotations

import pytest

from pactgate.policy.tool_patterns import most_specific


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), None),
        (("crm.*",), None),
        (("*", "files.*", "files.read_*"), "files.read_*"),
        (("files.read_*", "files.*", "*"), "files.read_*"),
        (("files.read_*_and_more_*", "files.read_text"), "files.read_text"),
        (("files.read_t*t", "files.read_te*"), "files.read_t*t"),
        (("files.*_text", "files.read_*"), "files.*_text"),
        (("files.read_tex?", "files.read_text?"), "files.read_tex?"),
        (("FILES.*",), None),
        (("read_text",), None),
    ],
)
def test_the_name_itself_counts_then_the_longest_pattern_then_the_first(
    patterns: tuple[str, ...], expected: str | None
) -> None:
    assert most_specific("files.read_text", patterns) == expected


def test_brackets_stand_for_themselves() -> None:
    assert most_specific("files.a", ["files.[abc]"]) is None
    assert most_specific("files.[abc]x", ["files.[abc]?"]) == "files.[abc]?"


def test_stars_without_end_are_matched_at_once() -> None:
    assert most_specific("a" * 300, ["*a" * 60 + "b"]) is None
