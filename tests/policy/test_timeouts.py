"""How long a tool may take, and who said so."""

from __future__ import annotations

import pytest

from pactgate.config.sections.limits import Timeouts, ToolTimeouts
from pactgate.policy.categories import ToolCategory
from pactgate.policy.timeouts import ToolTimeout, for_tool, shortened

HOUR_MS = 3_600_000


@pytest.mark.requirement("S1/TIMEOUT-002")
@pytest.mark.parametrize(
    ("category", "ms"),
    [
        (ToolCategory.QUERY, 10_000),
        (ToolCategory.MUTATION, 30_000),
        (ToolCategory.SCAN, 120_000),
        (ToolCategory.EXECUTION, 1_200_000),
    ],
)
def test_all_tools_of_a_category_have_its_limit(category: ToolCategory, ms: int) -> None:
    limits = {for_tool(f"s{n}.t{n}", f"t{n}", category, HOUR_MS, Timeouts()) for n in range(5)}
    assert limits == {ToolTimeout(ms, f"timeouts.toolTimeouts.{category}")}


@pytest.mark.parametrize("category", ToolCategory)
def test_a_category_that_only_hints_set_takes_the_time_of_its_server(category: ToolCategory) -> None:
    """`readOnlyHint` says nothing about speed: a crawler reads, too."""
    limit = for_tool("s.t", "t", category, 60_000, Timeouts(), is_hinted=True)
    assert limit == ToolTimeout(60_000, "requestTimeoutMs of the server")


@pytest.mark.parametrize("ms", [500, 10_000])
def test_the_time_the_operator_sets_for_a_category_holds_for_hinted_tools_too(ms: int) -> None:
    settings = Timeouts(tool_timeouts=ToolTimeouts(query=ms))
    limit = for_tool("s.t", "t", ToolCategory.QUERY, 60_000, settings, is_hinted=True)
    assert limit == ToolTimeout(ms, "timeouts.toolTimeouts.query")


@pytest.mark.requirement("S1/TIMEOUT-002")
def test_a_tool_of_no_known_category_has_the_default() -> None:
    settings = Timeouts(default_timeout_ms=45_000)
    assert for_tool("s.t", "t", None, HOUR_MS, settings) == ToolTimeout(45_000, "timeouts.defaultTimeoutMs")


def test_the_categories_can_be_set_one_by_one() -> None:
    settings = Timeouts(tool_timeouts=ToolTimeouts(scan=500))
    assert for_tool("s.t", "t", ToolCategory.SCAN, HOUR_MS, settings).ms == 500
    assert for_tool("s.t", "t", ToolCategory.QUERY, HOUR_MS, settings).ms == 10_000


@pytest.mark.requirement("S1/TIMEOUT-003")
@pytest.mark.parametrize("category", [None, *ToolCategory])
def test_an_override_beats_the_category_and_the_server_in_both_directions(category: ToolCategory | None) -> None:
    for ms in (5, 2_000_000):
        settings = Timeouts(tool_overrides={"s.t": ms})
        assert for_tool("s.t", "t", category, 60_000, settings) == ToolTimeout(ms, 'timeouts.toolOverrides["s.t"]')


@pytest.mark.requirement("S1/TIMEOUT-003")
def test_an_override_by_full_name_beats_one_by_bare_name() -> None:
    settings = Timeouts(tool_overrides={"t": 111, "s.t": 222})
    assert for_tool("s.t", "t", ToolCategory.QUERY, HOUR_MS, settings) == ToolTimeout(
        222, 'timeouts.toolOverrides["s.t"]'
    )
    assert for_tool("other.t", "t", ToolCategory.QUERY, HOUR_MS, settings) == ToolTimeout(
        111, 'timeouts.toolOverrides["t"]'
    )
    assert for_tool("other.u", "u", ToolCategory.QUERY, HOUR_MS, settings).ms == 10_000


def test_a_server_may_be_shorter_than_its_tools_but_not_longer() -> None:
    assert for_tool("s.t", "t", ToolCategory.QUERY, 9_999, Timeouts()) == ToolTimeout(
        9_999, "requestTimeoutMs of the server"
    )
    assert for_tool("s.t", "t", ToolCategory.QUERY, 10_000, Timeouts()).source == "timeouts.toolTimeouts.query"
    assert for_tool("s.t", "t", None, 1_000, Timeouts()).source == "requestTimeoutMs of the server"


@pytest.mark.requirement("S1/TIMEOUT-003")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, ToolTimeout(30_000, "x")),
        (30_000, ToolTimeout(30_000, "x")),
        (300_000, ToolTimeout(30_000, "x")),
        (29_999, ToolTimeout(29_999, "timeoutMs of the client")),
        (1, ToolTimeout(1, "timeoutMs of the client")),
        (0, ToolTimeout(1, "timeoutMs of the client")),
        (-5, ToolTimeout(1, "timeoutMs of the client")),
    ],
)
def test_a_caller_may_shorten_and_never_lengthen(asked: int | None, expected: ToolTimeout) -> None:
    assert shortened(ToolTimeout(30_000, "x"), asked) == expected
