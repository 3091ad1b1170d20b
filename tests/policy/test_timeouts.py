"""How long a tool may take, and who said so."""

from __future__ import annotations

import pytest

from pactgate.config.sections.limits import Timeouts, ToolTimeouts
from pactgate.policy.categories import Category
from pactgate.policy.timeouts import Limit, for_tool, shortened

HOUR_MS = 3_600_000


@pytest.mark.requirement("S1/TIMEOUT-002")
@pytest.mark.parametrize(
    ("category", "ms"),
    [
        (Category.QUERY, 10_000),
        (Category.MUTATION, 30_000),
        (Category.SCAN, 120_000),
        (Category.EXECUTION, 1_200_000),
    ],
)
def test_all_tools_of_a_category_have_its_limit(category: Category, ms: int) -> None:
    limits = {for_tool(f"s{n}.t{n}", f"t{n}", category, HOUR_MS, Timeouts()) for n in range(5)}
    assert limits == {Limit(ms, f"timeouts.toolTimeouts.{category}")}


@pytest.mark.requirement("S1/TIMEOUT-002")
def test_a_tool_of_no_known_category_has_the_default() -> None:
    settings = Timeouts(default_timeout_ms=45_000)
    assert for_tool("s.t", "t", None, HOUR_MS, settings) == Limit(45_000, "timeouts.defaultTimeoutMs")


def test_the_categories_can_be_set_one_by_one() -> None:
    settings = Timeouts(tool_timeouts=ToolTimeouts(scan=500))
    assert for_tool("s.t", "t", Category.SCAN, HOUR_MS, settings).ms == 500
    assert for_tool("s.t", "t", Category.QUERY, HOUR_MS, settings).ms == 10_000


@pytest.mark.requirement("S1/TIMEOUT-003")
@pytest.mark.parametrize("category", [None, *Category])
def test_an_override_beats_the_category_and_the_server_in_both_directions(category: Category | None) -> None:
    for ms in (5, 2_000_000):
        settings = Timeouts(tool_overrides={"s.t": ms})
        assert for_tool("s.t", "t", category, 60_000, settings) == Limit(ms, 'timeouts.toolOverrides["s.t"]')


@pytest.mark.requirement("S1/TIMEOUT-003")
def test_an_override_by_full_name_beats_one_by_bare_name() -> None:
    settings = Timeouts(tool_overrides={"t": 111, "s.t": 222})
    assert for_tool("s.t", "t", Category.QUERY, HOUR_MS, settings) == Limit(222, 'timeouts.toolOverrides["s.t"]')
    assert for_tool("other.t", "t", Category.QUERY, HOUR_MS, settings) == Limit(111, 'timeouts.toolOverrides["t"]')
    assert for_tool("other.u", "u", Category.QUERY, HOUR_MS, settings).ms == 10_000


def test_a_server_may_be_shorter_than_its_tools_but_not_longer() -> None:
    assert for_tool("s.t", "t", Category.QUERY, 9_999, Timeouts()) == Limit(9_999, "requestTimeoutMs of the server")
    assert for_tool("s.t", "t", Category.QUERY, 10_000, Timeouts()).source == "timeouts.toolTimeouts.query"
    assert for_tool("s.t", "t", None, 1_000, Timeouts()).source == "requestTimeoutMs of the server"


@pytest.mark.requirement("S1/TIMEOUT-003")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, Limit(30_000, "x")),
        (30_000, Limit(30_000, "x")),
        (300_000, Limit(30_000, "x")),
        (29_999, Limit(29_999, "timeoutMs of the caller")),
        (1, Limit(1, "timeoutMs of the caller")),
        (0, Limit(1, "timeoutMs of the caller")),
        (-5, Limit(1, "timeoutMs of the caller")),
    ],
)
def test_a_caller_may_shorten_and_never_lengthen(asked: int | None, expected: Limit) -> None:
    assert shortened(Limit(30_000, "x"), asked) == expected
