"""Places in a value, for programs and for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.policy.json_paths import MAX_CHARS, Step, dotted, pointer

STEPS = st.lists(st.text(max_size=20) | st.integers(0, 10**6), max_size=8)


@pytest.mark.parametrize(
    ("steps", "as_pointer", "as_text"),
    [
        ((), "", ""),
        (("files", 3, "name"), "/files/3/name", "files[3].name"),
        ((0, 1), "/0/1", "[0][1]"),
        (("a.b", "c"), "/a.b/c", "a.b.c"),
        (("a", "b", "c"), "/a/b/c", "a.b.c"),
        (("a/b", "~"), "/a~1b/~0", "a/b.~"),
        (("",), "/", ""),
    ],
)
@pytest.mark.requirement("S1/LIMIT-004")
def test_a_place_is_a_json_pointer_and_a_dotted_path(steps: tuple[Step, ...], as_pointer: str, as_text: str) -> None:
    assert (pointer(steps), dotted(steps)) == (as_pointer, as_text)


@given(STEPS)
def test_a_pointer_leads_back_to_its_steps(steps: list[Step]) -> None:
    written = pointer(steps)
    if len(written) < MAX_CHARS:
        found = [token.replace("~1", "/").replace("~0", "~") for token in written.split("/")[1:]]
        assert found == [str(step) for step in steps]


def test_what_callers_wrote_is_cut_and_can_not_move_the_cursor() -> None:
    steps = ("x" * 100_000, "\x1b[2J\n")
    assert len(pointer(steps)) == MAX_CHARS
    assert len(dotted(steps)) == MAX_CHARS
    assert "\x1b" not in dotted(("\x1b[2J\n",))
