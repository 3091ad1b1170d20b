"""Bytes that are no HTTP request we take, by name: each with the status it must be answered with before the connection ends."""

from __future__ import annotations

import random

HOST = b"Host: 127.0.0.1\r\n"
TYPE = b"Content-Type: application/json\r\n"
SECOND = b"GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def with_body(*lines: bytes, body: bytes = b"", first: bytes = b"POST /mcp HTTP/1.1") -> bytes:
    return first + b"\r\n" + HOST + TYPE + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def with_chunks(chunks: bytes) -> bytes:
    return with_body(b"Transfer-Encoding: chunked", body=chunks)


NOT_REQUESTS: dict[str, tuple[bytes, int]] = {
    "length and chunks": (
        with_body(b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SECOND),
        400,
    ),
    "chunks and length": (
        with_body(b"Transfer-Encoding: chunked", b"Content-Length: 4", body=b"0\r\n\r\n" + SECOND),
        400,
    ),
    "two equal lengths": (with_body(b"Content-Length: 2", b"Content-Length: 2", body=b"{}" + SECOND), 400),
    "two lengths": (with_body(b"Content-Length: 0", b"Content-Length: 2", body=b"{}" + SECOND), 400),
    "list of lengths": (with_body(b"Content-Length: 2, 2", body=b"{}" + SECOND), 400),
    "length with plus": (with_body(b"Content-Length: +2", body=b"{}" + SECOND), 400),
    "negative length": (with_body(b"Content-Length: -2", body=b"{}" + SECOND), 400),
    "hex length": (with_body(b"Content-Length: 0x2", body=b"{}" + SECOND), 400),
    "length with underscore": (with_body(b"Content-Length: 1_0", body=b"{}" + SECOND), 400),
    "arabic length": (with_body("Content-Length: \u0662".encode(), body=b"{}" + SECOND), 400),
    "blank before colon": (with_body(b"Content-Length : 2", body=b"{}" + SECOND), 400),
    "coding blank before colon": (with_body(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n" + SECOND), 400),
    "coding x": (with_body(b"Transfer-Encoding: x", body=b"0\r\n\r\n" + SECOND), 400),
    "coding twice": (with_body(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=b"0\r\n\r\n"), 400),
    "coding vertical tab": (with_body(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n" + SECOND), 400),
    "coding on 1.0": (with_body(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n", first=b"POST /mcp HTTP/1.0"), 400),
    "negative chunk": (with_chunks(b"-2\r\n{}\r\n0\r\n\r\n"), 400),
    "hex chunk prefix": (with_chunks(b"0x2\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk of 20 digits": (with_chunks(b"00000000000000000002\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk junk": (with_chunks(b"zz\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk too short": (with_chunks(b"1\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk bare line feed": (with_chunks(b"2\n{}\n0\n\n"), 400),
    "chunk long extension": (with_chunks(b"2;" + b"x" * 5000 + b"\r\n{}\r\n0\r\n\r\n"), 400),
    "chunk with blank": (with_chunks(b"2 \r\n{}\r\n0\r\n\r\n"), 400),
    "trailers": (with_chunks(b"2\r\n{}\r\n0\r\nX: y\r\n\r\n"), 400),
    "folded header": (with_body(b"X: a\r\n b"), 400),
    "bare line feed": (b"GET /mcp HTTP/1.1\nHost: 127.0.0.1\n\n", 400),
    "bare line feed in a header": (with_body(b"X: a\nY: b"), 400),
    "bare carriage return": (with_body(b"X: a\rb"), 400),
    "NUL": (with_body(b"X: a\x00b"), 400),
    "blank in a name": (with_body(b"X Y: a"), 400),
    "no colon": (with_body(b"abc"), 400),
    "2000 headers": (with_body(*(b"X-%d: a" % number for number in range(2000))), 431),
    "header of 1 MB": (with_body(b"X: " + b"a" * 1_000_000), 431),
    "endless headers": (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 20_000, 431),
    "target of 1 MB": (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "HTTP 0.9": (b"GET /mcp\r\n", 400),
    "HTTP 9.9": (b"GET /mcp HTTP/9.9\r\n" + HOST + b"\r\n", 505),
    "foreign absolute target": (b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), 400),
    "HTTP 2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 400),
    "odd expectation": (with_body(b"Expect: a-miracle", b"Content-Length: 2", body=b"{}"), 417),
    "noise": (random.Random(7).randbytes(64 * 1024), 400),
    "unknown method": (b"FOO /mcp HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "TRACE": (b"TRACE /mcp HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "CONNECT": (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "10 GB announced": (with_body(b"Content-Length: 10737418240"), 413),
    "body over the limit": (with_body(b"Content-Length: 10485761", body=b"x" * 1_000_000), 413),
    "gzip": (with_body(b"Content-Encoding: gzip", b"Content-Length: 2", body=b"\x1f\x8b"), 415),
    "gzip in gzip": (with_body(b"Content-Encoding: gzip, gzip", b"Content-Length: 2", body=b"\x1f\x8b"), 415),
    "unknown encoding": (with_body(b"Content-Encoding: x", b"Content-Length: 2", body=b"{}"), 415),
}
