"""Several servers at one origin: a client that holds many calls of all of them does not hold up the calls of another."""

from __future__ import annotations

import asyncio

from pactgate.config.sections.auth import Auth, Token
from pactgate.config.server_settings import ServerConfig
from tests.pipeline.conftest import open_gateway, text_of
from tests.support.callers import caller
from tests.support.eventually import eventually
from tests.support.rest_api import plain
from tests.support.servers import UNLIMITED

HELD = 70
"""Of each server: less than the share of one client there, and with two servers more than 100 connections."""


async def test_calls_held_at_two_servers_of_one_origin_leave_connections_to_another_client() -> None:
    held = 0
    end = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal held
        while head := await reader.readuntil(b"\r\n\r\n"):
            if b"GET /slow" in head:
                held += 1
                await end.wait()
                break
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    upstream = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}"
    endpoints = (plain(name="slow", path="/slow"), plain(name="quick", path="/quick", response="text"))
    servers = [ServerConfig(id=id_, base_url=url, endpoints=endpoints) for id_ in ("a", "b")]
    tokens = {name: Token(token=f"token-of-{name}-0123456789") for name in ("ann", "bob")}
    async with open_gateway(*servers, auth=Auth(tokens=tokens), rate_limits=UNLIMITED) as inside:
        await inside.ask("tools/list")
        calls = [
            asyncio.create_task(inside.call(f"{id_}.slow", {}, who=caller(key="ann")))
            for id_ in ("a", "b")
            for _ in range(HELD)
        ]
        await eventually(lambda: held == 2 * HELD)
        assert text_of(await asyncio.wait_for(inside.call("a.quick", {}, who=caller(key="bob")), 2)) == "hi"
        end.set()
        await asyncio.gather(*calls)
    upstream.close()
