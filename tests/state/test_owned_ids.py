"""Ids that name the replica which owns something, to replicas only."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from pactgate.state.owned_ids import OwnedIds, new_replica_id
from pactgate.state.sealing_keys import SealingKeys

OLD, NEW = bytes(range(32)), bytes(range(32, 64))


def test_an_id_names_its_owner_to_those_who_have_the_key() -> None:
    replica = new_replica_id()
    id_ = OwnedIds(SealingKeys(OLD), replica).new()
    assert OwnedIds(SealingKeys(NEW, OLD), new_replica_id()).owner_of(id_) == replica
    assert OwnedIds(SealingKeys(NEW, OLD), new_replica_id()).owner_of(f"{id_}.anything after it") == replica
    assert OwnedIds(SealingKeys(NEW), new_replica_id()).owner_of(id_) is None
    assert id_.isascii()
    assert len(id_) == 70


@given(st.text(max_size=200))
def test_any_other_id_has_no_owner(text: str) -> None:
    assert OwnedIds(SealingKeys(OLD), new_replica_id()).owner_of(text) is None


def test_an_id_is_new_each_time() -> None:
    ids = OwnedIds(SealingKeys(os.urandom(32)), new_replica_id())
    assert len({ids.new() for _ in range(100)}) == 100
