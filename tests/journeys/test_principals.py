"""What a server hands out belongs to the client that got it: tasks, cursors, cached results; over HTTP, before a lax server."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import build
from pactgate.config.model import Config, ListenSection
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.server_settings import ServerConfig
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN
from tests.support.facing import META, initialize, message
from tests.support.raw_http import RawClient, post

SERVER = Path(__file__).parent.parent / "support" / "task_server.py"
ALICE, BOB = "0123456789-alice-token", "0123456789-bob-token"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
AUTH = Auth(anonymous=True, tokens={"alice": Token(token=ALICE), "bob": Token(token=BOB)})


class Client:
    """One client of one era: a legacy one has a session of its own."""

    def __init__(self, port: int, token: str | None, path: str = "/mcp/plain") -> None:
        self._port = port
        self._path = path
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._session: dict[str, str] | None = None

    async def open(self) -> Client:
        async with RawClient(self._port) as client:
            answer = await client.post(initialize(), self._path, **self._headers)
        session = answer.header("mcp-session-id")
        assert session is not None, answer.body
        self._session = {"mcp_session_id": session, "mcp_protocol_version": LATEST_LEGACY}
        return self

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        headers = {**self._headers, **(self._session or {})}
        if self._session is None:
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": TASKS}
            headers |= {"mcp_protocol_version": LATEST_MODERN, "mcp_method": method}
            name = params.get("taskId") or params.get("name") or params.get("uri")
            headers |= {} if name is None else {"mcp_name": name}
            params["_meta"] = meta
        async with RawClient(self._port) as client:
            answer = await client.ask(post(message(method, params), self._path, **headers))
        told: dict[str, Any] = answer.json
        return told

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return dict((await self.ask("tools/call", name=name, arguments=arguments or {}, **more))["result"])

    async def text(self, name: str, arguments: dict[str, Any] | None = None) -> str:
        return str((await self.call(name, arguments))["content"][0]["text"])


@asynccontextmanager
async def served(era: str = "legacy", server: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[int]:
    plain = ServerConfig(id="plain", command=sys.executable, args=(str(SERVER), era), **(server or {}))
    config = Config(servers={"plain": plain}, listen=ListenSection(port=0), auth=AUTH, **settings)
    gateway = build(config, lambda event: None)
    address = await gateway.serve_http()
    await gateway.start()
    await gateway.discover(force_refresh=True)
    try:
        yield int(address.rpartition(":")[2])
    finally:
        await gateway.stop(grace_s=0)


async def client(port: int, token: str | None, era: str = "legacy") -> Client:
    return await Client(port, token).open() if era == "legacy" else Client(port, token)


async def begin(who: Client, secret: str) -> str:
    result = await who.call("echo", {"secret": secret}, **({} if who._session is None else {"task": {"ttl": 60000}}))
    return str((result if who._session is None else result["task"])["taskId"])


def without_id(reply: dict[str, Any], task: str) -> str:
    told = reply["error"]
    told["data"].pop("requestId")
    return str(told).replace(repr(task), "?")


@pytest.mark.parametrize(
    ("era", "methods"),
    [
        ("legacy", ("tasks/get", "tasks/result", "tasks/cancel")),
        ("modern", ("tasks/get", "tasks/update", "tasks/cancel")),
    ],
)
@pytest.mark.parametrize("other", [BOB, None])
async def test_a_task_of_one_client_does_not_exist_for_another(
    era: str, methods: tuple[str, ...], other: str | None
) -> None:
    async with served(era) as port:
        alice, bob = await client(port, ALICE, era), await client(port, other, era)
        task = await begin(alice, "ALICE-SECRET")
        for method in methods:
            foreign = await bob.ask(method, taskId=task)
            unknown = await bob.ask(method, taskId="task-99")
            assert without_id(foreign, task) == without_id(unknown, "task-99")
            assert foreign["error"]["code"] == -32602
            assert "upstream" not in str(foreign)
        own = await alice.ask(methods[0], taskId=task)
        assert own["result"]["status"] == "completed"  # nobody has cancelled it
        assert "result" in await alice.ask(methods[1], taskId=task)


async def test_two_sessions_of_one_token_keep_their_tasks_apart() -> None:
    async with served() as port:
        one, two = await client(port, ALICE), await client(port, ALICE)
        task = await begin(one, "mine")
        assert "error" in await two.ask("tasks/result", taskId=task)
        assert "result" in await one.ask("tasks/result", taskId=task)


async def test_a_list_of_tasks_has_the_clients_own_and_its_cursor_is_for_nobody_else() -> None:
    async with served() as port:
        alice, bob = await client(port, ALICE), await client(port, BOB)
        own = [await begin(who, "s") for who in (alice, bob, alice, bob, alice)][::2]
        first = (await alice.ask("tasks/list"))["result"]
        cursor = first["nextCursor"]
        stolen = await bob.ask("tasks/list", cursor=cursor)
        invented = await bob.ask("tasks/list", cursor="2")
        assert without_id(stolen, "") == without_id(invented, "")
        seen = [task["taskId"] for task in first["tasks"]]
        while cursor is not None:
            page = (await alice.ask("tasks/list", cursor=cursor))["result"]
            seen += [task["taskId"] for task in page["tasks"]]
            cursor = page.get("nextCursor")
        assert seen == own


async def test_no_method_of_the_tasks_is_spelt_around_the_owner() -> None:
    async with served() as port:
        alice, bob = await client(port, ALICE), await client(port, BOB)
        task = await begin(alice, "ALICE-SECRET")
        for method in ("tasks/Result", "tasks/result ", "tasks/\uff52esult", "\u200btasks/result", "tasks/delete"):
            assert (await bob.ask(method, taskId=task))["error"]["code"] == -32601, method


RULE = Cache(tools={"plain.whoami": CacheRule(ttl_ms=60_000)})


@pytest.mark.parametrize("token", [ALICE, None])
async def test_sessions_logged_in_as_others_are_never_given_each_others_cached_results(token: str | None) -> None:
    async with served(server={"isolation": "session"}, cache=RULE) as port:
        one, two = await client(port, token), await client(port, token)
        for who, tenant in ((one, "tenant-ONE"), (two, "tenant-TWO")):
            await who.text("login", {"tenant": tenant})
        for who, tenant in ((one, "tenant-ONE"), (two, "tenant-TWO"), (one, "tenant-ONE")):
            assert await who.text("whoami") == tenant
        again = await one.call("whoami")
        assert again["_meta"]["dev.pactgate/envelope"]["cached"] is True


@pytest.mark.parametrize("token", [ALICE, None])
async def test_sessions_logged_in_as_others_read_their_own_resources(token: str | None) -> None:
    async with served(server={"isolation": "session"}) as port:
        one, two = await client(port, token), await client(port, token)
        for who, tenant in ((one, "tenant-ONE"), (two, "tenant-TWO"), (one, "tenant-ONE")):
            await who.text("login", {"tenant": tenant})
            read = await who.ask("resources/read", uri="data://a")
            assert read["result"]["contents"][0]["text"] == tenant


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/plain"])
async def test_a_server_can_not_speak_in_the_gateways_name(era: str, path: str) -> None:
    async with served(era) as port:
        who = Client(port, ALICE, path)
        prefix = "plain__" if path == "/mcp" else ""
        replies = [
            await who.ask("tools/call", name=f"{prefix}whoami", arguments={}),
            await who.ask("tools/call", name=f"{prefix}fail", arguments={}),
            await who.ask("tools/list"),
            await who.ask("prompts/list"),
            await who.ask("resources/list"),
            await who.ask("prompts/get", name=f"{prefix}poem"),
            await who.ask("resources/read", uri=("pactgate://plain/" if path == "/mcp" else "") + "data://a"),
        ]
    for reply in replies:
        assert "com.example/own" in str(reply) or "uri" in str(reply), reply
        assert "dev.pactgate/page" not in str(reply)
        assert "dev.pactgate/operations" not in str(reply)
