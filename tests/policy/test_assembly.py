"""A result is put together for an era from its own bytes, by its parts or by its members; nothing is ever lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import ENVELOPE_KEY
from pactgate.policy.assembly import assemble
from pactgate.protocol.messages import members
from pactgate.protocol.modern import ERA_MEMBERS, PREFIX, SERVER_INFO_KEY, complete, strip_result
from pactgate.protocol.simple_result import read_simple

INFO = b'{"name":"gate","version":"1"}'
OURS = b'"%b":{"requestId":"x"}' % ENVELOPE_KEY.encode()
CONTENT = [{"type": "text", "text": "hi \u00e9"}]


def put_together(result: bytes, *, is_modern: bool, was_modern: bool, is_simple: bool = True) -> bytes:
    """By its parts or by its members; what is not simple has only members."""
    simple = read_simple(result) if is_simple else None
    assert simple is not None or not is_simple
    return assemble(
        simple, None if is_simple else result, OURS, server_info=INFO, is_modern=is_modern, was_modern=was_modern
    )


def read_again(text: bytes) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(text)
    assert whole["_meta"].pop(ENVELOPE_KEY) == {"requestId": "x"}
    return whole


@pytest.mark.parametrize("is_simple", [True, False])
@pytest.mark.parametrize("is_modern", [True, False])
def test_every_member_keeps_its_bytes(is_simple: bool, is_modern: bool) -> None:
    content = b'[ {"type" : "text", "text":"\\u0041", "n": 1.0e3, "big": 18446744073709551616} ]'
    structured = b'{ "a" : 1e400 }'
    text = b'{"structuredContent":%b,"content":%b}' % (structured, content)
    held = members(put_together(text, is_modern=is_modern, was_modern=True, is_simple=is_simple))
    assert (bytes(held["content"]), bytes(held["structuredContent"])) == (content, structured)


def test_a_result_without_any_member_still_gets_its_envelope() -> None:
    for is_modern in (False, True):
        read = read_again(put_together(b"{}", is_modern=is_modern, was_modern=False, is_simple=False))
        assert read.get("resultType") == ("complete" if is_modern else None)


metas = st.none() | st.dictionaries(
    st.sampled_from([SERVER_INFO_KEY, PREFIX + "other", "a", "b/c", ENVELOPE_KEY, "\u00e9"]),
    st.integers() | st.text(max_size=5),
)


@given(
    structured=st.none() | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    is_error=st.none() | st.booleans(),
    kind=st.booleans(),
    meta=metas,
    is_modern=st.booleans(),
    was_modern=st.booleans(),
)
def test_its_parts_and_its_members_say_the_same_to_each_era(
    structured: dict[str, int] | None,
    is_error: bool | None,
    kind: bool,
    meta: dict[str, Any] | None,
    is_modern: bool,
    was_modern: bool,
) -> None:
    result: dict[str, Any] = {"content": CONTENT}
    if structured is not None:
        result["structuredContent"] = structured
    if is_error is not None:
        result["isError"] = is_error
    if kind:
        result["resultType"] = "complete"
    if meta is not None:
        result["_meta"] = meta
    text = json.dumps(result).encode()
    shaped = members(text)
    if is_modern:
        shaped = complete(shaped, INFO, cacheable=False)
    elif was_modern:
        shaped = strip_result(shaped)
    expected = {name: json.loads(bytes(raw)) for name, raw in shaped.items()}
    expected["_meta"] = {key: held for key, held in expected.get("_meta", {}).items() if key != ENVELOPE_KEY}
    for is_simple in (True, False):
        whole = put_together(text, is_modern=is_modern, was_modern=was_modern, is_simple=is_simple)
        assert read_again(whole) == expected


@given(
    parts=st.dictionaries(
        st.sampled_from(["content", "resultType", "ttlMs", "cacheScope", "task", "inputRequests", "\u00e9"]),
        st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    ),
    meta=metas,
    is_modern=st.booleans(),
    was_modern=st.booleans(),
)
def test_a_result_of_any_shape_loses_nothing_its_callers_era_has_a_place_for(
    parts: dict[str, Any], meta: dict[str, Any] | None, is_modern: bool, was_modern: bool
) -> None:
    text = json.dumps(parts if meta is None else {**parts, "_meta": meta}).encode()
    read = read_again(put_together(text, is_modern=is_modern, was_modern=was_modern, is_simple=False))
    told = read.pop("_meta")
    kept = {name: held for name, held in parts.items() if is_modern or not was_modern or name not in ERA_MEMBERS}
    assert read == ({"resultType": "complete", **kept} if is_modern else kept)
    own = {key: held for key, held in (meta or {}).items() if key != ENVELOPE_KEY}
    if is_modern:
        own.setdefault(SERVER_INFO_KEY, json.loads(INFO))
    elif was_modern:
        own = {key: held for key, held in own.items() if not key.startswith(PREFIX)}
    assert told == own
