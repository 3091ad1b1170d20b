"""What may be kept: of which tools, under which key, for how long, and which results at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.core.values import Tool
from pactgate.policy.cache_policy import CachePolicy, Storable, ToolCachePolicy, is_plain, judge

HOUR_MS = 3_600_000


def tool(full_name: str = "files.read", digest: str = "d1") -> Tool:
    server, _, name = full_name.partition(".")
    return Tool(server, name, full_name, full_name.replace(".", "__"), b"{}", b"{}", digest)


def policy_of(rules: dict[str, int | None], **settings: Any) -> CachePolicy:
    return CachePolicy(
        Cache(tools={pattern: CacheRule(ttl_ms=ttl_ms) for pattern, ttl_ms in rules.items()}, **settings)
    )


def read_plan(ttl_ms: int = 1000) -> ToolCachePolicy:
    return policy_of({"files.*": ttl_ms}).plan(tool(), is_read_only=True, is_idempotent=None)


def result(**members: Any) -> bytes:
    return json.dumps({"content": [], **members}).encode()


# Which tools.


def test_nothing_is_kept_unless_it_is_asked_for() -> None:
    plan = policy_of({}).plan(tool(), is_read_only=True, is_idempotent=True)
    assert plan.ttl_ms is None


@pytest.mark.parametrize(
    ("name", "ttl_ms"),
    [
        ("files.read", 1),
        ("files.read_all", 2),
        ("files.list", 3),
        ("crm.find", 4),
        ("crm.get", 5),
        ("web.any", None),
        ("Files.read", None),
        ("xfiles.read", None),
    ],
)
def test_the_name_itself_counts_before_any_pattern_and_a_longer_pattern_before_a_shorter(
    name: str, ttl_ms: int | None
) -> None:
    rules = policy_of({"files.*": 3, "files.read*": 2, "files.read": 1, "crm.*": 5, "crm.f???": 4})
    assert rules.rule_for(name) == ttl_ms


def test_a_rule_without_a_time_means_the_default() -> None:
    assert policy_of({"files.*": None}, default_ttl_ms=77).rule_for("files.read") == 77
    assert policy_of({"files.*": 0}).rule_for("files.read") == 0


@pytest.mark.parametrize(
    ("pattern", "is_read_only", "is_idempotent", "is_kept", "is_writer"),
    [
        ("files.*", True, None, True, False),
        ("files.*", True, False, True, False),
        ("files.*", None, True, True, True),
        ("files.*", False, True, True, True),
        ("files.*", None, None, False, True),
        ("files.*", False, None, False, True),
        ("files.*", False, False, False, True),
        ("files.read", True, None, True, False),
        ("files.read", None, None, True, False),
        ("files.read", None, False, True, False),
        ("files.read", False, None, False, True),
        ("files.read", False, True, True, True),
        ("crm.*", None, None, False, True),
        ("crm.*", True, None, False, False),
    ],
)
def test_only_what_is_safe_is_kept_and_only_what_can_not_write_leaves_the_rest_alone(
    pattern: str, is_read_only: bool | None, is_idempotent: bool | None, is_kept: bool, is_writer: bool
) -> None:
    plan = policy_of({pattern: 9}).plan(tool(), is_read_only=is_read_only, is_idempotent=is_idempotent)
    assert (plan.ttl_ms is not None, plan.is_writer) == (is_kept, is_writer)


# Keys.


def key(subject: str = "ann", name: str = "files.read", digest: str = "d1", arguments: bytes = b'{"a":1}') -> bytes:
    plan = policy_of({"*": 9}).plan(tool(name, digest), is_read_only=True, is_idempotent=None)
    return plan.keys(subject, arguments).own


@pytest.mark.requirement("S1/CACHE-005")
def test_a_key_is_the_same_for_the_same_call_and_differs_with_each_of_its_parts() -> None:
    others = [
        key(subject="bob"),
        key(subject=""),
        key(name="crm.read"),
        key(name="files.list"),
        key(digest="d2"),
        key(arguments=b'{"a": 1}'),
        key(arguments=b'{"a":1.0}'),
        key(arguments=b"{}"),
        key(arguments=b""),
    ]
    assert key() == key()
    assert len({key(), *others}) == 1 + len(others)


WORDS = st.text("a1:\0", max_size=3)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, st.sampled_from([b"", b"a", b"1:a", b"\0"])), max_size=8))
@example([("ab", "c", "", b""), ("a", "bc", "", b""), ("a", "b", "c", b""), ("a", "b", "", b"c")])
def test_no_part_of_a_key_can_pass_for_another(calls: list[tuple[str, str, str, bytes]]) -> None:
    keys = set()
    for name, digest, subject, arguments in calls:
        called = Tool("s", name, f"s.{name}", f"s__{name}", b"", b"", digest)
        plan = policy_of({"*": 9}).plan(called, is_read_only=True, is_idempotent=None)
        keys.add(plan.keys(subject, arguments).own)
    assert len(keys) == len(set(calls))


def test_a_tool_result_belongs_to_its_caller_whatever_its_upstream_says() -> None:
    plan = read_plan()
    assert plan.keys("ann", b"").shared is None
    assert judge(plan, result(ttlMs=10, cacheScope="public")) == Storable(10, False)


def test_a_hinted_result_can_be_found_by_everybody_under_a_key_nobody_owns() -> None:
    plan = policy_of({}).hinted("files", "resources/read")
    ann, bob, nobody = (plan.keys(subject, b'{"uri":"x"}') for subject in ("ann", "bob", ""))
    assert ann.shared == bob.shared == nobody.shared is not None
    assert len({ann.own, bob.own, nobody.own, ann.shared}) == 4
    assert policy_of({}).hinted("files", "prompts/get").keys("ann", b'{"uri":"x"}').shared != ann.shared


@pytest.mark.parametrize(
    ("members", "meta", "expected"),
    [
        (["name", "arguments"], [], True),
        (["name"], ["traceparent", "tracestate", "baggage"], True),
        (["name", "arguments", "task"], [], False),
        (["name", "inputResponses", "requestState"], [], False),
        (["name", "arguments"], ["example.com/locale"], False),
    ],
)
def test_a_call_that_says_more_than_name_and_arguments_is_not_looked_up(
    members: list[str], meta: list[str], expected: bool
) -> None:
    assert is_plain(members, meta) is expected


# Results.


@pytest.mark.parametrize(
    "text",
    [
        result(isError=True),
        result(isError=1),
        result(resultType="input_required"),
        result(resultType=None),
        b"[]",
        b"{",
        b"",
    ],
)
def test_what_is_not_a_complete_success_is_not_kept(text: bytes) -> None:
    assert judge(read_plan(), text) is None


def test_a_cut_result_is_not_kept() -> None:
    assert judge(read_plan(), result()) == Storable(1000, False)
    assert judge(read_plan(), result(), is_truncated=True) is None


def test_nothing_is_kept_of_a_tool_without_a_rule() -> None:
    plan = policy_of({}).plan(tool(), is_read_only=True, is_idempotent=None)
    assert judge(plan, result(ttlMs=1000, cacheScope="public")) is None


@pytest.mark.requirement("S1/CACHE-003")
@pytest.mark.parametrize(
    ("rule_ms", "hint", "expected"),
    [
        (1000, ..., 1000),
        (1000, 400, 400),
        (1000, 1000, 1000),
        (1000, 5000, 1000),
        (1000, 0, None),
        (1000, -1, None),
        (1000, 1.5, None),
        (1000, "400", None),
        (1000, None, None),
        (1000, True, None),
        (1000, 10**30, None),
        (0, 400, 400),
        (0, ..., 0),
        (0, 0, None),
    ],
)
def test_an_upstream_shortens_a_life_and_never_lengthens_it(rule_ms: int, hint: Any, expected: int | None) -> None:
    said = result() if hint is ... else result(ttlMs=hint)
    worth = judge(read_plan(rule_ms), said)
    assert (worth.ttl_ms if worth else None) == expected


@pytest.mark.requirement("S1/CACHE-003")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, None),
        ({"cacheScope": "public"}, None),
        ({"ttlMs": 500}, Storable(500, False)),
        ({"ttlMs": 500, "cacheScope": "private"}, Storable(500, False)),
        ({"ttlMs": 500, "cacheScope": "everyone"}, Storable(500, False)),
        ({"ttlMs": 500, "cacheScope": "public"}, Storable(500, True)),
        ({"ttlMs": 10**9, "cacheScope": "public"}, Storable(HOUR_MS, True)),
        ({"ttlMs": 0, "cacheScope": "public"}, None),
    ],
)
def test_a_read_is_kept_as_long_and_shared_as_far_as_its_server_says(
    members: dict[str, Any], expected: Storable | None
) -> None:
    assert judge(policy_of({}).hinted("files", "resources/read"), result(**members)) == expected


def test_a_session_of_ones_own_has_keys_of_its_own_and_shares_nothing() -> None:
    plan = policy_of({}).hinted("files", "resources/read")
    keys = [plan.keys("ann", b"{}", session) for session in (None, "s1", "s2", "ann")]
    assert len({each.own for each in keys}) == len(keys)
    assert [each.shared is None for each in keys] == [False, True, True, True]
