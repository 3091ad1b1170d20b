"""Which quota counts for a tool, what a refused caller is told, and that new settings hold from the next call on."""

from __future__ import annotations

import timeit
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.rate_limits import (
    ExecutionRate,
    MutationRate,
    RateLimits,
    ReadRate,
    RequestRate,
    ToolRate,
)
from pactgate.core.failures import Category, ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.core.values import Tool, Traits
from pactgate.policy.envelope import CallFacts, failure_facts
from pactgate.policy.rate_limits import RatePolicy
from pactgate.state.memory_rates import MemoryRateStore

DOCUMENTED = {"execution": (30, 5), "mutation": (100, 20), "read": (200, 50)}


def tool(full_name: str = "files.run", rate_class: str = "execution") -> Tool:
    server, _, name = full_name.partition(".")
    exposed = full_name.replace(".", "__")
    return Tool(server, name, full_name, exposed, b"{}", b"{}", "d1", traits=Traits(rate_class=rate_class))


class Limited:
    """A policy over a store of its own, on a clock that is moved by hand."""

    def __init__(self, settings: RateLimits | None = None) -> None:
        self.now_ns = 0
        self.store = MemoryRateStore(lambda: self.now_ns)
        self.policy = RatePolicy(settings or RateLimits(enabled=True), self.store)

    def passing(self, count: int, called: Tool, subject: str = "ops") -> int:
        passed = 0
        for _ in range(count):
            try:
                self.policy.admit(subject, called)
            except GatewayFailure:
                continue
            passed += 1
        return passed

    def refused(self, called: Tool, subject: str = "ops") -> GatewayFailure:
        with pytest.raises(GatewayFailure) as raised:
            self.policy.admit(subject, called)
        return raised.value


# Which quota.


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.parametrize("rate_class", DOCUMENTED)
def test_each_category_has_the_limits_of_the_document(rate_class: str) -> None:
    rpm, burst = DOCUMENTED[rate_class]
    limited, called = Limited(), tool(rate_class=rate_class)
    passed = limited.passing(burst + 5, called)
    assert passed == burst
    step_ns = 60_000_000_000 // rpm
    while limited.now_ns + step_ns < 60_000_000_000:
        limited.now_ns += step_ns
        passed += limited.passing(2, called)
    assert passed == rpm


@pytest.mark.requirement("S2/MCP-006")
def test_a_tool_nothing_is_known_of_counts_as_one_that_changes_things() -> None:
    unknown = Tool("web", "x", "web.x", "web__x", b"{}", b"{}", "d1")
    assert Limited().passing(99, unknown) == 20
    assert Limited().passing(99, tool(rate_class="no such class")) == 20


@pytest.mark.requirement("S2/MCP-006")
def test_every_tool_has_the_limit_of_its_category_for_itself() -> None:
    limited = Limited()
    assert limited.passing(9, tool("files.run")) == 5
    assert limited.passing(9, tool("web.run")) == 5
    assert limited.passing(99, tool("files.write", "mutation")) == 20
    assert limited.passing(9, tool("files.run")) == 0


@pytest.mark.requirement("S2/MCP-006")
def test_callers_have_limits_of_their_own_and_anonymous_ones_share_theirs() -> None:
    limited = Limited()
    assert limited.passing(9, tool(), "ops") == 5
    assert limited.passing(9, tool(), "dev") == 5
    assert limited.passing(9, tool(), "anonymous") == 5
    assert limited.passing(9, tool(), "anonymous") == 0


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.parametrize(
    ("name", "limit"),
    [("files.run", 1), ("files.run_all", 2), ("files.list", 3), ("web.run", 5), ("Files.run", 5)],
)
def test_the_name_itself_counts_before_a_pattern_and_a_pattern_before_the_category(name: str, limit: int) -> None:
    rules = {"files.*": 3, "files.run*": 2, "files.run": 1}
    limited = Limited(
        RateLimits(enabled=True, tools={pattern: ToolRate(rpm=60, burst=burst) for pattern, burst in rules.items()})
    )
    assert limited.passing(20, tool(name)) == limit


def test_every_tool_a_rule_means_has_its_limit_for_itself() -> None:
    limited = Limited(RateLimits(enabled=True, tools={"files.*": ToolRate(rpm=60, burst=3)}))
    assert limited.passing(9, tool("files.a")) == 3
    assert limited.passing(9, tool("files.b")) == 3
    assert limited.passing(9, tool("web.run")) == 5


@pytest.mark.requirement("S2/MCP-006")
def test_without_limits_everything_goes_through_and_nothing_is_counted() -> None:
    limited = Limited(RateLimits(enabled=False))
    assert limited.passing(1000, tool()) == 1000
    assert len(limited.store) == 0
    assert limited.policy.facts_of(tool()) is None


# What a refused caller is told.


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.requirement("S2/MCP-007")
def test_a_refusal_is_rate_limited_did_not_run_and_says_everything() -> None:
    limited = Limited()
    limited.passing(5, tool())
    limited.now_ns += 500_000_000
    failure = limited.refused(tool())
    assert (failure.kind, failure.code) == (Kind.RATE_LIMITED, ErrorCode.RATE_LIMITED)
    assert (failure.category, failure.verdict) == (Category.CONTRACT_VIOLATION, Verdict.DID_NOT_RUN)
    assert (failure.server, failure.tool, failure.retry_after_ms) == ("files", "files.run", 1500)
    assert failure.details == {
        "retryAfter": 2,
        "remaining": 0,
        "remainingInWindow": 25,
        "resetIn": 60,
        "limit": 30,
        "burst": 5,
        "windowSeconds": 60,
        "toolName": "files.run",
        "rateClass": "execution",
        "limitedBy": "rateLimits.execution",
    }
    assert failure.message == (
        "Too many calls: rateLimits.execution allows each client 30 calls of a tool per minute (burst 5). "
        "files.run can be called again in 2 s. The operator changes it in the configuration, or with "
        "`pactgate config set rateLimits.execution.rpm NUMBER`."
    )
    assert limited.policy.refused_count == 1


def test_a_refusal_names_the_rule_that_counted() -> None:
    limited = Limited(RateLimits(enabled=True, tools={"files.*": ToolRate(rpm=10, burst=1)}))
    limited.passing(1, tool())
    assert limited.refused(tool()).details["limitedBy"] == 'rateLimits.tools["files.*"]'


@pytest.mark.requirement("S2/MCP-007")
@pytest.mark.parametrize("is_idempotent", [True, None, False])
def test_even_the_caller_of_a_tool_that_must_not_be_repeated_learns_when_to_come_back(
    is_idempotent: bool | None,
) -> None:
    limited = Limited()
    limited.passing(5, tool())
    facts = CallFacts("id", 1.0, server="files", tool="files.run", is_idempotent=is_idempotent)
    told = failure_facts(facts, limited.refused(tool()))
    assert (told["retryAfter"], told["remaining"], told["limit"]) == (2, 0, 30)
    assert told["retryable"] is (is_idempotent is not False)


@pytest.mark.requirement("S2/MCP-007")
@given(
    rpm=st.integers(1, 10_000),
    burst=st.integers(1, 1000),
    gaps_ns=st.lists(st.integers(0, 90_000_000_000), min_size=1, max_size=20),
)
def test_waiting_the_seconds_a_refusal_says_always_suffices(rpm: int, burst: int, gaps_ns: list[int]) -> None:
    limited = Limited(RateLimits(enabled=True, execution=ExecutionRate(rpm=rpm, burst=burst)))
    for gap_ns in gaps_ns:
        limited.now_ns += gap_ns
        while limited.passing(1, tool()):
            pass
        seconds = limited.refused(tool()).details["retryAfter"]
        assert isinstance(seconds, int)
        assert seconds >= 1
        limited.now_ns += seconds * 1_000_000_000
        assert limited.passing(1, tool()) == 1


# Looking limits up, and changing them.


@pytest.mark.requirement("S2/MCP-007")
def test_the_limits_can_be_looked_up() -> None:
    limited = Limited(RateLimits(enabled=True, tools={"web.*": ToolRate(rpm=7, burst=2)}))
    assert limited.policy.describe() == {
        "enabled": True,
        "windowSeconds": 60,
        "execution": {"rpm": 30, "burst": 5},
        "mutation": {"rpm": 100, "burst": 20},
        "read": {"rpm": 200, "burst": 50},
        "requests": {"rpm": 600, "burst": 200},
        "tools": {"web.*": {"rpm": 7, "burst": 2}},
    }
    assert limited.policy.facts_of(tool("web.run")) == {"rpm": 7, "burst": 2, "setting": 'rateLimits.tools["web.*"]'}
    assert limited.policy.facts_of(tool("files.run")) == {"rpm": 30, "burst": 5, "setting": "rateLimits.execution"}


LOWER: list[dict[str, Any]] = [
    {"execution": ExecutionRate(rpm=30, burst=3)},
    {"execution": ExecutionRate(rpm=3, burst=5)},
]


@pytest.mark.requirement("S2/MCP-006")
@pytest.mark.parametrize("lower", LOWER)
def test_a_lower_limit_is_felt_by_the_next_call_and_what_was_used_stays_used(lower: dict[str, Any]) -> None:
    limited = Limited()
    assert limited.passing(4, tool()) == 4
    limited.policy.reconfigure(RateLimits(enabled=True, **lower))
    assert limited.passing(1, tool()) == 0
    assert limited.policy.describe()["execution"] == {"rpm": lower["execution"].rpm, "burst": lower["execution"].burst}


def test_settings_that_say_the_same_give_nothing_back() -> None:
    limited = Limited()
    limited.passing(5, tool())
    limited.policy.reconfigure(RateLimits(enabled=True, mutation=MutationRate(rpm=1), read=ReadRate(burst=1)))
    assert limited.passing(5, tool()) == 0
    assert limited.passing(5, tool("files.list", "read")) == 1


def test_a_rule_for_a_tool_can_come_and_go() -> None:
    limited = Limited()
    limited.passing(5, tool())
    limited.policy.reconfigure(RateLimits(enabled=True, tools={"files.run": ToolRate(rpm=60, burst=2)}))
    assert limited.passing(5, tool()) == 0
    limited.now_ns += 1_000_000_000
    assert limited.passing(5, tool()) == 1
    limited.policy.reconfigure(RateLimits(enabled=True))
    assert limited.passing(5, tool()) == 3  # two tokens were in use, so two of five are


def test_limits_switched_off_and_on_again_remember() -> None:
    limited = Limited()
    limited.passing(5, tool())
    limited.policy.reconfigure(RateLimits(enabled=False))
    assert limited.passing(5, tool()) == 5
    limited.policy.reconfigure(RateLimits(enabled=True))
    assert limited.passing(5, tool()) == 0


@pytest.mark.timing
def test_letting_a_call_through_costs_next_to_nothing() -> None:
    """About 0.4 us on a quiet machine; the bound leaves room for a busy one."""
    limited, called = (
        Limited(RateLimits(enabled=True, tools={"web.*": ToolRate(rpm=1, burst=1)})),
        tool(rate_class="read"),
    )

    def admit() -> None:
        limited.now_ns += 300_000_000
        limited.policy.admit("ops", called)

    best_s = min(timeit.repeat(admit, number=1000, repeat=30)) / 1000
    assert best_s < 3e-6


def test_other_requests_have_a_quota_for_each_kind_beside_those_of_tools() -> None:
    limited = Limited(RateLimits(requests=RequestRate(rpm=2, burst=2)))
    for kind in ("read", "prompt"):
        for _ in range(2):
            limited.policy.admit_request("ann", kind)
        with pytest.raises(GatewayFailure) as refusal:
            limited.policy.admit_request("ann", kind)
        assert refusal.value.kind is Kind.RATE_LIMITED
        assert refusal.value.details["limitedBy"] == "rateLimits.requests"
        limited.policy.admit_request("bob", kind)
    limited.policy.reconfigure(RateLimits(enabled=False))
    limited.policy.admit_request("ann", "read")
