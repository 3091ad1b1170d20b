"""What counts as advertised."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.conformance.capabilities import has, is_advertised


@pytest.mark.parametrize(("value", "expected"), [({}, True), (True, True), (0, True), (None, False), (False, False)])
def test_null_and_false_advertise_nothing(value: Any, expected: bool) -> None:
    assert is_advertised(value) is expected


def test_settings_inside_a_capability_are_reached_by_their_path() -> None:
    declared = {"resources": {"subscribe": True}, "sampling": {"tools": {}}, "roots": 7}
    assert has(declared, "resources", "subscribe")
    assert has(declared, "sampling", "tools")
    assert not has(declared, "resources", "listChanged")
    assert not has(declared, "roots", "listChanged")
    assert not has(None, "roots")
