"""Packets between processes: whole, of any size, with their descriptors, and nothing left open."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.workers import packets
from pactgate.workers.packets import INLINE_BYTES, EndedError
from tests.support.children import descriptors


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_packets_arrive_as_they_were_sent_one_by_one(texts: list[bytes]) -> None:
    ours, theirs = packets.pair()
    with ours, theirs:
        assert all(packets.send(ours, text) for text in texts)
        for text in texts:
            packet = packets.receive(theirs)
            assert packet is not None
            assert (packet.text, packet.descriptors) == (text, ())
        assert packets.receive(theirs) is None


@pytest.mark.parametrize("size", [INLINE_BYTES, INLINE_BYTES + 1, 3_000_000])
def test_a_large_packet_arrives_whole_with_its_descriptors_and_leaves_none_behind(size: int) -> None:
    before = descriptors()
    ours, theirs = packets.pair()
    reading, writing = os.pipe()
    text = os.urandom(size)
    with ours, theirs:
        assert packets.send(ours, text, (writing,))
        os.close(writing)
        packet = packets.receive(theirs)
        assert packet is not None
        assert packet.text == text
        [arrived] = packet.descriptors
        assert not os.get_inheritable(arrived)
        os.write(arrived, b"through")
        assert os.read(reading, 100) == b"through"
        packet.close()
        os.close(reading)
    assert descriptors() == before


def test_a_full_socket_says_so_and_a_dead_end_says_so() -> None:
    ours, theirs = packets.pair()
    with ours:
        while packets.send(ours, b"x" * 10_000):
            pass
        assert packets.receive(theirs) is not None
        while packets.receive(theirs) is not None:
            pass
        assert packets.send(ours, b"room again")
        theirs.close()
        with pytest.raises(EndedError):
            packets.send(ours, b"nobody there")
        with pytest.raises(EndedError):
            packets.receive(ours)


def test_a_packet_beyond_all_bounds_is_refused() -> None:
    ours, theirs = packets.pair()
    with ours, theirs, pytest.raises(ValueError, match="at most"):
        packets.send(ours, bytes(packets.MAX_BYTES + 1))
