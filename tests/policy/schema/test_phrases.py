"""Phrases for what a schema asks for, and sameness of items."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema._utils import equal

from pactgate.policy.schema.phrases import ASSERTIONS, count_of_values, has_twins, names_of_types, sentence
from tests.policy.schema_making import VALUES


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], False),
        ([1, 2], False),
        ([1, 1.0], True),
        ([1, True], False),
        ([0, False], False),
        ([0, -0.0], True),
        ([1, "1"], False),
        ([None, "None"], False),
        (["=None", None], False),
        ([[1], [1.0]], True),
        ([[1, 2], [2, 1]], False),
        ([[], {}], False),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], True),
        ([{"a": [True]}, {"a": [1]}], False),
        ([2**64, 2**64 + 1], False),
        ([2**64, float(2**64)], True),
        ([10**400, Decimal("1e400")], True),
        ([Decimal("1e400"), Decimal("1E+400"), 5], True),
        ([Decimal("1e400"), Decimal("-1e400")], False),
        ([Decimal("1e99999999"), Decimal("1e99999998")], False),
        ([10**300, 1e300], False),
        ([0.1, 0.1], True),
    ],
)
def test_items_are_the_same_as_json_schema_counts(items: list[Any], expected: bool) -> None:
    assert has_twins(items) is expected


@pytest.mark.parametrize("value", [None, "aa", {"a": 1}, 11])
def test_only_lists_have_twins(value: Any) -> None:
    assert not has_twins(value)


@given(st.lists(VALUES, max_size=5))
def test_twins_are_found_as_comparing_all_pairs_does(items: list[Any]) -> None:
    assert has_twins(items) == any(equal(one, other) for one, other in combinations(items, 2))


@given(VALUES, st.integers(1, 5))
def test_values_are_counted_up_to_a_bound(value: Any, most: int) -> None:
    holder = [value]
    count = json.dumps(holder).count(",") + json.dumps(holder).count("[") + json.dumps(holder).count("{")
    assert count_of_values(holder, 10**6) >= count
    assert count_of_values([0] * 1000, most) == 1001


def test_every_assertion_has_a_phrase_that_fits_on_a_line() -> None:
    for keyword in ASSERTIONS:
        for wanted in (5, "x" * 9000, ["a\n\x1b", None], [["integer", "null"]][0]):
            if isinstance(wanted, list) or keyword != "enum":
                phrase = sentence(keyword, wanted)
                assert phrase.startswith("must ")
                assert phrase.isprintable()
                assert len(phrase) < 600


def test_types_are_named_once_each() -> None:
    assert names_of_types(["string", ["null", "string"], "integer"]) == "a string or null or a whole number"
