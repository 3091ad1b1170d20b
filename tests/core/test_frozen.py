"""What is frozen stays as it is, on every level, and can still be read and written as JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pactgate.core.frozen import freeze


def test_nothing_is_shared_with_what_it_was_made_from() -> None:
    source: dict[str, Any] = {"a": [1, {"b": bytearray(b"x")}], "s": {1}}
    frozen = freeze(source)
    source["a"][1]["b"].extend(b"y")
    source["a"].append(2)
    assert frozen == {"a": (1, {"b": b"x"}), "s": frozenset({1})}


@pytest.mark.requirement("S4/R4")
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.__setitem__("a", 1),
        lambda table: table.__delitem__("a"),
        lambda table: table.update(a=1),
        lambda table: table.pop("a"),
        lambda table: table.popitem(),
        lambda table: table.setdefault("b", 1),
        lambda table: table.clear(),
        lambda table: table.__ior__({"a": 1}),
        lambda table: table["a"][0].__setitem__("b", 1),
        lambda table: setattr(table, "extra", 1),
    ],
)
def test_no_level_can_be_changed(change: Callable[[Any], object]) -> None:
    table = freeze({"a": [{"b": 2}]})
    with pytest.raises((TypeError, AttributeError)):
        change(table)
    assert table == {"a": ({"b": 2},)}


def test_it_is_written_like_any_other_table() -> None:
    value = {"a": [1, {"b": None}], "c": "x"}
    frozen = freeze(value)
    assert json.loads(json.dumps(frozen)) == value
    assert msgspec.json.decode(msgspec.json.encode(frozen)) == value
    assert copy.deepcopy(frozen) is frozen
    assert copy.copy(frozen) is frozen
    assert {**frozen, "d": 1}["d"] == 1
