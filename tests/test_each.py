"""A table in one test: every case is played, and the first that fails is named. Else thousands of cases could fail unseen."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from tests.support.each import each


def test_every_case_is_played_and_pytest_is_asked_for_the_fixtures_only() -> None:
    played: list[tuple[str, int, str]] = []

    @each("letter", "xy")
    @each("number", [1, 2])
    async def note(folder: str, number: int, letter: str) -> None:
        played.append((folder, number, letter))

    assert list(inspect.signature(note).parameters) == ["folder"]
    asyncio.run(note(folder="f"))
    assert played == [("f", 1, "x"), ("f", 2, "x"), ("f", 1, "y"), ("f", 2, "y")]


def test_the_case_that_fails_is_named() -> None:
    @each(("a", "b"), [(1, 1), (1, 2), (2, 3)])
    def compare(a: int, b: int) -> None:
        assert a == b

    with pytest.raises(AssertionError) as failed:
        compare()
    assert failed.value.__notes__ == ["with a=1, b=2"]


def test_a_table_without_cases_is_refused() -> None:
    with pytest.raises(AssertionError, match="proves nothing"):
        each("a", [])
