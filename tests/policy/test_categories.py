"""What kind a tool is, and who said so."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.policy.categories import Categorised, RateClass, ToolCategory, categorise


def test_a_tool_nobody_knows_anything_about_may_change_things() -> None:
    assert categorise("files.write", None, {}) == Categorised(
        ToolCategory.MUTATION,
        "nothing known: may change things",
        RateClass.MUTATION,
        is_known=False,
        is_hinted=False,
        is_read_only=False,
        is_idempotent=None,
    )


def test_the_operator_counts_before_the_server() -> None:
    found = categorise("files.read", {"readOnlyHint": True}, {"files.*": "execution"})
    assert found.category is ToolCategory.EXECUTION
    assert found.reason == 'set by categories["files.*"]'
    assert found.is_known
    assert not found.is_read_only


@pytest.mark.requirement("S1/TIMEOUT-002")
@pytest.mark.parametrize(
    ("category", "rate_class", "is_read_only"),
    [
        ("query", RateClass.READ, True),
        ("scan", RateClass.READ, True),
        ("mutation", RateClass.MUTATION, False),
        ("execution", RateClass.EXECUTION, False),
    ],
)
def test_every_category_can_be_set_and_has_one_rate_class(
    category: str, rate_class: RateClass, is_read_only: bool
) -> None:
    found = categorise("a.b", {}, {"a.b": category})
    assert (found.category, found.rate_class, found.is_read_only) == (category, rate_class, is_read_only)


def test_the_setting_with_the_most_specific_name_decides() -> None:
    settings = {"*": "scan", "files.*": "mutation", "files.read_*": "query", "files.read_all": "execution"}
    names = ("crm.find", "files.write", "files.read_one", "files.read_all")
    assert [categorise(name, None, settings).category for name in names] == ["scan", "mutation", "query", "execution"]


@pytest.mark.parametrize(
    ("annotations", "category", "is_known"),
    [
        ({"readOnlyHint": True}, ToolCategory.QUERY, True),
        ({"readOnlyHint": True, "destructiveHint": False}, ToolCategory.QUERY, True),
        ({"readOnlyHint": True, "destructiveHint": True}, ToolCategory.MUTATION, False),
        ({"readOnlyHint": False}, ToolCategory.MUTATION, True),
        ({"destructiveHint": False, "idempotentHint": True}, ToolCategory.MUTATION, False),
        ({"readOnlyHint": "true"}, ToolCategory.MUTATION, False),
        ({"readOnlyHint": 1}, ToolCategory.MUTATION, False),
        ({"title": "Read"}, ToolCategory.MUTATION, False),
        (["readOnlyHint"], ToolCategory.MUTATION, False),
        ("readOnlyHint", ToolCategory.MUTATION, False),
    ],
)
def test_a_server_is_believed_only_when_it_plainly_says_read_only(
    annotations: Any, category: ToolCategory, is_known: bool
) -> None:
    found = categorise("a.b", annotations, {})
    assert (found.category, found.is_known) == (category, is_known)
    assert found.reason


@pytest.mark.parametrize(
    ("annotations", "settings", "expected"),
    [
        ({}, {}, None),
        ({"idempotentHint": True}, {}, True),
        ({"idempotentHint": False}, {}, False),
        ({"idempotentHint": "yes"}, {}, None),
        ({"readOnlyHint": True, "idempotentHint": False}, {}, True),
        ({"idempotentHint": True}, {"a.b": "execution"}, True),
        ({}, {"a.b": "scan"}, True),
    ],
)
def test_reading_is_idempotent_and_the_rest_as_declared(
    annotations: dict[str, Any], settings: dict[str, str], expected: bool | None
) -> None:
    assert categorise("a.b", annotations, settings).is_idempotent is expected
