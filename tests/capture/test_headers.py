"""Blocks of headers."""

from __future__ import annotations

from pactgate.capture.headers import identity, pairs


def test_every_way_headers_come_gives_the_same_pairs() -> None:
    expected = [("x-a", "1"), ("x-b", "2")]
    assert pairs(b"X-A: 1\r\nX-B:2\r\n") == expected
    assert pairs({"x-a": ["1"], "x-b": ["2"]}) == expected
    assert pairs({b"X-A": b"1", b"X-B": b"2"}) == expected


def test_the_same_block_has_the_same_identity_and_another_has_not() -> None:
    block = {"a": ["1"]}
    assert identity(block) == identity(block)
    assert identity({b"a": b"1"}) == identity({b"a": b"1"})
    assert len({identity(each) for each in (b"", b"a: 1", {b"a": b"1"}, {b"a": b"2"}, block, {})}) == 6
