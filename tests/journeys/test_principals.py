"""What a server hands out belongs to the client that got it: tasks, cursors, cached results; over HTTP, before a lax server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pactgate.config.sections.cache import Cache, CacheRule
from tests.support.clients import ALICE, BOB, Client, client, served


async def begin(who: Client, secret: str) -> str:
    result = await who.call("echo", {"secret": secret}, **({} if who.session is None else {"task": {"ttl": 60000}}))
    return str((result if who.session is None else result["task"])["taskId"])


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
        both = await asyncio.gather(*(who.text("whoami", {"wait": 0.2}) for who in (one, two)))
        assert both == ["tenant-ONE", "tenant-TWO"]  # nor the answer of a call under way
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
