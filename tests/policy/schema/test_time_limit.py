"""Sameness of items. What the time limit does is shown by tests/policy/test_schema_bounds.py."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema._utils import equal

from pactgate.policy.schema.time_limit import has_duplicates
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
    assert has_duplicates(items) is expected


@given(st.lists(VALUES, max_size=5))
def test_duplicates_are_found_as_comparing_all_pairs_does(items: list[Any]) -> None:
    assert has_duplicates(items) == any(equal(one, other) for one, other in combinations(items, 2))
