"""The access token of one server in a running gateway: read from the store, refreshed once for everybody, or the gateway's own.

A call never asks here: channels carry the token in their headers, and come when a server refused it. One refresh runs at a time, in one
process (a lock per server) and in a task of its own, so that a caller who leaves does not lose its answer. Under the lock the row is read
again, and a newer token of another process is taken. A refresh token is marked before it is presented; one whose answer was lost is
presented once more and never again. Must not: ask a person, or try again in a loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final

from msgspec.structs import replace

from pactgate.core.failures import GatewayFailure, Verdict
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.challenge import Challenge, read_challenge
from pactgate.upstreams.oauth.fetcher import SignInFetcher
from pactgate.upstreams.oauth.sign_in import SignInGrant, SignInSettings
from pactgate.upstreams.oauth.steps import authorization_required
from pactgate.upstreams.oauth.stored_grants import StoredGrant, StoredGrants
from pactgate.upstreams.oauth.tokens import RefusedGrantError, UnknownClientError

RENEW_S: Final = 30.0
_EARLY_S: Final = 10.0
"""A token that ends this soon is refreshed before a connection is opened with it."""
_YOUNG_S: Final = 5.0
"""A token that is refused at this age is not the trouble: another one would be refused as well."""
_CLOSE_S: Final = 2.0
_MAX_PRESENTED: Final = 2
_MAX_WIDENED: Final = 3
Know = Callable[[Collection[str]], None]
"""Is told secrets, to mask them."""
Obtain = Callable[[tuple[str, ...], float], Awaitable[SignInGrant]]
"""Gets a grant with these scopes, at this time of the wall clock."""
Required = Callable[[str], GatewayFailure]
"""The failure of a call that needs a sign-in, from why it does."""


class ServerGrant:
    """`token` is the one to send now; empty: none."""

    def __init__(
        self,
        settings: SignInSettings,
        fetcher: SignInFetcher,
        grants: StoredGrants | None,
        know: Know,
        *,
        obtain: Obtain | None = None,
        is_configured: bool = True,
        required: Required | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`grants` is None where there is no store: then nobody can have signed in. `obtain` gets a grant without anybody, where that
        is the way. `is_configured`: the server has an `auth`. `required` makes the failure of a caller whose own
        grant it is: without one nothing is sent."""
        self.server = settings.server
        self.token = ""
        self.issuer: str | None = None
        """Who gave the token: the authorization server that the gateway is signed in at."""
        self._fetcher = fetcher
        self._grants = grants
        self._know = know
        self._obtain_own = obtain
        self._is_configured = is_configured
        self._make_failure = required or partial(authorization_required, settings.server)
        self._is_callers = required is not None
        self._wall = wall
        self._own: SignInGrant | None = None
        self._unkept: StoredGrant | None = None
        """What a refresh gave, and the generation that it replaces, until it is in the store."""
        self._scopes = settings.scopes
        self._wider: tuple[str, ...] = ()
        """The scopes to ask for next, where they are more than those of now."""
        self._widened = 0
        self._ended = ""
        """The token of the last grant that ended."""
        self._refusal: GatewayFailure | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether the server waits for somebody to sign in."""
        return self._refusal is not None

    async def prepare(self) -> None:
        """Have a token before anything is sent, where there can be one. Raises while the server waits for a sign-in."""
        if self._obtain_own is not None:
            if not self.token:
                await self._single("")
            return
        stored = await self._read()
        if stored is None or stored.grant.access_token in ("", self._ended):
            if self._refusal is not None:
                raise self._refusal.again()
            if stored is not None or self._is_callers:
                self._refuse(self.token, has_ended=stored is not None)
            return
        self._take(stored.grant)
        if self._ends_soon(stored.grant) and stored.grant.refresh_token:
            await self._single(self.token)

    def answers(self, used: str, header: str) -> bool:
        """Whether a 401 with this challenge is about a sign-in. One without OAuth's may be about an API key."""
        return bool(self._is_configured or used or read_challenge(header).resource_metadata)

    async def renew(self, used: str) -> None:
        """After a 401: have another token than the one that was used. Raises where only a person can help."""
        if self.token in ("", used):
            await self._single(used)

    async def widen(self, used: str, header: str) -> bool:
        """After a 403: whether there is a token with more scopes now. Raises where a sign-in would give one."""
        challenge = read_challenge(header)
        if challenge.error != "insufficient_scope" or not challenge.scopes or not used:
            return False
        if self.token != used:
            return True
        if self._obtain_own is not None:
            return await self._widen_own(used, challenge)
        stored = await self._read()
        if stored is None:
            return False
        if stored.grant.access_token != used:
            self._take(stored.grant)
            return True
        held = {*stored.grant.requested, *(stored.grant.scopes or ())}
        if held.issuperset(challenge.scopes):
            return False
        assert self._grants is not None
        await asyncio.to_thread(self._grants.keep_challenge, challenge)
        raise self._required(f"it wants more scopes ({' '.join(challenge.scopes)[:300]}).")

    def refused(self) -> GatewayFailure:
        """The failure of a request whose fresh token was refused as well."""
        return self._required("it does not accept the token that it was given just now.")

    async def reread(self) -> None:
        """The file of credentials has changed: somebody signed in or out, or another process has refreshed."""
        if self._obtain_own is not None:
            return
        stored = await self._read()
        if stored is not None and stored.grant.access_token not in ("", self._ended):
            self._take(stored.grant)
        elif stored is None:
            self._ended, self.token = self.token or self._ended, ""

    async def close(self) -> None:
        """Give a refresh that runs a moment to end, so that its answer is kept."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_CLOSE_S)
            self._task.cancel()
            await asyncio.wait({self._task})

    # One at a time.

    async def _single(self, used: str) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._bounded(used), name=f"token of {self.server}")
            self._task.add_done_callback(_note_failure)
        await asyncio.shield(self._task)

    async def _bounded(self, used: str) -> None:
        try:
            async with asyncio.timeout(RENEW_S):
                await (self._refresh(used) if self._obtain_own is None else self._obtain(self._obtain_own))
        except TimeoutError:
            raise authorization_required(
                self.server, f"its sign-in was not renewed within {RENEW_S:g} s.", next_step="Try again."
            ) from None
        except GatewayFailure as failure:
            failure.verdict = Verdict.DID_NOT_RUN  # the server refused the request that led here
            raise

    async def _obtain(self, obtain: Obtain) -> None:
        """A grant that needs nobody."""
        wider, self._wider = self._wider, ()
        if not wider and self._own is not None and self._wall() - self._own.signed_in_at < _YOUNG_S:
            raise authorization_required(
                self.server,
                "it does not accept the token of its own authorization server.",
                next_step=f"Check `auth` of {self.server}.",
            )
        self._own = await obtain(wider or self._scopes, self._wall())
        self._scopes = wider or self._scopes
        self._take(self._own)

    async def _widen_own(self, used: str, challenge: Challenge) -> bool:
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})
        if self.token != used:
            return True
        wanted = tuple(dict.fromkeys((*self._scopes, *challenge.scopes)))
        if wanted == self._scopes or self._widened >= _MAX_WIDENED:
            return False
        self._widened += 1
        self._wider = wanted
        await self._single(used)
        return True

    async def _refresh(self, used: str) -> None:
        if self.token not in ("", used):
            return  # taken from the store since
        if self._grants is None or not self._grants.store.exists:
            self._refuse(used)
            return
        async with self._grants.locked():
            stored = await self._read()
            if stored is None:
                self._refuse(used)
            elif stored.grant.access_token and stored.grant.access_token not in (used, self._ended):
                self._take(stored.grant)
            else:
                await self._present(self._grants, stored, used)

    async def _present(self, grants: StoredGrants, stored: StoredGrant, used: str) -> None:
        """Present the refresh token, under the lock."""
        grant = stored.grant
        is_young = self._wall() - grant.newest_at < _YOUNG_S and not self._ends_soon(grant)
        if is_young or not grant.refresh_token or grant.unanswered >= _MAX_PRESENTED:
            self._refuse(used)
            return
        marked = replace(grant, unanswered=grant.unanswered + 1)
        generation = await asyncio.to_thread(grants.write, marked, replaces=stored.generation)
        if generation is None:  # somebody signed in or out in this moment
            self._refuse(used)
            return
        try:
            found = await self._fetcher.run(sign_in.refreshed(self.server, grant, self._wall()))
        except RefusedGrantError:
            found = replace(grant, access_token="", refresh_token="")
        except UnknownClientError:
            await asyncio.to_thread(grants.write, grant, replaces=generation)
            await asyncio.to_thread(grants.forget_client, grant.client)
            raise self._required(f"{grant.client.issuer} does not know the client of the gateway any more.") from None
        except GatewayFailure as failure:
            if failure.verdict is Verdict.DID_NOT_RUN:  # it was not taken, so it may be presented again
                await asyncio.to_thread(grants.write, grant, replaces=generation)
            raise
        self._unkept = StoredGrant(found, generation)
        after = await self._read()
        if after is None or not after.grant.access_token:
            self._refuse(used)
        else:
            self._take(after.grant)

    # What is known.

    async def _read(self) -> StoredGrant | None:
        """The grant of the store; first what a refresh gave is kept, unless somebody signed in or out since."""
        if self._grants is None or not self._grants.store.exists:
            return None
        unkept = self._unkept
        if unkept is not None:
            try:
                await asyncio.to_thread(self._grants.write, unkept.grant, replaces=unkept.generation)
            except GatewayFailure:
                return unkept  # the row has a refresh token that must not be presented again
            if self._unkept is unkept:
                self._unkept = None
        return await asyncio.to_thread(self._grants.read)

    def _take(self, grant: SignInGrant) -> None:
        if grant.access_token != self.token:
            secrets = (grant.access_token, grant.refresh_token, grant.client.secret)
            self._know([secret for secret in secrets if secret])
        self.token = grant.access_token
        self.issuer = grant.client.issuer
        self._refusal = None

    def _required(self, why: str) -> GatewayFailure:
        return self._make_failure(why)

    def _ends_soon(self, grant: SignInGrant) -> bool:
        return grant.expires_at is not None and grant.expires_at - self._wall() < _EARLY_S

    def _refuse(self, used: str, *, has_ended: bool = False) -> None:
        """Raise, unless a newer token than the one that was used was taken in the meantime."""
        if self.token not in ("", used):
            return
        self._ended, self.token = used or self._ended, ""
        why = "the sign-in has ended." if self._ended or has_ended else "nobody has signed in."
        self._refusal = self._required(why)
        raise self._refusal.again()


def _note_failure(task: asyncio.Task[None]) -> None:
    """Whoever waits gets the failure; nobody may be left."""
    if not task.cancelled():
        task.exception()
