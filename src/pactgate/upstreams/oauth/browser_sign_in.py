"""A sign-in by a person: what the server wants, a URL to open, and the answer at an address of this machine or pasted.

The answer comes to a port of the loopback interface; what does not carry the state of this sign-in is answered and ignored. Everything is
bounded, and nothing listens afterwards. Must not: show a token or the code.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.authorization import read_answer
from pactgate.upstreams.oauth.grants import fetcher_of, settings_of
from pactgate.upstreams.oauth.probe import wanted_of
from pactgate.upstreams.oauth.sign_in import SignInGrant
from pactgate.upstreams.oauth.steps import sign_in_failure
from pactgate.upstreams.oauth.stored_grants import StoredGrants
from pactgate.upstreams.oauth.tokens import UnknownClientError

ANSWER_S: Final = 600.0
_HEAD_BYTES: Final = 16_384
_HEAD_S: Final = 5.0
_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_DONE: Final = "The answer has arrived. You can close this page; where you began, it is said how it went."
_OTHER: Final = "This is not the answer that is waited for."
Answer = Mapping[str, str]


async def sign_in_by_browser(
    config: ServerConfig,
    store: CredentialStore,
    show: Callable[[str], None],
    *,
    port: int = 0,
    takes_paste: bool = False,
    document: str = "",
) -> SignInGrant:
    """Sign in and keep the grant. `show` is given the URL that a person has to open; `document` is the client id metadata document that
    the gateway publishes. Raises GatewayFailure."""
    assert config.url is not None
    grants, client = StoredGrants(store, config.id, config.url), HttpClient()
    try:
        before, held = await asyncio.to_thread(lambda: (grants.challenge(), grants.read()))
        challenge = await wanted_of(config, client, before)
        async with _listening(port or await asyncio.to_thread(_last_port, grants)) as answers:
            fetcher = fetcher_of(config, client)
            steps = sign_in.begin(
                settings_of(config, document),
                challenge,
                grants.client,
                before=() if held is None else held.grant.requested,
                redirect_uri=f"http://{_HOST}:{answers.port}{_PATH}",
                state=secrets.token_urlsafe(32),
                verifier=secrets.token_urlsafe(48),
            )
            begun = await fetcher.run(steps)
            if begun.client.redirect_uri:
                await asyncio.to_thread(grants.keep_client, begun.client)
            show(begun.request.url)
            code = read_answer(
                begun.request, await answers.wait(begun.request.state, config.id, takes_paste=takes_paste)
            )
            try:
                grant = await fetcher.run(sign_in.finish(begun, code, time.time()))
            except UnknownClientError:
                await asyncio.to_thread(grants.forget_client, begun.client)
                raise
        async with grants.locked():
            await asyncio.to_thread(grants.write, grant)
        return grant
    finally:
        await client.close()


class BrowserSignIns:
    """Sign-ins that are begun in a page: at most one for each server, the last one. `tell` is told why one failed in the end."""

    def __init__(self, store: CredentialStore, tell: Callable[[str, str], None]) -> None:
        self._store = store
        self._tell = tell
        self._running: dict[str, asyncio.Task[SignInGrant]] = {}

    async def begin(self, config: ServerConfig) -> str:
        """The URL that a person has to open, on this machine. Raises GatewayFailure."""
        if config.url is None or (config.auth is not None and config.auth.has_no_shared_grant):
            raise sign_in_failure(config.id, "no person signs in there.")
        while (before := self._running.pop(config.id, None)) is not None:
            before.cancel()
            await asyncio.wait({before})  # its port is that of the client that is registered
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(
            sign_in_by_browser(config, self._store, url.set_result), name=f"sign-in at {config.id}"
        )
        self._running[config.id] = task
        task.add_done_callback(partial(self._ended, config.id))
        both: set[asyncio.Future[Any]] = {url, task}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return url.result() if url.done() else await _without_url(task)

    async def close(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _ended(self, server: str, task: asyncio.Task[SignInGrant]) -> None:
        if self._running.get(server) is task:
            del self._running[server]
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._tell(server, fault.message if isinstance(fault, GatewayFailure) else repr(fault))


async def _without_url(task: asyncio.Task[SignInGrant]) -> str:
    """A sign-in that ended before there was anything to open. Raises GatewayFailure."""
    await task
    return ""


def _last_port(grants: StoredGrants) -> int:
    """The port of the client that was registered last: its redirect URI holds only there."""
    return next((port for one in grants.clients() if (port := urlsplit(one.redirect_uri).port)), 0)


class _Answers:
    """Takes the answer of the browser, from the socket or from standard input."""

    def __init__(self) -> None:
        self.port = 0
        self._found: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._state = ""

    async def wait(self, state: str, server: str, *, takes_paste: bool) -> Answer:
        self._state = state
        loop = asyncio.get_running_loop()
        if takes_paste:
            with suppress(OSError, ValueError):  # standard input that can't be waited for has nothing to paste
                loop.add_reader(sys.stdin.fileno(), self._read_pasted)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._found
        except TimeoutError:
            raise sign_in_failure(server, f"nobody answered within {ANSWER_S / 60:g} minutes.") from None
        finally:
            if takes_paste:
                with suppress(OSError, ValueError):
                    loop.remove_reader(sys.stdin.fileno())

    def _read_pasted(self) -> None:
        line = sys.stdin.readline()
        if not line:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        elif line.strip() and not self._take(line.strip()):
            print(_OTHER, file=sys.stderr)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of the browser."""
        try:
            async with asyncio.timeout(_HEAD_S):
                words = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
            is_answer = len(words) == 3 and words[0] == b"GET" and self._take(words[1].decode("ascii", "replace"))
            text = _DONE if is_answer else _OTHER
            status = "200 OK" if is_answer else "400 Bad Request"
            head = (
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n"
            )
            writer.write(f"{head}Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n{text}".encode())
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a browser that asks nothing gets no answer
        finally:
            writer.close()

    def _take(self, text: str) -> bool:
        try:
            parts = urlsplit(text)
        except ValueError:
            return False
        answer = dict(parse_qsl(parts.query, keep_blank_values=True))
        fits = parts.path == _PATH and bool(self._state) and answer.get("state") == self._state
        if fits and not self._found.done():
            self._found.set_result(answer)
        return fits


@asynccontextmanager
async def _listening(port: int) -> AsyncIterator[_Answers]:
    answers = _Answers()
    try:
        server = await asyncio.start_server(answers.serve, _HOST, port, limit=_HEAD_BYTES)
    except OSError:
        server = await asyncio.start_server(answers.serve, _HOST, 0, limit=_HEAD_BYTES)
    answers.port = server.sockets[0].getsockname()[1]
    try:
        yield answers
    finally:
        server.close()
