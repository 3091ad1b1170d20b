"""A very fast MCP server over Streamable HTTP in both eras: `python -m bench.upstream_http --port P --ports N`.

One process listens on N consecutive ports, with the same tools on each and no sessions. It answers with JSON documents, or with
`--answers sse` with one event stream each, as servers built on the SDKs do. `GET /echo/{text}` is the echo as a REST
endpoint. It prints `ready` when it listens on all ports.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Final, cast

import httptools
import uvloop

from bench.answers import DelayedAnswer, Upstream

_ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
_POST_ONLY: Final = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n"
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_STREAM: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\nevent: message\r\ndata: %b\r\n\r\n\r\n0\r\n\r\n"
)
_EVENT_FRAME_BYTES: Final = len(b"event: message\r\ndata: \r\n\r\n")
_REST: Final = b"/echo/"
_WRITE_WHOLE_BYTES: Final = 64 * 1024


class UpstreamConnection(asyncio.Protocol):
    """One connection. It answers requests in the order in which they arrive, except that `slow` waits."""

    def __init__(self, upstream: Upstream, *, streams: bool = False) -> None:
        self._upstream = upstream
        self._streams = streams

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._url = b""

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._body = b""
        self._url = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, data: bytes) -> None:
        self._body = self._body + data if self._body else data

    def on_message_complete(self) -> None:
        if self._url.startswith(_REST):
            self._reply(b'{"text":"%b"}' % self._url.removeprefix(_REST))
            return
        if self._parser.get_method() != b"POST":
            self._transport.write(_POST_ONLY)
            return
        answer = self._upstream.answer(self._body)
        if answer is None:
            self._transport.write(_ACCEPTED)
        elif isinstance(answer, DelayedAnswer):
            asyncio.get_running_loop().call_later(answer.delay_s, self._reply, answer.answer)
        else:
            self._reply(answer)

    def _reply(self, answer: bytes) -> None:
        if self._streams:
            self._transport.write(_STREAM % (len(answer) + _EVENT_FRAME_BYTES, answer))
        elif len(answer) < _WRITE_WHOLE_BYTES:
            self._transport.write(_HEAD % len(answer) + answer)
        else:
            self._transport.writelines((_HEAD % len(answer), answer))


async def serve(first_port: int, ports: int, upstream: Upstream, *, streams: bool) -> None:
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(
            lambda: UpstreamConnection(upstream, streams=streams), "127.0.0.1", first_port + n, backlog=512
        )
        for n in range(ports)
    ]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ports", type=int, default=1)
    parser.add_argument("--tools", type=int, default=23)
    parser.add_argument("--answers", choices=["json", "sse"], default="json")
    parser.add_argument("--order", choices=["python", "typescript", "both"], default="python")
    options = parser.parse_args()
    upstream = Upstream(options.tools, options.order)
    uvloop.run(serve(options.port, options.ports, upstream, streams=options.answers == "sse"))


if __name__ == "__main__":
    main()
