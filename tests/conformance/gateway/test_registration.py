"""A gateway that is configured through its API is told about each server, once it listens."""

from __future__ import annotations

import asyncio
from http.server import BaseHTTPRequestHandler, HTTPServer

from pactgate.conformance.gateway.gateway_process import free_port
from pactgate.conformance.gateway.registration import register


async def test_each_server_is_registered_as_soon_as_the_gateway_listens_also_after_a_refused_one() -> None:
    port, got = free_port(), list[tuple[str | None, bytes]]()

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.headers["Authorization"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(502 if len(got) == 1 else 201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    url = f"http://127.0.0.1:{port}/gateways"
    task = asyncio.create_task(register(url, [b"1", b"2"], {"Authorization": "Bearer t"}, 5))
    await asyncio.sleep(0)
    with HTTPServer(("127.0.0.1", port), Api) as server:
        server.timeout = 5
        for _ in range(2):
            await asyncio.to_thread(server.handle_request)
    await task
    assert got == [("Bearer t", b"1"), ("Bearer t", b"2")]
