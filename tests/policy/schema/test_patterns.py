"""How long a string each pattern may meet."""

from __future__ import annotations

import random
import time

import pytest
from jsonschema_rs import Draft202012Validator

from pactgate.policy.schema.patterns import ENGINE, MAX_PATTERN_CHARS, UnsupportedSchemaError, measure_pattern

MAX_S = 0.3
"""The bound is 50 milliseconds; the rest is for slow machines."""


@pytest.mark.parametrize(
    ("pattern", "least_bytes"),
    [
        ("", 500_000),
        ("^(a+)+$", 500_000),
        ("^[A-Za-z0-9+/]*={0,2}$", 500_000),
        (r"^\d{4}-\d{2}-\d{2}$", 500_000),
        (r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", 100_000),
        (r"^[\w.-]{1,255}$", 2_000),
        (r"^.{1,500}$", 1_000),
        (r"^(?!\s*$).+", 10_000),
        (r"^(?=.*[A-Z])(?=.*\d).{8,64}$", 1_000),
        (r"(?:(?!--)[a-z])+", 256),
        (r"(a+)\1", 256),
    ],
)
def test_an_ordinary_pattern_may_meet_long_strings(pattern: str, least_bytes: int) -> None:
    assert measure_pattern(pattern).max_bytes >= least_bytes


@pytest.mark.parametrize("pattern", ["(", "[", "a" * (MAX_PATTERN_CHARS + 1), "((a{1,100}){1,100}){1,100}"])
def test_what_is_no_pattern_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedSchemaError):
        measure_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "alphabet"),
    [
        ("^(a|aa)+$", "a"),
        ("[01]*1[01]{15}x", "01"),
        ("[01]*1[01]{200}x", "01"),
        ("[01]*1[01]{3000}x", "01"),
        (".*é.{200}x", "éa"),
        ("([01]*1[01]{20}){5}x", "01"),
        (r"^(?=[01]*1[01]{100}x)", "01"),
        (r"(?=[01]*1[01]{100}x)", "01"),
        (r"(?:(?=.*z)(?=.*z)(?=.*z)a){1,500}x", "az"),
        (r"(?:(?=(?:(?=.*z)a)*)a)*x", "aaaaaaaz"),
        (r"^(a+)+\1$", "ab"),
    ],
)
@pytest.mark.timing
def test_no_string_a_pattern_may_meet_takes_long(pattern: str, alphabet: str) -> None:
    max_bytes = measure_pattern(pattern).max_bytes
    value = "".join(random.Random(3).choices(alphabet, k=max_bytes // len(max(alphabet).encode())))
    engine = Draft202012Validator({"pattern": pattern}, pattern_options=ENGINE, offline=True)
    began = time.thread_time()
    engine.is_valid(value)
    assert time.thread_time() - began < MAX_S
