"""An upstream that writes prepared JSON text, byte for byte: `python scripted.py ID ERA TOOLS stdio|http [PORT]`.

ERA is `legacy` or `modern`; the other one is refused the way such servers refuse it. No SDK and no JSON library stands
between the texts below and the wire. TOOLS is `plain` (only `greet`, which any client can read) or `strange` (all of
them). The tool `mirror` gives back the whole message it received, as text.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DEEP = 50
TWO_TO_64 = "18446744073709551616"

SCHEMA = (
    '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"name":{"$anchor":"name",'
    '"type":"string","x-unknown":null},"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}},'
    '"properties":{"who":{"$ref":"#name"},"tree":{"$ref":"#/$defs/node"},"count":{"type":"integer","maximum":'
    + TWO_TO_64
    + "},"
    '"ratio":{"type":"number","default":0.30000000000000004,"examples":[1.0,1E2,-0.0]}},"additionalProperties":true}'
)
STRANGE_DEFINITION = (
    '{"name":"strange","title":null,"description":"\\u00fcber \\ud83d\\ude00 \\u2028 \\/ done","inputSchema":'
    + SCHEMA
    + ","
    '"outputSchema":{"$defs":{"any":true},"type":"object"},"annotations":{"readOnlyHint":true,"x-vendor":{"deep":[null]}},'
    '"_meta":{"example.com/owner":{"id":'
    + TWO_TO_64
    + '},"nothing":null},"x-unknown-member":[1.10,"1.10",true,null,{}]}'
)
GREET_DEFINITION = '{"name":"greet","description":"Says hello.","inputSchema":{"type":"object","properties":{"who":{"type":"string"}}}}'
MIRROR_DEFINITION = '{"name":"mirror","inputSchema":{"type":"object"}}'
BIG_DEFINITION = '{"name":"big","inputSchema":{"type":"object"}}'
HUGE_NUMBER_DEFINITION = '{"name":"huge_number","inputSchema":{"type":"object"}}'
STRANGE = [STRANGE_DEFINITION, GREET_DEFINITION, MIRROR_DEFINITION, BIG_DEFINITION, HUGE_NUMBER_DEFINITION]

STRANGE_CONTENT = (
    '[{"type":"text","text":"caf\\u00e9 \\u0000 \\ud83d\\ude00","annotations":null,"x-new":{"a":[[]]}},'
    '{"type":"hologram","layers":[0.30000000000000004,1e-7,-0,1.0],"_meta":{"example.com/k":null}},'
    '{"type":"resource_link","uri":"file:///a%20b?c#d","name":"n","size":' + TWO_TO_64 + "}]"
)
STRANGE_MEMBERS = (
    '"content":'
    + STRANGE_CONTENT
    + ',"structuredContent":{"big":'
    + TWO_TO_64
    + ',"negative":-9223372036854775809,"float":'
    '0.30000000000000004,"one":1.0,"exponent":1E+2,"none":null,"empty":{},"list":[],"deep":'
    + "[" * DEEP
    + "]" * DEEP
    + ","
    '"":"empty key","a/b~c":{"$ref":"x"}},"isError":false,"x-unknown":{"kept":[null,' + TWO_TO_64 + ']},"nothing":null'
)
STRANGE_META = '"example.com/trace":{"n":' + TWO_TO_64 + '},"plain":null,"com.example.mcp-like/key":0.1'
BIG_TEXT = "".join(f"{n:07x} \u00e9\u4e16\U0001f600\\n\n" for n in range(16 * 1024))[: 256 * 1024]
BIG_MEMBERS = '"content":[{"type":"text","text":' + json.dumps(BIG_TEXT, ensure_ascii=False) + "}]"
HUGE_NUMBER_MEMBERS = '"content":[],"structuredContent":{"beyond":1e400,"tiny":1e-400,"digits":' + "7" * 400 + "}"

PV = "io.modelcontextprotocol/protocolVersion"
MODERN = "2026-07-28"


class Script:
    """What to answer, as text. Reads requests with a JSON library, writes without one."""

    def __init__(self, name: str, era: str, tools: str) -> None:
        self._name = name
        self._is_modern = era == "modern"
        self._definitions = ",".join(STRANGE if tools == "strange" else [GREET_DEFINITION])
        self._info = json.dumps({"name": name, "version": "1"})

    def answer(self, text: str) -> tuple[str, int] | None:
        """The answer and its HTTP status; None for a notification."""
        message = json.loads(text)
        if "id" not in message:
            return None
        version = message.get("params", {}).get("_meta", {}).get(PV)
        if self._is_modern and version != MODERN:
            return self._error(
                message, -32022, '{"supported":["2026-07-28"],"requested":' + json.dumps(version) + "}"
            ), 400
        members = self._legacy(message) if not self._is_modern else self._modern(message)
        members = members or self._either(message, text)
        if members is None:
            return self._error(message, -32601, "null"), 404 if self._is_modern else 200
        return '{"jsonrpc":"2.0","id":' + json.dumps(message["id"]) + ',"result":{' + members + "}}", 200

    def _legacy(self, message: dict[str, Any]) -> str | None:
        if message["method"] == "initialize":
            version = json.dumps(message["params"]["protocolVersion"])
            return f'"protocolVersion":{version},"capabilities":{{"tools":{{}}}},"serverInfo":{self._info}'
        return "" if message["method"] == "ping" else None

    def _modern(self, message: dict[str, Any]) -> str | None:
        if message["method"] == "server/discover":
            hints = '"ttlMs":1000,"cacheScope":"private"'
            return f'"supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}},{hints},{self._stamp()}'
        return None

    def _either(self, message: dict[str, Any], text: str) -> str | None:
        if message["method"] == "tools/list":
            hints = '"ttlMs":1000,"cacheScope":"public",' + self._stamp() if self._is_modern else '"_meta":{}'
            return '"tools":[' + self._definitions + "]," + hints
        if message["method"] != "tools/call":
            return None
        members = self._call(message["params"], text)
        return members if not self._is_modern or '"_meta"' in members else f"{members},{self._stamp()}"

    def _call(self, params: dict[str, Any], text: str) -> str:
        name = params["name"]
        if name == "strange":
            modern = (
                f',"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{self._info},{STRANGE_META}}}'
            )
            return STRANGE_MEMBERS + (modern if self._is_modern else f',"_meta":{{{STRANGE_META}}}')
        if name == "big":
            return BIG_MEMBERS
        if name == "huge_number":
            return HUGE_NUMBER_MEMBERS
        said = text if name == "mirror" else f"hello {params['arguments'].get('who')}, this is {self._name}"
        return '"content":[{"type":"text","text":' + json.dumps(said) + "}]"

    def _stamp(self) -> str:
        return f'"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{self._info}}}'

    def _error(self, message: dict[str, Any], code: int, data: str) -> str:
        return f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},"error":{{"code":{code},"message":"no","data":{data}}}}}'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answered = self.script.answer(body)
        if answered is None:
            self._reply(202, b"")
        else:
            text, status = answered
            self._reply(status, text.encode())

    def do_GET(self) -> None:
        self._reply(405, b"")

    do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    name, era, tools, transport, *port = sys.argv[1:]
    script = Script(name, era, tools)
    if transport == "http":
        handler = type("ScriptedHandler", (Handler,), {"script": script})
        ThreadingHTTPServer(("127.0.0.1", int(port[0])), handler).serve_forever()
    for line in sys.stdin.buffer:
        answered = script.answer(line.decode())
        if answered is not None:
            sys.stdout.buffer.write(answered[0].encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
