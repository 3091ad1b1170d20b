from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.auth import Guard
from pactgate.inbound.credentials import INVALID_TOKEN, Admission, AuthError, PendingCheck
from pactgate.inbound.exchange_tasks import CREDENTIALS
from pactgate.inbound.request_head import Headers
from tests.support.facing import message, modern, serving, until
from tests.support.raw_http import get, post

ANN = Principal("ann", kind=PrincipalKind.OAUTH)
TOKEN = {"authorization": "Bearer slow-ann"}
UNKNOWN = AuthError(401, "Nobody knows that token.", INVALID_TOKEN, is_guess=True)


class SlowSource:
    """Tokens that begin with `slow-` are its own. Somebody else has to be asked about each, which takes until `release`."""

    def __init__(self, *principals: Principal, lifetime_s: float = 3600.0) -> None:
        self.release = asyncio.Event()
        self.asked: list[str] = []
        self.known = {one.key: one for one in principals}
        self._lifetime_s = lifetime_s

    def find(self, token: str, digest: bytes, headers: Headers) -> PendingCheck | None:
        if not token.startswith("slow-"):
            return None

        async def wait() -> Admission | AuthError:
            self.asked.append(token)
            await self.release.wait()
            principal = self.known.get(token.removeprefix("slow-"))
            return UNKNOWN if principal is None else Admission(principal, time.time() + self._lifetime_s)

        return PendingCheck(wait)

    def holders(self) -> Iterable[Principal]:
        return ()

    def admits(self, principal: Principal) -> bool:
        return principal.key in self.known

    def expiries(self) -> Iterable[float]:
        return ()


def asking(*sources: SlowSource) -> Guard:
    return Guard(host="127.0.0.1", sources=sources)


async def test_a_token_is_asked_about_once_and_then_known() -> None:
    source = SlowSource(ANN)
    async with serving(guard=asking(source)) as served, served.client() as client, served.client() as other:
        await client.send(modern("tools/call", name="echo", **TOKEN))
        await until(lambda: bool(source.asked))
        assert (await other.ask(modern("tools/call", name="echo"))).status == 401
        source.release.set()
        assert (await client.answer()).status == 200
        assert (await other.ask(modern("tools/call", name="echo", **TOKEN))).status == 200
        assert [caller.principal for caller in served.kernel.callers] == [ANN, ANN]
        assert source.asked == ["slow-ann"]


async def test_a_refused_token_is_told_so_when_the_answer_is_there() -> None:
    source = SlowSource()
    source.release.set()
    async with serving(guard=asking(source)) as served:
        assert (await served.ask(modern("tools/call", name="echo", **TOKEN))).status == 401
        assert (await served.ask(modern("tools/call", name="echo", **TOKEN))).status == 401
        assert source.asked == ["slow-ann", "slow-ann"], "a refusal is not remembered by the guard"


async def test_a_large_body_is_served_when_its_token_has_been_checked() -> None:
    source = SlowSource(ANN)
    async with serving(guard=asking(source)) as served, served.client() as client:
        await client.send(modern("tools/call", name="echo", arguments={"a": "x" * 300_000}, **TOKEN))
        await until(lambda: bool(source.asked))
        source.release.set()
        assert (await client.answer()).status == 200


async def test_a_client_that_goes_away_is_not_waited_for() -> None:
    source = SlowSource(ANN)
    async with serving(guard=asking(source)) as served:
        async with served.client() as client:
            await client.send(modern("tools/call", name="echo", **TOKEN))
            await until(lambda: bool(source.asked))
        source.release.set()
        await until(lambda: not any(True for _ in served.frontend.exchanges()))
        assert served.kernel.callers == []


async def test_no_more_requests_than_a_bound_wait_for_their_check() -> None:
    source = SlowSource(ANN)
    async with serving(guard=asking(source)) as served, served.client() as last:
        clients = [served.client() for _ in range(CREDENTIALS.most)]
        for client in clients:
            await client.__aenter__()
            await client.send(modern("tools/call", name="echo", **TOKEN))
        await until(lambda: len(source.asked) == len(clients))
        answer = await last.ask(modern("tools/call", name="echo", **TOKEN))
        assert (answer.status, answer.header("retry-after")) == (503, "1")
        source.release.set()
        for client in clients:
            assert (await client.answer()).status == 200
            await client.close()


async def test_a_stream_goes_on_while_its_token_is_asked_about_again_and_ends_when_it_is_refused() -> None:
    source = SlowSource(ANN)
    source.release.set()
    async with serving(guard=asking(source)) as served, served.client() as stream:
        session = await served.session(**TOKEN)
        await stream.send(get("/mcp", **session))
        assert (await stream.head()).status == 200
        served.frontend.check_again()
        await until(lambda: len(source.asked) == 2)
        assert (await served.ask(post(message("ping"), **session))).status == 200
        source.release.clear()
        served.frontend.check_again()
        await until(lambda: len(source.asked) == 3)
        del source.known["ann"]
        source.release.set()
        assert await stream.chunk() == b""


async def test_what_a_token_opened_ends_with_it() -> None:
    source = SlowSource(ANN, lifetime_s=0.3)
    source.release.set()
    async with serving(guard=asking(source)) as served, served.client() as stream:
        session = await served.session(**TOKEN)
        await stream.send(get("/mcp", **session))
        assert (await stream.head()).status == 200
        source.known.clear()
        assert await stream.chunk() == b""
        assert (await served.ask(post(message("ping"), **session))).status == 401


async def test_a_principal_of_a_source_that_is_gone_loses_its_session() -> None:
    source = SlowSource(ANN)
    source.release.set()
    gone: list[str] = []
    async with serving(guard=asking(source)) as served:
        served.frontend.on_gone = gone.append
        session = await served.session(**TOKEN)
        served.frontend.replace_guard(asking(source))
        assert (await served.ask(post(message("ping"), **session))).status == 200
        served.frontend.replace_guard(asking())
        assert (len(served.frontend.sessions), gone) == (0, ["ann"])
