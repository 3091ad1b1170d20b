"""A served console over a fake kernel: its sessions, its streams, and what they listen to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pactgate.config.sections.auth import Auth
from pactgate.core.context import ExecutionRecord
from pactgate.core.events import Emit, Event
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.inbound.auth import Guard
from pactgate.inbound.call_stream import CallStreams
from pactgate.inbound.console import Console
from pactgate.inbound.console_captures import ConsoleCaptures
from pactgate.inbound.console_sessions import ConsoleSessions
from pactgate.inbound.console_sign_in import ConsoleSignIn
from pactgate.inbound.oauth.id_tokens import CheckedPerson
from tests.support.facing import SNAPSHOT, Served, credentials, serving
from tests.support.raw_http import Answer, get, request

ADMIN = "a" * 24
USER = "u" * 24
TOKENS = {ADMIN: ("ops", frozenset({"admin"})), USER: ("app", frozenset[str]())}
HOST = "localhost:7411"
FROM_PAGE = {"sec_fetch_site": "same-origin"}


class Wall:
    """The wall clock, some time on."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


class Rows:
    """Makes rows of records as the call history does."""

    def rows(self, records: Sequence[ExecutionRecord]) -> list[dict[str, Any]]:
        return [
            {"requestId": one.request_id, "subject": one.subject, "tool": one.tool, "outcome": one.outcome}
            for one in records
        ]


class Nobody:
    """An identity provider that nobody can sign in at."""

    def knows(self, issuer: str) -> bool:
        return bool(issuer)

    async def begin(
        self, issuer: str, link: str, redirect_uri: str, browser: str, *, resource: str = "", scopes: Iterable[str] = ()
    ) -> str:
        return redirect_uri

    async def finish(self, answer: Mapping[str, str], browser: str) -> CheckedPerson | None:
        return None


class ServedConsole:
    def __init__(self, captures: str | None = None, hosts: Iterable[str] = ()) -> None:
        self.hosts = tuple(hosts)
        self.wall = Wall()
        self.public: str | None = None
        self.listeners: list[Emit] = []
        self.sessions = ConsoleSessions(self.wall, is_tls=False, public=lambda: self.public)
        self.events: list[Event] = []
        self.servers: list[dict[str, Any]] = SNAPSHOT["servers"]
        self.streams = CallStreams(
            Rows(), lambda principal: self.servers, listen=self.listeners.append, unlisten=self.listeners.clear
        )
        self.calls: list[dict[str, Any]] = []
        self.captures = ConsoleCaptures(captures, lambda count, keeps: [row for row in self.calls if keeps(row)])
        self.signed_in: list[str] = []
        people = ConsoleSignIn(Nobody(), self.sessions, self.events.append, auth=Auth, base=lambda: f"http://{HOST}")
        self.console = Console(
            self.sessions,
            self.streams,
            self.captures,
            people,
            self.events.append,
            sign_in=self.sign_in_at,
            client_entries=lambda address: [{"id": "x", "entry": address}],
            needs_token=lambda: True,
        )
        self.served: Served

    def guard(self, tokens: Mapping[str, tuple[str, frozenset[str]]] = TOKENS, *, anonymous: bool = False) -> Guard:
        return Guard(
            host="127.0.0.1",
            hosts=self.hosts,
            origins=[f"https://{host}" for host in self.hosts],
            credentials=credentials(tokens),
            anonymous=anonymous,
            console=self.sessions,
            wall=self.wall,
        )

    def emit(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    async def sign_in_at(self, server: str) -> str:
        if server != "files":
            raise GatewayFailure(Kind.UNKNOWN_SERVER, f"There is no server {server}.")
        self.signed_in.append(server)
        return "https://issuer.example/authorize"

    async def sign_in(self, secret: str, scheme: str = "Bearer", **headers: str) -> Answer:
        given = {
            "authorization": f"{scheme} {secret}",
            "x-pactgate-console": "none",
            "content-type": "application/json",
        }
        spelled = {name.replace("_", "-"): value for name, value in {**FROM_PAGE, **headers}.items()}
        return await self.served.ask(
            request("POST", "/console/session", {"host": HOST, "content-length": "0", **given, **spelled})
        )

    async def session(self, secret: str = ADMIN) -> dict[str, str]:
        """Sign in; returns the headers of the page's later requests."""
        answer = await self.sign_in(secret)
        assert answer.status == 200, answer.body
        cookie = (answer.header("set-cookie") or "").partition(";")[0]
        return {"host": HOST, "cookie": cookie, "x_pactgate_console": answer.json["key"], **FROM_PAGE}

    async def send(self, method: str, path: str, session: Mapping[str, str], body: bytes = b"{}") -> Answer:
        headers = {name.replace("_", "-"): value for name, value in session.items()}
        sent = {**headers, "content-type": "application/json", "content-length": str(len(body))}
        return await self.served.ask(request(method, path, sent) + body)

    async def read(self, path: str, session: Mapping[str, str]) -> Answer:
        return await self.served.ask(get(path, **session))


@asynccontextmanager
async def serving_console(
    *, anonymous: bool = False, captures: str | None = None, hosts: Iterable[str] = ()
) -> AsyncIterator[ServedConsole]:
    console = ServedConsole(captures, hosts)
    async with serving(guard=console.guard(anonymous=anonymous), console=console.console) as served:
        console.served = served
        yield console
