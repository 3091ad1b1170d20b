"""The time limit of a check, and sameness of items. Hostile schemas and values are in tests/policy/test_schema_bounds.py."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema._utils import equal

from pactgate.policy.schema.time_limit import EXPLAIN_LIMIT_S, TIME_LIMIT_S, Clock, has_duplicates
from pactgate.policy.schema.validation import Schema, compile_schema
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


def nested_lists(clock: Clock) -> Schema:
    schema = compile_schema(b'{"type":["array","integer"],"items":{"$ref":"#"}}', clock=clock)
    assert isinstance(schema, Schema)
    return schema


@pytest.mark.requirement("S0/ECO-300")
def test_a_check_ends_undecided_when_the_clock_has_passed_the_limit() -> None:
    schema = nested_lists(count(0.0, TIME_LIMIT_S / 10).__next__)
    assert schema.check(b"[[1]]") == ()
    (error,) = schema.check(b"[[[[[[[[[[[[1]]]]]]]]]]]]")
    assert (error.keyword, error.message) == ("", "the value can't be checked within 50 ms")
    assert schema.check(b"[[1]]") == (), "each check has a limit of its own"


def test_errors_found_before_the_limit_are_told() -> None:
    schema = nested_lists(count(0.0, EXPLAIN_LIMIT_S / 20).__next__)
    errors = schema.check(json.dumps(["x", *range(100)]).encode())
    assert [error.message for error in errors] == ["[0] must be an integer or an array"]
