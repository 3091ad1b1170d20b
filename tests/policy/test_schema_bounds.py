"""Every check ends, whatever a server wrote as a schema and whatever is held against it."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol import messages

MAX_S = 1.0
"""The limit is 50 milliseconds on a quiet machine; without it each of these takes minutes, or for ever."""


def compiled(schema: Any) -> Schema:
    found = compile_schema(json.dumps(schema).encode(), clock=time.thread_time)
    assert isinstance(found, Schema), found
    return found


def nested(levels: int, inside: Any, key: str = "a") -> Any:
    for _ in range(levels):
        inside = {key: inside}
    return inside


def tree(levels: int, leaf: Any) -> Any:
    return leaf if levels == 0 else {"l": tree(levels - 1, leaf), "r": tree(levels - 1, leaf)}


def bits(count: int) -> str:
    return f"{random.Random(1).getrandbits(count):0{count}b}"


def doubling(levels: int, keyword: str) -> dict[str, Any]:
    """Parts that each apply the next one twice to the same value."""
    parts: dict[str, Any] = {
        f"p{n}": {keyword: [{"$ref": f"#/$defs/p{n + 1}"}, {"$ref": f"#/$defs/p{n + 1}"}]} for n in range(levels)
    }
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{levels}": {"type": "object"}}}


def doubling_down(levels: int) -> dict[str, Any]:
    """The same, one level further down each time."""
    parts: dict[str, Any] = {
        f"p{n}": {"properties": {"a": {"anyOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2}}} for n in range(levels)
    }
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{levels}": {"type": "string"}}}


def unevaluated(levels: int, keyword: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": True}, "unevaluatedProperties": False}
    for _ in range(levels):
        schema = {keyword: [schema], "unevaluatedProperties": False}
    return schema


def unevaluated_down(levels: int) -> dict[str, Any]:
    parts: dict[str, Any] = {
        f"p{n}": {"anyOf": [{"properties": {"a": {"$ref": f"#/$defs/p{n + 1}"}}}], "unevaluatedProperties": False}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{levels}": {"type": "string"}}}


def union(count: int) -> dict[str, Any]:
    """An expression of many kinds, none of which its members tell apart."""
    return {
        "anyOf": [{"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}, "required": [f"k{n}"]} for n in range(count)]
    }


def numbers(digits: int, count: int) -> list[int]:
    return [int("7" * digits)] * count


Case = tuple[Any, list[Any]]


def _doubled(levels: int, keyword: str) -> Case:
    return doubling(levels, keyword), [{}, [], 5]


def _doubled_down(levels: int) -> Case:
    return doubling_down(levels), [nested(levels, "x"), nested(levels, 5)]


def _unevaluated(levels: int, keyword: str) -> Case:
    return unevaluated(levels, keyword), [{"a": 1}, {"b": 1}]


HOSTILE: dict[str, Callable[[], Case]] = {
    **{
        f"{keyword} 2^{levels}": partial(_doubled, levels, keyword)
        for keyword in ("allOf", "anyOf", "oneOf")
        for levels in (11, 14, 40)
    },
    **{f"down 2^{levels}": partial(_doubled_down, levels) for levels in (14, 40)},
    **{
        f"unevaluated {keyword} {levels}": partial(_unevaluated, levels, keyword)
        for keyword in ("allOf", "anyOf")
        for levels in (4, 9, 20)
    },
    "unevaluated down": lambda: (unevaluated_down(20), [nested(20, "x"), nested(20, 5)]),
    "allOf in a circle": lambda: (
        {"allOf": [{"properties": {"a": {"$ref": "#"}}}] * 3},
        [nested(60, {}), nested(60, 5)],
    ),
    "union": lambda: (union(9), [tree(4, 5), tree(11, 5), nested(60, 5, "l")]),
    "(a+)+": lambda: ({"items": {"pattern": "^(a+)+$"}}, [["a" * 30 + "b"], ["a" * 2_000_000 + "b"]]),
    "(a|aa)+": lambda: ({"items": {"pattern": "(a|aa)+$"}}, [["a" * 30 + "b"], ["a" * 2_000_000 + "b"]]),
    "a thousand places": lambda: (
        {"items": {"pattern": "[01]*1[01]{1000}x"}},
        [[bits(500)], [bits(20_000)], [bits(2_000_000)]],
    ),
    "forty places": lambda: (
        {"items": {"pattern": "[01]*1[01]{40}x"}},
        [[bits(500)], [bits(200_000)], [bits(2_000_000)], [bits(50)] * 20_000],
    ),
    "optional places": lambda: ({"items": {"pattern": "^" + "[01]?" * 50 + "1[01]{50}$"}}, [[bits(100)] * 20_000]),
    "look-around": lambda: (
        {"items": {"pattern": "(?=(a*b))(?!c)[ab]*d"}},
        [["a" * 1000] * 100, ["a" * 900_000]],
    ),
    "repeated look-around": lambda: (
        {"items": {"pattern": "(?:(?=.*z)a)*x"}},
        [["a" * 250 + "z"] * 100, ["a" * 900_000]],
    ),
    "back reference": lambda: ({"items": {"pattern": r"^(a+)+\1$"}}, [["a" * 250 + "b"] * 100, ["a" * 900_000]]),
    "uniqueItems": lambda: (
        {"uniqueItems": True},
        [[10**30 + n for n in range(20_000)], [[n] for n in range(300_000)], [n * (2**61 - 1) for n in range(50_000)]],
    ),
    "uniqueItems in a circle": lambda: (
        {"items": {"$ref": "#"}, "uniqueItems": True},
        [[[[[[n]]]] for n in range(20_000)]],
    ),
    "slow choices": lambda: ({"items": {"enum": [n + 0.5 for n in range(600)]}}, [[599.5] * 50_000, [0.1] * 50_000]),
    "long numbers": lambda: (
        {"items": {"multipleOf": 0.1, "minimum": 0}},
        [numbers(399, 5000), numbers(39, 100_000), numbers(3000, 20)],
    ),
    "many parts": lambda: (
        {"allOf": [{"items": {"minimum": n}} for n in range(1000)]},
        [[5000] * 100_000, [-1] * 100_000],
    ),
    "many patterns": lambda: (
        {"patternProperties": {f"^[a-z]+\\d*{n}$": {} for n in range(200)}},
        [{f"k{n}": n for n in range(30_000)}],
    ),
    "many names": lambda: (
        {"items": {"required": [f"k{n}" for n in range(9000)]}},
        [[{f"k{n}": 1 for n in range(8999)}] * 20, [{}] * 10_000],
    ),
    "wide circle": lambda: (
        {"properties": {f"p{n}": {"properties": {"q": {"$ref": "#"}}} for n in range(1500)}},
        [{"p1": {"q": {"p2": 5}}}],
    ),
    "huge enum": lambda: (
        {"items": {"enum": [[str(n)] for n in range(15_000)]}},
        [[["x"]] * 50_000],
    ),
    "contains and items": lambda: (
        {
            "$defs": {"x": {"items": {"$ref": "#/$defs/x"}, "contains": {"$ref": "#/$defs/x"}, "minContains": 9}},
            "$ref": "#/$defs/x",
        },
        [[[[[[1] * 9] * 9] * 9] * 9] * 9],
    ),
    "many heavy items": lambda: ({"items": {"multipleOf": 0.7}}, [[7] * 2_000_000]),
    "many faults": lambda: ({"items": {"type": "integer"}}, [["x"] * 300_000, [5] * 1_000_000]),
}


def judged(name: str) -> Iterator[float]:
    """The seconds it takes to compile a hostile schema, and then to check each of its values."""
    schema, values = HOSTILE[name]()
    text = json.dumps(schema).encode()
    began = time.thread_time()
    found = compile_schema(text, clock=time.thread_time)
    yield time.thread_time() - began
    for value in values if isinstance(found, Schema) else ():
        assert isinstance(found, Schema)
        text = json.dumps(value).encode()
        began = time.thread_time()
        found.check(text, value)
        yield time.thread_time() - began


@pytest.mark.requirement("S0/ECO-300")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_schema_and_no_value_keep_a_check_from_ending(name: str) -> None:
    """The time limit of a test is a minute: without its limits the check takes longer than that."""
    assert list(judged(name))


@pytest.mark.timing
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_costs_no_more_than_its_limit(name: str) -> None:
    assert max(judged(name)) < MAX_S


@pytest.mark.requirement("S0/ECO-300")
@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"items": {"pattern": "[01]*1[01]{1000}x"}}, [bits(2_000_000)], "2048 bytes of text"),
        ({"patternProperties": {f"{n}$": {} for n in range(99)}}, {f"k{n}": n for n in range(9999)}, "bytes of text"),
        (unevaluated_down(20), nested(20, "x"), "within 50 ms"),
        ({"items": {"$ref": "#"}, "uniqueItems": True}, [["x" * 700] * 100], "must be unique"),
        ({"items": {"$ref": "#"}, "contains": {}}, [1] * 60_000, "what it contains"),
        ({"items": {"$ref": "#"}}, b"[" * 70 + b"]" * 70, "nested deeper than 64 levels"),
        ({"items": {"$ref": "#"}}, b"[" * 100_000 + b"]" * 100_000, ""),
    ],
)
def test_what_is_too_costly_to_decide_is_refused_and_says_so(schema: Any, value: Any, reason: str) -> None:
    (error,) = compiled(schema).check(value if isinstance(value, bytes) else json.dumps(value).encode())
    assert error.keyword == ""
    assert reason in error.message


@pytest.mark.requirement("S0/ECO-300")
def test_a_large_value_with_many_faults_is_not_copied_for_each() -> None:
    """The engine copies a value into each of its errors."""
    faults = 9000
    schema = compiled({"anyOf": [{"required": [f"k{n}" for n in range(faults)]}]})
    text = json.dumps({"rows": ["x" * 100] * 1000}).encode()
    tracemalloc.start()
    assert {error.keyword for error in schema.check(text)} == {"required"}
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < faults * len(text) / 10


def test_long_digits_in_a_text_are_no_number() -> None:
    assert compiled({"items": {"type": "string"}}).check(b'["%b"]' % (b"7" * 90_000)) == ()


def expressions(levels: int, leaf: Any) -> Any:
    if levels == 0:
        return leaf
    return {"k": levels % 12, "l": expressions(levels - 1, leaf), "r": expressions(levels - 1, "x")}


def test_what_the_engine_must_not_be_given_is_decided_all_the_same() -> None:
    alternatives = [
        {"type": "object", "properties": {"k": {"const": n}, "l": {"$ref": "#"}, "r": {"$ref": "#"}}, "required": ["k"]}
        for n in range(12)
    ]
    schema = compiled({"anyOf": [*alternatives, {"type": "string"}]})
    for levels in (1, 5, 7):
        assert schema.check(json.dumps(expressions(levels, "x")).encode()) == ()
        (error,) = schema.check(json.dumps(expressions(levels, 5)).encode())
        assert error.keyword == "anyOf"
        assert ".".join("l" * levels).startswith(error.path)
        assert levels > 1 or error.path == "l"


def test_a_pattern_with_look_around_is_good_for_short_texts_beside_long_ones() -> None:
    email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
    schema = compiled({"properties": {"to": {"items": {"pattern": email}}, "body": {"type": "string"}}})

    def wrong(**value: Any) -> Iterator[tuple[str, str]]:
        return ((error.keyword, error.path) for error in schema.check(json.dumps(value).encode()))

    assert list(wrong(to=["joe.doe@example.co.uk"] * 50, body="x" * 90_000)) == []
    assert list(wrong(to=["joe..doe@example.co.uk"], body="x" * 90_000)) == [("pattern", "to[0]")]
    assert list(wrong(to=["x" * 2000])) == [("pattern", "to[0]")]


def test_megabytes_of_ordinary_rows_are_within_the_limit() -> None:
    columns = {f"c{n}": {"type": ["string", "null"], "maxLength": 100} for n in range(15)}
    schema = compiled(
        {
            "properties": {
                "rows": {"items": {"properties": columns, "required": [*columns], "additionalProperties": False}}
            }
        }
    )
    value = {"rows": [dict.fromkeys(columns, f"some text of row {n}") for n in range(10_000)]}
    text = json.dumps(value).encode()
    assert len(text) > 4_000_000
    assert schema.check(text, value) == ()


@pytest.mark.timing
def test_a_check_costs_little_more_than_decoding() -> None:
    """About 0.3 us on a quiet machine; the bound leaves room for a busy one."""
    schema = compiled({"properties": {"path": {"type": "string"}, "limit": {"minimum": 1}}, "required": ["path"]})
    text = b'{"path":"/tmp/x","limit":5}'
    value = messages.value(text)
    rounds = []
    for _ in range(5):
        began = time.thread_time()
        for _ in range(2000):
            schema.check(text, value)
        rounds.append((time.thread_time() - began) / 2000)
    assert min(rounds) < 5e-6
