"""A line holds the one before it, and every change shows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.audit import chain
from pactgate.audit.chain import GENESIS, MAX_LINE_BYTES, START, BrokenLineError, ChainLink

FACTS = b'{"kind":"call","n":1}'


def test_a_line_is_json_with_its_number_the_hash_before_it_and_its_own() -> None:
    line, link = chain.append_record(FACTS, START)
    said = json.loads(line)
    assert said == {"seq": 1, "prev": GENESIS, "kind": "call", "n": 1, "hash": link.hash}
    head, read_link = chain.read(line)
    assert (head.seq, head.prev, head.kind) == (1, GENESIS, "call")
    assert read_link == link
    assert chain.facts(line) == said


def test_a_line_follows_only_the_one_it_was_made_for() -> None:
    first, link = chain.append_record(FACTS, START)
    second, _ = chain.append_record(FACTS, link)
    assert chain.mismatch(chain.read(first)[0], START) is None
    assert chain.mismatch(chain.read(second)[0], link) is None
    assert chain.mismatch(chain.read(second)[0], START) == "1 record before it is missing"
    assert "out of order" in (chain.mismatch(chain.read(first)[0], link) or "")
    assert "replaced" in (chain.mismatch(chain.read(second)[0], ChainLink(1, "f" * 64)) or "")


@given(st.data())
def test_no_byte_of_a_line_can_be_changed_unnoticed(data: st.DataObject) -> None:
    line, _ = chain.append_record(FACTS, START)
    at = data.draw(st.integers(0, len(line) - 2))
    new = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[at]))
    with pytest.raises(BrokenLineError):
        chain.read(line[:at] + bytes([new]) + line[at + 1 :])


@given(st.binary(max_size=300))
def test_anything_at_all_is_a_sound_line_or_a_broken_one(line: bytes) -> None:
    with pytest.raises(BrokenLineError):
        chain.read(line)
    assert chain.claimed_hash(line) is None or len(chain.claimed_hash(line) or "") == 64


def test_a_line_longer_than_any_record_is_not_looked_into() -> None:
    with pytest.raises(BrokenLineError, match="longer"):
        chain.read(b"x" * (MAX_LINE_BYTES + 1))
