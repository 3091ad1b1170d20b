"""Places in a text, and what no format may bring in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.problems import FilePosition
from pactgate.config.tree import ConfigNode, LineIndex, UnreadableError, require_encodable


@given(st.text(alphabet="ab\nü\r"), st.data())
def test_an_offset_is_a_line_and_a_column(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset].split("\n")
    assert LineIndex(text).place(offset) == FilePosition(len(before), len(before[-1]) + 1)


def test_a_value_as_a_whole_is_pointed_at_by_its_key() -> None:
    assert ConfigNode(1, FilePosition(2, 9), FilePosition(2, 3)).anchor == FilePosition(2, 3)
    assert ConfigNode(1, FilePosition(2, 9)).anchor == FilePosition(2, 9)


@given(st.text())
def test_every_text_that_can_be_written_is_accepted(text: str) -> None:
    require_encodable(text, None)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\ude00\ud83d"])
def test_half_a_surrogate_pair_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        require_encodable(text, FilePosition(1, 2))
    assert raised.value.place == FilePosition(1, 2)
