"""Truncation over random answers: never beyond the bound, never broken, never unsaid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pactgate.core.failures import WireError
from pactgate.policy.response_size import SUFFIX, Fitted, TooLarge, fit, fit_error, fit_facts

texts = st.text(st.sampled_from('aé€😀"\\\n\x01u'), max_size=400) | st.text(max_size=60)
small = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=40), max_size=3)
text_items = st.fixed_dictionaries({"type": st.just("text"), "text": texts}, optional={"annotations": small})
binary_items = st.fixed_dictionaries(
    {"type": st.sampled_from(["image", "audio"]), "data": st.text("QUJD", max_size=600), "mimeType": texts}
)
resources = st.fixed_dictionaries(
    {
        "type": st.just("resource"),
        "resource": st.fixed_dictionaries({"uri": texts}, optional={"text": texts, "blob": texts}),
    }
)
odd_items = st.none() | st.integers() | st.text(max_size=300) | small | st.fixed_dictionaries({"type": st.just("text")})
contents = st.lists(text_items | binary_items | resources | odd_items, max_size=8) | st.lists(text_items, max_size=60)
results = st.fixed_dictionaries(
    {"content": contents},
    optional={"isError": st.booleans(), "_meta": small, "x-more": texts, "resultType": st.just("complete")},
)
bounds = st.integers(0, 4000)


def written(value: Any, spell: str) -> bytes:
    """The same value as different servers write it."""
    if spell == "compact":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return json.dumps(value, ensure_ascii=True, indent=2 if spell == "indented" else None).encode()


def all_texts(content: list[Any]) -> list[str]:
    holders = [item.get("resource", item) for item in content if isinstance(item, dict)]
    return [holder["text"] for holder in holders if isinstance(holder, dict) and isinstance(holder.get("text"), str)]


def is_start_of_any(text: str, originals: list[str]) -> bool:
    """Whether a text begins as an original does and ends with the suffix, or is one of our notes, itself perhaps cut."""
    kept = text.removesuffix(SUFFIX)
    is_note = kept.startswith("[") and ("omitted" in kept or kept != text)
    return is_note or SUFFIX.startswith(text) or any(original.startswith(kept) for original in originals)


@pytest.mark.requirement("S1/RESP-003")
@pytest.mark.requirement("S1/RESP-004")
@given(
    value=results,
    spell=st.sampled_from(["compact", "ascii", "indented"]),
    max_bytes=bounds,
    reserve=st.integers(0, 300),
)
@example(value={"content": [{"type": "text", "text": "😀" * 50}]}, spell="ascii", max_bytes=101, reserve=0)
@example(value={"content": [{"type": "text", "text": "\\ud83d" * 50}]}, spell="ascii", max_bytes=102, reserve=0)
@example(value={"content": [{"type": "text", "text": "\\" * 200}]}, spell="compact", max_bytes=100, reserve=0)
def test_a_fitted_answer_is_within_the_bound_valid_flagged_and_fits_again(
    value: dict[str, Any], spell: str, max_bytes: int, reserve: int
) -> None:
    result = written(value, spell)
    fitted = fit(result, max_bytes, has_output_schema=False, reserve_bytes=reserve)
    if isinstance(fitted, TooLarge):
        assert max_bytes - reserve < 60, "an empty answer would have had room"
        return
    assert len(fitted.result) + reserve <= max_bytes
    again = json.loads(fitted.result)
    assert fitted.is_truncated is (again != value)
    assert fitted.original_size_bytes == (len(result) if fitted.is_truncated else None)
    assert again.get("isError", False) == value.get("isError", False)
    originals = all_texts(value["content"])
    assert all(is_start_of_any(text, originals) for text in all_texts(again["content"]))
    assert fit(fitted.result, max_bytes, has_output_schema=False, reserve_bytes=reserve) == Fitted(fitted.result)


@given(
    text=texts.filter(lambda text: len(text) > 20),
    spell=st.sampled_from(["compact", "ascii"]),
    max_bytes=st.integers(60, 400),
)
def test_a_single_text_keeps_all_the_room_there_is(text: str, spell: str, max_bytes: int) -> None:
    fitted = fit(written({"content": [{"type": "text", "text": text}]}, spell), max_bytes, has_output_schema=False)
    assert isinstance(fitted, Fitted)
    if fitted.is_truncated:
        kept = json.loads(fitted.result)["content"][0]["text"]
        assert kept.endswith(SUFFIX)
        assert text.startswith(kept.removesuffix(SUFFIX))
        assert len(fitted.result) > max_bytes - 13, "at most one more character, an escaped pair, would not have fitted"


@pytest.mark.requirement("S1/RESP-003")
@given(value=results, structured=small, max_bytes=bounds)
def test_structured_content_is_passed_whole_or_not_at_all(
    value: dict[str, Any], structured: dict[str, Any], max_bytes: int
) -> None:
    result = written({**value, "structuredContent": structured}, "compact")
    for has_output_schema in (True, False):
        fitted = fit(result, max_bytes, has_output_schema=has_output_schema)
        expected = Fitted(result) if len(result) <= max_bytes else TooLarge(len(result))
        assert fitted == expected


@given(facts=st.dictionaries(st.text(max_size=20), texts | small, max_size=8), max_bytes=st.integers(20, 2000))
def test_facts_are_left_out_whole_and_counted(facts: dict[str, Any], max_bytes: int) -> None:
    facts.pop("leftOut", None)
    fitted = fit_facts(facts, max_bytes)
    assert len(json.dumps(fitted, ensure_ascii=False, separators=(",", ":")).encode()) <= max_bytes
    assert all(fitted[name] == facts[name] for name in fitted.keys() & facts.keys())
    assert fitted.get("leftOut", 0) == len(facts) - len(fitted.keys() & facts.keys())


@given(message=texts, data=st.none() | texts | small, max_bytes=st.integers(20, 500))
def test_an_error_stays_within_the_bound(message: str, data: Any, max_bytes: int) -> None:
    error = fit_error(WireError(-32603, message, data), max_bytes)
    size = len(json.dumps(error.message, ensure_ascii=False).encode())
    size += 0 if error.data is None else len(json.dumps(error.data, ensure_ascii=False, separators=(",", ":")).encode())
    assert size <= max_bytes
    assert message.startswith(error.message.removesuffix(SUFFIX)) or SUFFIX.startswith(error.message)
