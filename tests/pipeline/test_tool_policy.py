"""What the settings say about one tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import pytest
from msgspec import UNSET, structs

from pactgate.app import build
from pactgate.config.model import Config
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Limits, Timeouts
from pactgate.config.sections.rate_limits import RateLimits
from pactgate.core.contract import Contract
from pactgate.core.values import Tool, Traits
from pactgate.pipeline import tool_policy
from pactgate.pipeline.tool_policy import PolicyTable, ToolPolicy
from pactgate.protocol.headers import HeaderParam
from tests.support.servers import scripted


def tool(name: str = "read", digest: str = "0", **traits: object) -> Tool:
    known = Traits(**traits) if traits else Traits()  # type: ignore[arg-type]
    return Tool("files", name, f"files.{name}", f"files__{name}", b"{}", b"{}", digest, traits=known)


def book(**settings: object) -> PolicyTable:
    return PolicyTable(Config(servers={"files": scripted(request_timeout_ms=5000)}, **settings), b"{}")  # type: ignore[arg-type]


def test_rules_are_worked_out_once_per_tool_and_anew_for_a_tool_that_changed() -> None:
    rules, first = book(), tool()
    assert rules.of(first) is rules.of(first)
    assert rules.of(tool(digest="1")) is not rules.of(first)


def test_an_unknown_category_has_the_default_time_and_a_known_one_its_own() -> None:
    timeouts = Timeouts(default_timeout_ms=3000)
    assert book(timeouts=timeouts).of(tool()).limit.ms == 3000
    query = tool(category="query", is_known=True, is_read_only=True)
    assert book(timeouts=timeouts).of(query).limit.ms == 5000


def test_a_tool_of_a_server_that_is_gone_still_has_rules() -> None:
    gone = Tool("gone", "x", "gone.x", "gone__x", b"{}", b"{}", "0")
    assert book().of(gone).limit.ms == 30000
    assert book().server_limit_ms("gone") == 30000
    assert book().server_limit_ms("files") == 5000


def test_bounds_and_the_cache_follow_the_settings() -> None:
    rules = book(
        limits=Limits(tool_array_limits={"files.read": 7}), cache=Cache(tools={"files.*": CacheRule(ttl_ms=9)})
    )
    assert rules.of(tool()).bounds.max_array == 7
    assert rules.of(tool()).cache.ttl_ms is None
    assert rules.of(tool(category="query", is_known=True, is_read_only=True)).cache.ttl_ms == 9


def test_a_server_that_invents_names_without_end_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_policy, "_REMEMBERED", 10)
    ours = book()
    for number in range(100):
        ours.of(tool(f"t{number}"))
    assert len(ours._known) <= 10


class Anything:
    """A schema that takes any value."""

    def check(self, text: bytes, value: Any = UNSET) -> Sequence[Any]:
        return ()


@runtime_checkable
class CanSkip(Protocol):
    def applies_to(self, policy: ToolPolicy) -> bool: ...


def applying(policy: ToolPolicy) -> set[str]:
    """The gates around the dispatch that apply to a tool, of those a gateway has."""
    gates = build(Config(), lambda event: None).tool_call.gates
    return {gate.name for gate in gates if isinstance(gate, CanSkip) and gate.applies_to(policy)}


ALWAYS = {"check_limits", "rate_limit", "check_result", "limit_size", "adapt_for_client", "add_envelope"}


@pytest.mark.parametrize(
    ("differs", "further"),
    [
        ({}, set()),
        ({"server": "pactgate"}, {"authorize"}),
        ({"header_params": (HeaderParam("Path", ("path",)),)}, {"check_header_params"}),
        ({"contract": Contract("query", True, ())}, {"check_effects"}),
        ({"input_check": Anything()}, {"validate_input"}),
        ({"output_check": Anything()}, {"validate_output"}),
    ],
    ids=["plain", "of the gateway itself", "with mirrored arguments", "with a contract", "input", "output"],
)
async def test_a_gate_applies_only_to_tools_it_has_something_to_do_for(
    differs: dict[str, object], further: set[str]
) -> None:
    assert applying(book().of(structs.replace(tool(), **differs))) == ALWAYS | further


async def test_the_cache_is_asked_only_for_tools_whose_results_may_be_cached() -> None:
    query = tool(category="query", is_known=True, is_read_only=True)
    caching = book(cache=Cache(tools={"*": CacheRule(ttl_ms=9)}))
    assert applying(caching.of(query)) == ALWAYS | {"cache_lookup", "cache_store"}


async def test_rates_are_not_asked_where_there_are_none() -> None:
    assert applying(book(rate_limits=RateLimits(enabled=False)).of(tool())) == ALWAYS - {"rate_limit"}


def test_a_setting_for_a_tool_is_not_meant_for_a_tool_of_another_server_that_calls_itself_so() -> None:
    config = Config(
        servers={"files": scripted(), "evil": scripted("evil")},
        timeouts=Timeouts(tool_overrides={"files.read": 3_600_000, "read": 1000}),
    )
    table = PolicyTable(config, b"{}")
    claiming = Tool("evil", "files.read", "evil.files.read", "evil__files_read", b"{}", b"{}", "0")
    bare = Tool("evil", "read", "evil.read", "evil__read", b"{}", b"{}", "1")
    assert table.of(tool()).limit.ms == 3_600_000
    assert table.of(claiming).limit.ms < 3_600_000
    assert table.of(bare).limit.ms == 1000
