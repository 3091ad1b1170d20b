"""What any authorization server that rotates refresh tokens has to bear: many processes with one token, and one that dies with the answer.

Children are processes as gateways are: each reads the grant from the store, and is refused by its server.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from pactgate.config.sections.sign_in import SignIn
from pactgate.config.server_settings import ServerConfig
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.stored_grants import StoredGrant, StoredGrants

PROCESSES = 12
CHILD_S = 60
CHILD = """
import asyncio, json, os, signal, sys
from pactgate.config.sections.sign_in import SignIn
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.grants import GrantMaker, server_grant

class Dying(HttpClient):
    async def request(self, *args, **options):
        response = await super().request(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

async def main(url, path, auth, dies):
    client = Dying() if dies else HttpClient()
    settings = json.loads(auth)
    config = ServerConfig(id="guarded", url=url, auth=SignIn(**settings) if settings else None)
    grant = server_grant(config, GrantMaker(client, CredentialStore.in_file(path), lambda secrets: None))
    try:
        await grant.prepare()
        print("ready", flush=True)
        sys.stdin.readline()
        await grant.renew(grant.token)
        print(grant.token, flush=True)
    except GatewayFailure as failure:
        print(failure.kind.value, flush=True)
    await client.close()

asyncio.run(main(*sys.argv[1:4], len(sys.argv) > 4))
"""


class Guarded:
    """A server that a real authorization server guards, and the store with a sign-in there."""

    def __init__(self, url: str, path: Path, auth: SignIn | None = None) -> None:
        self.url = url
        self.path = path
        self.store = store = CredentialStore.in_file(str(path))
        self.auth = auth
        self.grants = StoredGrants(store, "guarded", url)

    @property
    def config(self) -> ServerConfig:
        return ServerConfig(id="guarded", url=self.url, auth=self.auth)

    def kept(self) -> StoredGrant:
        kept = self.grants.read()
        assert kept is not None
        return kept

    def age(self) -> None:
        """A token that was made a moment ago and is refused is not the trouble: this one is a minute old."""
        grant = self.kept().grant
        self.grants.write(replace(grant, signed_in_at=time.time() - 60, refreshed_at=None))

    @contextmanager
    def child(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        """A process that is ready to refresh, and does at a line."""
        auth = self.auth
        settings = {} if auth is None else {"type": "oauth", "issuer": auth.issuer, "client_id": auth.client_id}
        words = [sys.executable, "-c", CHILD, self.url, str(self.path), json.dumps(settings), *more]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            try:
                yield child
            finally:
                child.kill()

    def refresh(self, *more: str) -> str:
        """A refresh in a process of its own: the new token, or the kind of its failure; nothing where it died."""
        with self.child(*more) as child:
            return child.communicate("\n", timeout=CHILD_S)[0].removeprefix("ready\n").strip()


def check_twelve_processes(guarded: Guarded) -> None:
    """They refresh once: the row is written twice, before and after, and every process has the same new token."""
    guarded.age()
    before = guarded.kept()
    with ExitStack() as running:
        children = [running.enter_context(guarded.child()) for _ in range(PROCESSES)]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        found = {child.communicate("\n", timeout=CHILD_S)[0].strip() for child in children}
    after = guarded.kept()
    assert found == {after.grant.access_token}
    assert after.grant.access_token != before.grant.access_token
    assert after.grant.refresh_token != before.grant.refresh_token, "this authorization server rotates"
    assert after.generation == before.generation + 2
    guarded.age()
    assert guarded.refresh() == guarded.kept().grant.access_token, "nothing was revoked"


def check_killed_with_the_answer(guarded: Guarded) -> None:
    """SIGKILL when the authorization server has rotated and nobody has kept its answer: one more try, then a sign-in is asked for."""
    guarded.age()
    assert guarded.refresh("dies") == ""
    assert guarded.kept().grant.unanswered == 1
    assert guarded.refresh() == "authorization_required"
    ended = guarded.kept()
    assert [guarded.refresh() for _ in range(3)] == ["authorization_required"] * 3
    assert guarded.kept().generation == ended.generation, "nothing is presented any more"
