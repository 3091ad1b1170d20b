"""A plain result is put together for an era from its own bytes; what is not plain is left alone; nothing is ever lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import ENVELOPE_KEY
from pactgate.policy.assembly import parts_for
from pactgate.protocol.messages import members
from pactgate.protocol.modern import PREFIX, SI, complete, strip_result
from pactgate.protocol.simple_result import read_plain

INFO = b'{"name":"gate","version":"1"}'
OURS = b'"%b":{"requestId":"x"}' % ENVELOPE_KEY.encode()
CONTENT = [{"type": "text", "text": "hi \u00e9"}]


def put_together(result: bytes, *, is_modern: bool, was_modern: bool) -> dict[str, Any]:
    plain = read_plain(result)
    assert plain is not None
    parts = parts_for(plain, INFO, is_modern=is_modern, was_modern=was_modern)
    parts.insert(-1, OURS)
    whole: dict[str, Any] = json.loads(b"".join(parts))
    assert whole["_meta"].pop(ENVELOPE_KEY) == {"requestId": "x"}
    return whole


def test_the_content_keeps_its_bytes() -> None:
    content = b'[ {"type" : "text", "text":"\\u0041", "n": 1.0e3, "big": 18446744073709551616} ]'
    plain = read_plain(b'{"content":%b}' % content)
    assert plain is not None
    assert content in b"".join(parts_for(plain, INFO, is_modern=False, was_modern=True))


metas = st.none() | st.dictionaries(
    st.sampled_from([SI, PREFIX + "other", "a", "b/c", ENVELOPE_KEY, "\u00e9"]), st.integers() | st.text(max_size=5)
)


@given(
    structured=st.none() | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    is_error=st.none() | st.booleans(),
    kind=st.booleans(),
    meta=metas,
    is_modern=st.booleans(),
    was_modern=st.booleans(),
)
def test_it_says_what_reading_all_members_would_have_said(
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
    assert put_together(text, is_modern=is_modern, was_modern=was_modern) == expected
