"""A change of the store of credentials is felt within a second or two; no change costs nothing."""

from __future__ import annotations

from typing import cast

import pytest

from pactgate.catalog import sign_in_watch
from pactgate.catalog.connections import Connections
from pactgate.catalog.sign_in_watch import SignInWatch
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.server_grant import ServerGrant
from tests.support.eventually import eventually


class Grant:
    """A grant that counts, and waits for nobody."""

    is_wanted = False

    def __init__(self) -> None:
        self.reads = 0

    async def reread(self) -> None:
        self.reads += 1


class Store:
    """A store that somebody else changes."""

    def __init__(self) -> None:
        self.changes = 0
        self.looks = 0

    def state(self) -> int:
        self.looks += 1
        return self.changes


async def test_grants_are_read_again_when_the_store_changes_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_watch, "LOOK_S", 0.1)
    store, shared, callers = Store(), Grant(), Grant()
    grants = {"vault": cast("ServerGrant", shared)}
    watch = SignInWatch(
        cast("CredentialStore", store),
        grants,
        cast("Connections", None),
        lambda: [cast("ServerGrant", callers)],
    )
    watch.start()
    try:
        await eventually(lambda: store.looks >= 2)
        assert shared.reads == 0
        store.changes += 1
        await eventually(lambda: shared.reads)
    finally:
        await watch.close()
    assert (shared.reads, callers.reads) == (1, 1)
