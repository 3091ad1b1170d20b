"""Fitting answers into a bound: what is cut, what gives way to a note, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from pactgate.core.failures import WireError
from pactgate.policy.response_size import SUFFIX, Fitted, TooLarge, fit, fit_error, fit_facts

MIB = 1_048_576


def text(what: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": what, **more}


def encoded(*content: Any, **members: Any) -> bytes:
    return json.dumps({"content": content, **members}, ensure_ascii=False, separators=(",", ":")).encode()


def cut(result: bytes, max_bytes: int, *, reserve: int = 0) -> dict[str, Any]:
    """The answer after it had to be cut."""
    fitted = fit(result, max_bytes, has_output_schema=False, reserve_bytes=reserve)
    assert isinstance(fitted, Fitted)
    assert fitted.is_truncated
    assert fitted.original_size_bytes == len(result)
    assert len(fitted.result) + reserve <= max_bytes
    again: dict[str, Any] = json.loads(fitted.result)
    return again


def texts(answer: dict[str, Any]) -> list[str]:
    return [item["text"] for item in answer["content"]]


@pytest.mark.requirement("S1/RESP-003")
@pytest.mark.parametrize("letter", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_bound_counts_bytes_as_they_are_written(letter: str, over: int) -> None:
    result = encoded(text(letter * 500))
    fitted = fit(result, len(result) - over, has_output_schema=False)
    assert isinstance(fitted, Fitted)
    assert fitted.is_truncated is (over > 0)
    assert len(fitted.result) <= len(result) - over


def test_what_fits_is_passed_on_as_the_very_bytes_it_was() -> None:
    result = b'{ "content" : [ {"type":"text","text":"\\u0061"} ] }'
    fitted = fit(result, len(result), has_output_schema=True)
    assert isinstance(fitted, Fitted)
    assert fitted.result is result
    assert fitted == Fitted(result, is_truncated=False, original_size_bytes=None)


def test_room_is_left_for_what_is_added_afterwards() -> None:
    result = encoded(text("x" * 500))
    assert fit(result, len(result) + 99, has_output_schema=False, reserve_bytes=100) != Fitted(result)
    assert fit(result, len(result) + 100, has_output_schema=False, reserve_bytes=100) == Fitted(result)
    cut(result, 400, reserve=100)


@pytest.mark.requirement("S1/RESP-004")
def test_a_cut_text_ends_with_the_suffix() -> None:
    (shown,) = texts(cut(encoded(text("x" * 5000)), 1024))
    assert shown.endswith("x" + SUFFIX)


def test_the_largest_texts_are_cut_and_small_ones_stay_whole() -> None:
    first, second, third = texts(cut(encoded(text("a" * 9000), text("kept"), text("b" * 6000)), 4000))
    assert second == "kept"
    assert abs(len(first) - len(third)) <= 1
    assert len(first) > 1500


def test_no_member_beside_a_cut_text_is_lost() -> None:
    answer = cut(encoded(text("x" * 5000, annotations={"priority": 1}), isError=True, _meta={"k": 1}, more=[2]), 1024)
    assert answer["content"][0]["annotations"] == {"priority": 1}
    assert {name: answer[name] for name in ("isError", "_meta", "more")} == {
        "isError": True,
        "_meta": {"k": 1},
        "more": [2],
    }


def test_the_text_of_an_embedded_resource_is_cut_too() -> None:
    resource = {"uri": "file:///a", "mimeType": "text/plain", "text": "x" * 5000}
    (item,) = cut(encoded({"type": "resource", "resource": resource}), 1024)["content"]
    assert item["resource"]["uri"] == "file:///a"
    assert item["resource"]["text"].endswith("x" + SUFFIX)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "image", "mimeType": "image/png", "data": "A" * 9000}, "image/png"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "A" * 9000}, "audio/wav"),
        (
            {"type": "resource", "resource": {"uri": "x:y", "mimeType": "application/pdf", "blob": "A" * 9000}},
            "application/pdf",
        ),
        ({"type": "hologram", "beams": "A" * 9000}, "hologram"),
        ({"beams": "A" * 9000}, "an item"),
        (["A" * 9000], "an item"),
        ({"type": "resource", "resource": "A" * 9000}, "an item"),
        ({"type": "image", "mimeType": "\u202e" * 500, "data": "A" * 9000}, "\\u202e"),
    ],
)
def test_what_can_not_be_cut_gives_way_to_a_note(item: Any, kind: str) -> None:
    before, note, after = texts(cut(encoded(text("before"), item, text("after")), 1024))
    assert (before, after) == ("before", "after")
    assert note.startswith(f"[{kind}")
    assert f"of {len(json.dumps(item, ensure_ascii=False, separators=(',', ':')).encode())} bytes omitted" in note


def test_room_an_image_gave_up_goes_to_the_texts() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 9000}
    shown, note = texts(cut(encoded(text("x" * 9000), image), 2048))
    assert "image/png" in note
    assert len(shown) > 1800


def test_an_image_that_is_not_what_is_large_stays() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 500}
    _, kept = cut(encoded(text("x" * 9000), image), 2048)["content"]
    assert kept == image


def test_a_text_whose_annotations_are_what_is_large_gives_way_to_a_note() -> None:
    (note,) = texts(cut(encoded(text("short", annotations={"why": "y" * 9000})), 1024))
    assert "omitted" in note


def test_trailing_items_are_left_out_when_there_are_too_many_to_cut() -> None:
    answer = cut(encoded(*(text(f"line {number}") for number in range(5000))), 4096)
    *shown, last = texts(answer)
    assert shown == [f"line {number}" for number in range(len(shown))]
    assert len(shown) > 80
    assert last.startswith(f"[{5000 - len(shown)} more items omitted")


def test_metadata_that_is_itself_the_bulk_is_left_out() -> None:
    answer = cut(encoded(text("kept"), _meta={"k": "y" * 9000}, note="z", isError=False), 1024)
    assert answer == {"content": [text("kept")], "note": "z", "isError": False}


@pytest.mark.parametrize("max_bytes", [14, 20, 38, 39, 40, 45, 54, 55])
def test_a_bound_smaller_than_the_suffix_is_kept(max_bytes: int) -> None:
    answer = cut(encoded(text("x" * 100)), max_bytes)
    assert all(SUFFIX.startswith(shown) or shown.endswith(SUFFIX) for shown in texts(answer))


def test_a_bound_without_room_for_an_empty_answer_is_refused() -> None:
    result = encoded(text("x" * 100))
    assert fit(result, 13, has_output_schema=False) == TooLarge(len(result))
    assert fit(result, 50, has_output_schema=False, reserve_bytes=60) == TooLarge(len(result))


@pytest.mark.requirement("S1/RESP-003")
@pytest.mark.parametrize("has_output_schema", [True, False])
@pytest.mark.parametrize("is_error", [True, False])
def test_structured_content_is_never_cut(has_output_schema: bool, is_error: bool) -> None:
    result = encoded(text("x" * 2000), structuredContent={"rows": [1]}, isError=is_error)
    assert fit(result, 1024, has_output_schema=has_output_schema) == TooLarge(len(result))


def test_an_answer_that_promised_structure_is_not_cut_but_its_error_text_is() -> None:
    result = encoded(text("x" * 2000))
    assert fit(result, 1024, has_output_schema=True) == TooLarge(len(result))
    failed = encoded(text("x" * 2000), isError=True)
    fitted = fit(failed, 1024, has_output_schema=True)
    assert isinstance(fitted, Fitted)
    assert fitted.is_truncated


@pytest.mark.parametrize(
    "result", [b"[" + b" " * 99 + b"]", b'{"content":7,"x":"%b"}' % (b"y" * 99), b'{"x":"%b"}' % (b"y" * 99)]
)
def test_what_is_no_tool_result_is_not_cut(result: bytes) -> None:
    assert fit(result, 50, has_output_schema=False) == TooLarge(len(result))


def test_white_space_alone_is_dropped_without_a_flag() -> None:
    result = b'{"content": [' + b" " * 500 + b'{"type":"text","text":"whole"}]}'
    fitted = fit(result, 200, has_output_schema=False)
    assert fitted == Fitted(encoded(text("whole")))
    inside = b'{"content":[{"type":"text",' + b" " * 500 + b'"text":"whole"}]}'
    assert fit(inside, 200, has_output_schema=False) == Fitted(encoded(text("whole")))


@pytest.mark.parametrize(
    ("raw", "unit"),
    [
        (b"\\ud83d\\ude00", 12),
        (b"\\n", 2),
        (b"\\\\", 2),
        (b"\\u0001", 6),
        ("é".encode(), 2),
        ("😀".encode(), 4),
        (b"\\\\ud83d", 7),
    ],
)
def test_no_character_and_no_escape_is_ever_split(raw: bytes, unit: int) -> None:
    result = b'{"content":[{"type":"text","text":"%b"}]}' % (raw * 60)
    whole = json.loads(result)["content"][0]["text"]
    for max_bytes in range(70, 110):
        fitted = fit(result, max_bytes, has_output_schema=False)
        assert isinstance(fitted, Fitted)
        (shown,) = texts(json.loads(fitted.result))
        kept = shown.removesuffix(SUFFIX)
        assert whole.startswith(kept)
        assert not kept.endswith("\ud83d")
        assert max_bytes - unit < len(fitted.result) <= max_bytes


def test_another_suffix_may_be_chosen_and_is_written_as_json() -> None:
    fitted = fit(encoded(text("x" * 500)), 200, has_output_schema=False, suffix=' …"cut"')
    assert isinstance(fitted, Fitted)
    assert texts(json.loads(fitted.result))[0].endswith('x …"cut"')


def test_facts_that_are_too_large_are_left_out_largest_first() -> None:
    facts = {
        "failure_mode": "upstream_error",
        "upstream": {"data": Raw(b'"%b"' % (b"x" * 9000))},
        "code": "OPERATION_FAILED",
    }
    assert fit_facts(facts, 10_000) is facts
    assert fit_facts(facts, 1000) == {"failure_mode": "upstream_error", "code": "OPERATION_FAILED", "leftOut": 1}


@pytest.mark.requirement("S1/RESP-003")
def test_an_error_that_is_too_large_keeps_its_code_and_the_start_of_its_message() -> None:
    small = WireError(-32603, "no", {"code": "X"})
    assert fit_error(small, 1000) is small
    large = fit_error(WireError(-32603, "m" * 5000, {"code": "X", "said": "s" * 5000}), 1000)
    assert large.code == -32603
    assert large.message.endswith("m" + SUFFIX)
    assert large.data == {"code": "X", "leftOut": 1}
    assert fit_error(WireError(1, "m", "s" * 5000), 1000) == WireError(1, "m", None)


def test_as_many_items_as_a_frame_can_hold_are_fitted() -> None:
    """Two hundred thousand items are the most a frame of eight mebibytes can hold."""
    result = encoded(*(text("é") for _ in range(200_000)))
    assert len(texts(cut(result, MIB))) > 25_000
