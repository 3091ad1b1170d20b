"""Compressed bodies: read within bounds, refused as bombs, fragments or anything we don't know."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.upstreams.http.decompress import (
    DecompressionBombError,
    UndecodableBodyError,
    decompress,
)

MEGABYTE = 1024 * 1024


def raw_deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return machine.compress(data) + machine.flush()


@given(st.binary(max_size=2000))
def test_both_codings_are_read_back(data: bytes) -> None:
    assert decompress(gzip.compress(data), "gzip", MEGABYTE) == data
    assert decompress(zlib.compress(data), " Deflate ", MEGABYTE) == data
    assert decompress(raw_deflate(data), "deflate", MEGABYTE) == data
    assert decompress(data, "identity", MEGABYTE) == data


def test_a_bomb_is_refused_by_size_and_by_ratio() -> None:
    with pytest.raises(DecompressionBombError):
        decompress(gzip.compress(bytes(3 * MEGABYTE)), "gzip", 2 * MEGABYTE)
    with pytest.raises(DecompressionBombError):
        decompress(gzip.compress(bytes(20 * MEGABYTE)), "gzip", 100 * MEGABYTE)


def test_a_bomb_costs_no_more_than_the_bound() -> None:
    machine = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    bomb = b"".join(machine.compress(bytes(MEGABYTE)) for _ in range(40)) + machine.flush()
    with pytest.raises(DecompressionBombError):
        decompress(bomb, "gzip", MEGABYTE)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress", "x" * 500])
def test_other_codings_are_refused(coding: str) -> None:
    with pytest.raises(UndecodableBodyError) as raised:
        decompress(b"x", coding, MEGABYTE)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("damage", ["cut", "junk", "tail"])
def test_damaged_data_is_refused(coding: str, damage: str) -> None:
    data = gzip.compress(b"hello " * 100) if coding == "gzip" else zlib.compress(b"hello " * 100)
    damaged = {"cut": data[:-8], "junk": b"not compressed at all", "tail": data + b"more"}[damage]
    with pytest.raises(UndecodableBodyError):
        decompress(damaged, coding, MEGABYTE)
