"""A change of the file of credentials is felt within a second or two; no change costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from pactgate.catalog.connections import Connections
from pactgate.catalog.sign_in_watch import SignInWatch
from pactgate.upstreams.oauth.server_grant import ServerGrant
from tests.support.eventually import eventually


class Grant:
    """A grant that counts, and waits for nobody."""

    is_wanted = False

    def __init__(self) -> None:
        self.reads = 0

    async def reread(self) -> None:
        self.reads += 1


async def test_grants_are_read_again_when_the_file_changes_and_not_before(tmp_path: Path) -> None:
    path, grant = tmp_path / "pactgate.credentials", Grant()
    grants = {"vault": cast("ServerGrant", grant)}
    watch = SignInWatch(str(path), grants, cast("Connections", None))
    watch.start()
    try:
        path.write_bytes(b"1")
        await eventually(lambda: grant.reads)
        seen = grant.reads
        path.write_bytes(b"22")
        await eventually(lambda: grant.reads > seen)
    finally:
        await watch.close()
    assert grant.reads == 2
