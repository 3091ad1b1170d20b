"""Where two answers differ."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.capture.differences import differences, normalized


def places(before: Any, after: Any) -> list[tuple[str, str]]:
    return [(each.pointer, each.kind) for each in differences({"result": before}, {"result": after})]


def test_a_difference_is_named_by_its_place() -> None:
    assert places({"a": {"b/c": [1, 2]}, "x": 1}, {"a": {"b/c": [1, 3, 4]}, "y": 1}) == [
        ("/result/a/b~1c/1", "changed"),
        ("/result/a/b~1c/2", "added"),
        ("/result/x", "removed"),
        ("/result/y", "added"),
    ]


def test_a_result_and_an_error_differ() -> None:
    found = differences({"result": {}}, {"error": {"code": 1, "message": "no"}})
    assert [(each.pointer, each.kind) for each in found] == [("/result", "removed"), ("/error", "added")]


def test_true_and_one_differ() -> None:
    assert places({"a": True}, {"a": 1}) == [("/result/a", "changed")]


def test_the_order_of_named_things_is_no_difference_but_their_content_is() -> None:
    before = {"tools": [{"name": "a"}, {"name": "b", "title": "B"}]}
    after = {"tools": [{"name": "b", "title": "C"}, {"name": "a"}]}
    assert places(before, after) == [("/result/tools/b/title", "changed")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-16T13:00:00Z", "at 2027-01-02T03:04:05.123+02:00"),
        ("on 2026-11-16", "on 2020-01-01"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-0000-0000-000000000000"),
    ],
)
def test_times_and_uuids_inside_texts_are_the_same(one: str, other: str) -> None:
    assert one != other
    assert normalized(one) == normalized(other)


def test_opaque_values_and_members_of_one_era_are_the_same_but_a_missing_cursor_is_not() -> None:
    legacy = {"tools": [], "nextCursor": "abc"}
    modern = {
        "tools": [],
        "nextCursor": "xyz",
        "resultType": "complete",
        "ttlMs": 5,
        "cacheScope": "private",
        "_meta": {},
    }
    assert places(legacy, modern) == []
    assert places(legacy, {"tools": []}) == [("/result/nextCursor", "removed")]


def test_what_is_shown_is_bounded() -> None:
    (found,) = differences({"result": {"a": "x" * 10_000}}, {"result": {"a": 1}})
    assert found.before is not None
    assert len(found.before) <= 200
