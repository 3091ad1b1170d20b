"""Where bytes come from, and what is said when they don't."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture.format import CaptureError, CaptureErrorKind
from pactgate.capture.source import chunks_of, chunks_of_value


def test_a_file_comes_in_pieces_with_a_word_on_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * 2_500_000)
    told: list[tuple[int, int | None]] = []
    assert sum(map(len, chunks_of(path, lambda done, total: told.append((done, total))))) == 2_500_000
    assert len(told) == 3
    assert told[-1] == (2_500_000, 2_500_000)


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    told: list[tuple[int, int | None]] = []
    assert b"".join(chunks_of("-", lambda done, total: told.append((done, total)))) == b"{}"
    assert told == [(2, None)]


@pytest.mark.parametrize("name", ["missing.json", ".", "a\0b"])
def test_what_can_not_be_opened_is_an_unreadable_capture(tmp_path: Path, name: str) -> None:
    with pytest.raises(CaptureError) as caught:
        list(chunks_of(f"{tmp_path}/{name}"))
    assert caught.value.kind is CaptureErrorKind.UNREADABLE


def test_a_decoded_capture_is_read_like_a_file() -> None:
    assert b"".join(chunks_of_value({"a": "\ud800"})) == b'{"a": "\\ud800"}'


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [{"a": object()}, {"a": float("nan")}, endless()], ids=["object", "nan", "endless"])
def test_what_is_no_json_value_is_refused(value: Any) -> None:
    with pytest.raises(CaptureError) as caught:
        list(chunks_of_value(value))
    assert caught.value.kind is CaptureErrorKind.NOT_JSON
