"""What the settings say about one tool."""

from __future__ import annotations

import pytest
from msgspec import structs

from pactgate.app import build
from pactgate.config.model import Cache, Config, Limits, RateLimits, Timeouts
from pactgate.config.sections.cache import CacheRule
from pactgate.core.contract import Contract
from pactgate.core.values import Tool, Traits
from pactgate.pipeline import tool_policy
from pactgate.pipeline.tool_policy import Rulebook
from pactgate.protocol.headers import HeaderParam
from tests.support.servers import scripted


def tool(name: str = "read", digest: str = "0", **traits: object) -> Tool:
    known = Traits(**traits) if traits else Traits()  # type: ignore[arg-type]
    return Tool("files", name, f"files.{name}", f"files__{name}", b"{}", b"{}", digest, traits=known)


def book(**settings: object) -> Rulebook:
    return Rulebook(Config(servers={"files": scripted(request_timeout_ms=5000)}, **settings), b"{}")  # type: ignore[arg-type]


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
    assert rules.of(tool()).plan.ttl_ms is None
    assert rules.of(tool(category="query", is_known=True, is_read_only=True)).plan.ttl_ms == 9


def test_a_server_that_invents_names_without_end_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_policy, "_REMEMBERED", 10)
    ours = book()
    for number in range(100):
        ours.of(tool(f"t{number}"))
    assert len(ours._known) <= 10


IDLE = {"permit", "mirror", "accept_input", "recall", "audit", "accept_output", "remember"}


async def test_gates_that_are_left_out_are_gates_there_are() -> None:
    assert {gate.name for gate in build(Config(), lambda event: None).tool_call.gates} > IDLE | {"rate"}


@pytest.mark.parametrize(
    ("differs", "at_work"),
    [
        ({}, set()),
        ({"server": "pactgate"}, {"permit"}),
        ({"header_params": (HeaderParam("Path", ("path",)),)}, {"mirror"}),
        ({"contract": Contract("query", True, ())}, {"audit"}),
    ],
    ids=["plain", "of the gateway itself", "with mirrored arguments", "with a contract"],
)
def test_gates_with_nothing_to_do_for_a_tool_are_left_out(differs: dict[str, object], at_work: set[str]) -> None:
    assert book().of(structs.replace(tool(), **differs)).idle_gates == IDLE - at_work


def test_a_tool_is_checked_where_it_has_a_schema() -> None:
    assert book().of(structs.replace(tool(), input_check=Anything())).idle_gates == IDLE - {"accept_input"}
    assert book().of(structs.replace(tool(), output_check=Anything())).idle_gates == IDLE - {"accept_output"}


def test_a_tool_is_recalled_and_remembered_where_its_answers_may_be_kept() -> None:
    query = tool(category="query", is_known=True, is_read_only=True)
    caching = book(cache=Cache(tools={"*": CacheRule(ttl_ms=9)}))
    assert caching.of(query).idle_gates == IDLE - {"recall", "remember"}


def test_rates_are_not_asked_where_there_are_none() -> None:
    assert book(rate_limits=RateLimits(enabled=False)).of(tool()).idle_gates == IDLE | {"rate"}


class Anything:
    def check(self, text: bytes, value: object = None) -> tuple[()]:
        return ()
