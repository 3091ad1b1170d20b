"""Conditions see what they name, are false of what is absent, and refuse to guess about types."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pactgate.core.conditions import MAX_VALUE_BYTES, ArgumentReader, Condition, ConditionError

AMOUNT = ("arguments", "amount")


@pytest.mark.parametrize(
    ("source", "paths", "facts"),
    [
        ("arguments.amount < 500", (("amount",),), ()),
        ("arguments.customer.id == 'x'", (("customer", "id"),), ()),
        ("arguments['odd name'][\"x\"] == 1", (("odd name", "x"),), ()),
        ("arguments.items.all(item, item < 5)", (("items",),), ()),
        ("arguments.path.startsWith('arguments.secret')", (("path",),), ()),
        ("arguments.a[0] == 1 && arguments.a == arguments.b", (("a",), ("b",)), ()),
        ("has(arguments.a) && tool.readOnly", (("a",),), (("tool", "readOnly"),)),
        ("'x' in caller.groups // arguments.z", (), (("caller", "groups"),)),
    ],
)
def test_a_condition_knows_what_it_names(source: str, paths: Any, facts: Any) -> None:
    condition = Condition(source)
    assert (condition.paths, condition.facts) == (paths, facts)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("arguments.amount <", "no CEL"),
        ("amount < 5", "amount is unknown"),
        ("arguments < 5", "alone"),
        ("caller.name == 'x'", "caller has no name"),
        ("caller.groups.size.x == 1", "caller has no"),
        ("tool.readOnly < 5", "no types"),
        ("'x' in caller.issuer", "no types"),
        ("caller.groups != 'x'", "is a list"),
        ("'x' == caller.groups", "is a list"),
        ("size(arguments.amount)", "neither true nor false"),
        ("now() < arguments.t", "no function now"),
        ("arguments.a.frob() == 1", "no function frob"),
        ("arguments.xs.all(x, x < y)", "y is unknown"),
        ("_v0 == arguments.a", "_v0 is unknown"),
    ],
)
def test_a_condition_that_can_never_hold_is_refused_with_the_reason(source: str, word: str) -> None:
    with pytest.raises(ConditionError, match=word):
        Condition(source)


@pytest.mark.parametrize(
    ("source", "values", "holds"),
    [
        ("arguments.amount < 500", {AMOUNT: 499.5}, True),
        ("arguments.amount < 500", {AMOUNT: 10**30}, False),
        ("arguments.amount < 500", {AMOUNT: -(10**30)}, True),
        ("arguments.amount < 500", {}, False),
        ("arguments.amount < 500", {AMOUNT: None}, False),
        ("!(arguments.amount < 500)", {}, False),
        ("has(arguments.amount)", {AMOUNT: 0}, True),
        ("has(arguments.amount)", {AMOUNT: None}, False),
        ("!has(arguments.amount) || arguments.amount < 5", {}, True),
        ("!has(arguments.amount) || arguments.amount < 5", {AMOUNT: 9}, False),
        ("arguments.amount == 5 || caller.kind == 'key'", {("caller", "kind"): "key"}, True),
    ],
)
def test_an_absent_member_makes_false_what_needs_it(source: str, values: dict[Any, Any], holds: bool) -> None:
    assert Condition(source).holds(values) is holds


@pytest.mark.parametrize("value", ["5", True, [5], {"a": 5}])
def test_another_type_is_neither_true_nor_false(value: Any) -> None:
    with pytest.raises(ConditionError):
        Condition("arguments.amount < 500").holds({AMOUNT: value})


@pytest.mark.parametrize(
    "source",
    [
        "arguments.amount > 500 || arguments.tip > 50",
        "arguments.tip > 50 || arguments.amount > 500",
        "!(arguments.tip <= 50 && arguments.amount <= 500)",
        "arguments.note == '(||' || (arguments.tip > 50 || !(arguments.amount <= 500))",
        "[1, 2].exists(x, x == arguments.tip || x > 5) || arguments.amount > 500",
    ],
)
def test_what_is_absent_hides_no_type_error_of_another_operand(source: str) -> None:
    """Otherwise a client could leave one argument out, and write another one as text, to pass by a rule that denies."""
    with pytest.raises(ConditionError):
        Condition(source).holds({AMOUNT: "9999"})
    assert Condition(source).holds({AMOUNT: 9999}) is True
    assert Condition(source).holds({}) is False


@pytest.mark.parametrize(
    "source", ["arguments.tip > 50 && arguments.amount > 500", "arguments.tip > 50 ? arguments.amount > 500 : false"]
)
def test_what_is_absent_makes_false_what_needs_it_whatever_the_rest_is(source: str) -> None:
    assert Condition(source).holds({AMOUNT: "9999"}) is False


def test_values_of_one_call_are_not_those_of_the_next() -> None:
    condition = Condition("arguments.amount < 500")
    assert condition.holds({AMOUNT: 1})
    assert not condition.holds({})


def test_the_reader_decodes_what_is_named_however_its_key_is_spelt() -> None:
    reader = ArgumentReader((("amount",), ("customer", "id")))
    text = b'{"am\\u006funt": 5, "customer": {"id": "x", "more": [1e999]}, "rest": {"deep": []}}'
    assert reader.read(text) == {AMOUNT: 5, ("arguments", "customer", "id"): "x"}
    assert reader.read(b'{"customer": null}') == {}


@pytest.mark.parametrize(
    "text",
    [
        b'{"Amount": 9999}',
        b'{"amount": 1, "AMOUNT": 9999}',
        b'{"Customer": {"id": "x"}}',
        b'{"customer": {"ID": "x"}}',
        '{"cu\u017ftomer": {}}'.encode(),
    ],
)
def test_a_name_that_a_server_may_read_as_a_named_one_can_not_be_decided(text: bytes) -> None:
    """Go's decoder, and others, ignore the case of names."""
    reader = ArgumentReader((("amount",), ("customer", "id")))
    for _ in range(2):
        with pytest.raises(ConditionError, match="another spelling"):
            reader.read(text)
    assert reader.read(b'{"amounts": 9999, "customer": {"number": 1}, "ID": 1}') == {}


@pytest.mark.parametrize("text", [b'{"customer": "x"}', b'{"customer": {"id": "%b"}}' % (b"x" * MAX_VALUE_BYTES)])
def test_the_reader_refuses_what_is_no_object_or_too_long(text: bytes) -> None:
    with pytest.raises(ConditionError):
        ArgumentReader((("customer", "id"),)).read(text)


def test_the_engine_is_loaded_with_the_first_condition_and_without_its_command_line() -> None:
    code = (
        "import sys; import pactgate.app; assert not any(n.startswith('cel') for n in sys.modules);"
        "from pactgate.core.conditions import Condition; Condition('arguments.a < 1');"
        "assert 'prompt_toolkit' not in sys.modules and 'typer' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
