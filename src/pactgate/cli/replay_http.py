"""A capture served over HTTP in both protocol eras: one JSON response to each POST, a session id for `initialize`, no GET stream.

A legacy response has status 200, a modern error the status of its code. Listens on 127.0.0.1 only.
"""

from __future__ import annotations

import json
import secrets
import sys

from pactgate.capture.replay_server import ReplayServer
from pactgate.cli.errors import CommandError
from pactgate.cli.interruption import until_interrupted
from pactgate.core.failures import GatewayFailure, http_status
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.inbound.http_server import HttpServer
from pactgate.inbound.server_limits import ServerLimits
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY

_ALLOW = b"Allow: POST, DELETE\r\n"


async def serve(cassette: ReplayServer, port: int) -> int:
    server = HttpServer(lambda exchange: answer_exchange(cassette, exchange), ServerLimits(), lambda _event: None)
    try:
        host, bound = await server.listen("127.0.0.1", port)
    except GatewayFailure as problem:
        raise CommandError(problem.message) from None
    print(f"pactgate replay: http://{host}:{bound}/mcp", file=sys.stderr, flush=True)
    try:
        await until_interrupted()
    finally:
        await server.close(1.0)
    return 0


def answer_exchange(cassette: ReplayServer, exchange: HttpExchange) -> None:
    if exchange.method == "DELETE":
        exchange.respond(200)
        return
    if exchange.method != "POST":
        exchange.respond(405, JSON_HEAD + _ALLOW)
        return
    answer = cassette.answer_encoded(exchange.body)
    if answer is None:
        exchange.respond(202)
        return
    session = b"Mcp-Session-Id: %b\r\n" % secrets.token_hex(16).encode() if _opens_session(exchange.body) else b""
    exchange.respond(_status(exchange.body, answer), JSON_HEAD + session, answer)


def _opens_session(body: bytes) -> bool:
    request = json.loads(body)
    return isinstance(request, dict) and request.get("method") == "initialize"


def _status(body: bytes, answer: bytes) -> int:
    response = json.loads(answer)
    error = response.get("error") if isinstance(response, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return http_status(code) if isinstance(code, int) and PROTOCOL_VERSION_KEY.encode() in body else 200
