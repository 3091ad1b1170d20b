"""Bad input by name: texts, keys, JSON-RPC and mirrored headers that must end in one code, or be taken or refused cleanly.

A case is what one caller sends: a body, and the headers a modern HTTP request would have beside it. `expected` is the
verdict on the body alone (a stdio connection that is modern), `over_http` the verdict on both together: an error code,
`ACCEPTED` (the protocol lets it pass and the method answers, given a tool named `TOOL`), or `EITHER`.
Every verdict must come within a second.
"""

from __future__ import annotations

import base64
import gzip
from typing import Literal, NamedTuple

PARSE, REQUEST, METHOD, PARAMS, HEADER, VERSION = -32700, -32600, -32601, -32602, -32020, -32022
ACCEPTED: Literal["accepted"] = "accepted"
EITHER: Literal["either"] = "either"

Expected = int | Literal["accepted", "either"]
Headers = tuple[tuple[str, str], ...]

TOOL = "echo"
REVISION = "2026-07-28"
META = (
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{},'
    b'"io.modelcontextprotocol/clientInfo":{"name":"corpus","version":"1"}}'
)


def mirrored(method: str, name: str | None = None) -> Headers:
    headers: Headers = (("MCP-Protocol-Version", REVISION), ("Mcp-Method", method))
    return headers if name is None else (*headers, ("Mcp-Name", name))


LISTING = mirrored("tools/list")
CALLING = mirrored("tools/call", TOOL)


class Case(NamedTuple):
    name: str
    body: bytes
    expected: Expected
    headers: Headers = LISTING
    expected_over_http: Expected | None = None

    @property
    def over_http(self) -> Expected:
        return self.expected if self.expected_over_http is None else self.expected_over_http


def listing(extra: bytes = b"null", *, id_: bytes = b"1", method: bytes = b'"tools/list"') -> bytes:
    """A good request with one foreign parameter, into which odd values can be put."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":{"_meta":%b,"x":%b}}' % (id_, method, META, extra)


def calling(members: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":%b,%b}}' % (META, members)


GOOD_CALL = calling(b'"name":"echo","arguments":{}')


def _nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


JSON_TEXT = [
    Case("empty", b"", PARSE),
    Case("blanks", b" \t\r\n ", PARSE),
    Case("truncated", listing()[:-1], PARSE),
    Case("truncated-batch", b'[{"jsonrpc":"2.0"', PARSE),
    Case("truncated-after-an-unknown-member", b'{"Method":1,"id":', PARSE),
    Case("trailing-comma-in-object", b'{"jsonrpc":"2.0","id":1,"method":"ping",}', PARSE),
    Case("trailing-comma-in-array", listing(b"[1,]"), PARSE),
    Case("trailing-bytes", listing() + b"x", PARSE),
    Case("two-objects", listing() * 2, PARSE),
    Case("two-lines", listing() + b"\n" + listing(), PARSE),
    Case("single-quotes", listing().replace(b'"', b"'"), PARSE),
    Case("comment", listing(b"/* */ 1"), PARSE),
    Case("nan", listing(b"NaN"), PARSE),
    Case("infinity", listing(b"Infinity"), PARSE),
    Case("minus-infinity", listing(b"-Infinity"), PARSE),
    Case("nan-behind-a-huge-number", listing(b"[1e400,NaN]"), PARSE),
    Case("float-out-of-range", listing(b"1e400"), EITHER),
    Case("integer-of-5000-digits", listing(b"9" * 5_000), EITHER),
    Case("integer-of-a-million-digits", listing(b"9" * 1_000_000), EITHER),
    Case("leading-zero", listing(b"01"), PARSE),
    Case("plus-sign", listing(b"+1"), PARSE),
    Case("bare-fraction", listing(b".5"), PARSE),
    Case("bare-exponent", listing(b"1e"), PARSE),
    Case("nested-arrays-100000", listing(_nested(100_000)), PARSE),
    Case("nested-objects-100000", listing(_nested(100_000, b'{"a":', b"}")), PARSE),
    Case("nested-900", listing(_nested(900)), EITHER),
    Case("open-brackets-1000000", b"[" * 1_000_000, PARSE),
    Case("keys-100000", listing(b"{%b}" % b",".join(b'"k%d":%d' % (n, n) for n in range(100_000))), EITHER),
    Case("elements-300000", listing(b"[%b]" % b",".join([b"1"] * 300_000)), EITHER),
    Case("empty-arrays-1000000", listing(b"[%b]" % b",".join([b"[]"] * 1_000_000)), EITHER),
    Case("unterminated-string-of-escapes", listing(b"[" + b"[]," * 100 + b'"' + b'\\"' * 500_000), PARSE),
    Case("byte-ff", listing(b'"\xff"'), PARSE),
    Case("overlong-slash", listing(b'"\xc0\xaf"'), PARSE),
    Case("surrogate-in-utf8", listing(b'"\xed\xa0\x80"'), PARSE),
    Case("cut-sequence", listing(b'"\xe2\x82"'), PARSE),
    Case("lone-surrogate-in-value", listing(b'"\\ud800"'), PARSE),
    Case("lone-surrogate-in-method", listing(method=b'"tools/\\udfff"'), PARSE),
    Case("lone-surrogate-in-id", listing(id_=b'"\\ud800"'), PARSE),
    Case("lone-surrogate-in-key", listing(b'{"\\ud800":1}'), PARSE),
    Case("reversed-surrogate-pair", listing(b'"\\udc00\\ud800"'), PARSE),
    Case("utf-16", listing().decode().encode("utf-16"), PARSE),
    Case("utf-16-without-mark", listing().decode().encode("utf-16-le"), PARSE),
    Case("utf-32", listing().decode().encode("utf-32"), PARSE),
    Case("byte-order-mark", b"\xef\xbb\xbf" + listing(), EITHER),
    Case("raw-nul-in-string", listing(b'"a\x00b"'), PARSE),
    Case("raw-nul-after", listing() + b"\x00", PARSE),
    Case("raw-newline-in-string", listing(b'"a\nb"'), PARSE),
    Case("escaped-nul", listing(b'"\\u0000"'), EITHER),
    Case("hex-escape", listing(b'"\\x41"'), PARSE),
    Case("short-unicode-escape", listing(b'"\\u12"'), PARSE),
    Case("gzip", gzip.compress(listing(), mtime=0), PARSE),
    Case("gzip-in-gzip", gzip.compress(gzip.compress(listing(), mtime=0), mtime=0), PARSE),
]

KEYS = [
    Case("method-twice", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}', REQUEST),
    Case("id-twice", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', REQUEST),
    Case("name-twice", calling(b'"name":"echo","name":"rm"'), REQUEST, CALLING),
    Case("name-twice-once-escaped", calling(b'"name":"echo","n\\u0061me":"rm"'), REQUEST, CALLING),
    Case("arguments-twice", calling(b'"name":"echo","arguments":{},"arguments":{"a":1}'), REQUEST, CALLING),
    Case("argument-twice", calling(b'"name":"echo","arguments":{"a":1,"a":2}'), REQUEST, CALLING),
    Case("argument-twice-in-an-array", calling(b'"name":"echo","arguments":{"l":[{"a":1,"a":2}]}'), REQUEST, CALLING),
    Case(
        "argument-twice-behind-an-escaped-colon",
        calling(b'"name":"echo","arguments":{"a":1,"a":2,"b":"\\u003a"}'),
        REQUEST,
        CALLING,
    ),
    Case(
        "argument-twice-behind-a-huge-number",
        calling(b'"name":"echo","arguments":{"n":1e400,"a":1,"a":2}'),
        REQUEST,
        CALLING,
    ),
    Case("capital-method", b'{"jsonrpc":"2.0","id":1,"Method":"tools/list"}', REQUEST),
    Case("capital-name", calling(b'"Name":"echo"'), PARAMS, CALLING),
    Case("capital-name-beside-name", calling(b'"name":"echo","Name":"rm"'), PARAMS, CALLING),
    Case("full-width-name-beside-name", calling('"name":"echo","\uff4eame":"rm"'.encode()), PARAMS, CALLING),
    Case("long-s-in-params", '{"jsonrpc":"2.0","id":1,"method":"tools/list","param\u017f":{}}'.encode(), REQUEST),
    Case("long-s-in-arguments", calling('"name":"echo","argument\u017f":{}'.encode()), PARAMS, CALLING),
]


def _method(name: str, text: bytes, expected: Expected, header: str, over_http: Expected | None = None) -> Case:
    return Case(f"method-{name}", listing(method=text), expected, mirrored(header), over_http)


JSON_RPC = [
    Case("batch-empty", b"[]", REQUEST),
    Case("batch-of-one", b"[%b]" % listing(), REQUEST),
    Case("batch-of-10000", b"[%b]" % b",".join([listing()] * 10_000), REQUEST),
    Case("batch-of-notifications", b'[{"jsonrpc":"2.0","method":"notifications/x"}]', REQUEST),
    Case("batch-nested", b"[[%b]]" % listing(), REQUEST),
    Case("top-level-string", b'"tools/list"', REQUEST),
    Case("top-level-number", b"1", REQUEST),
    Case("top-level-null", b"null", REQUEST),
    Case("top-level-true", b"true", REQUEST),
    Case("empty-object", b"{}", REQUEST),
    Case("version-missing", listing().replace(b'"jsonrpc":"2.0",', b""), REQUEST),
    Case("version-1.0", listing().replace(b'"2.0"', b'"1.0"'), REQUEST),
    Case("version-as-number", listing().replace(b'"2.0"', b"2.0"), REQUEST),
    Case("unknown-member", listing().replace(b'"id":1', b'"id":1,"extra":1'), REQUEST),
    Case("id-object", listing(id_=b"{}"), REQUEST),
    Case("id-array", listing(id_=b"[1]"), REQUEST),
    Case("id-true", listing(id_=b"true"), REQUEST),
    Case("id-null", listing(id_=b"null"), REQUEST),
    Case("id-fraction", listing(id_=b"1.5"), EITHER),
    Case("id-2-to-the-64", listing(id_=b"18446744073709551616"), EITHER),
    Case("id-1e30", listing(id_=b"1e30"), EITHER),
    Case("id-out-of-range", listing(id_=b"1e400"), EITHER),
    Case("id-empty", listing(id_=b'""'), EITHER),
    Case("id-of-a-megabyte", listing(id_=b'"%b"' % (b"i" * 1_000_000)), EITHER),
    Case("id-minus-one", listing(id_=b"-1"), ACCEPTED),
    Case("method-missing", b'{"jsonrpc":"2.0","id":1}', REQUEST),
    Case("method-number", listing(method=b"1"), REQUEST),
    Case("method-null", listing(method=b"null"), REQUEST),
    Case("method-of-a-megabyte", listing(method=b'"%b"' % (b"m" * 1_000_000)), REQUEST),
    Case("method-empty", listing(method=b'""'), REQUEST),
    _method("proto", b'"__proto__"', METHOD, "__proto__"),
    _method("class", b'"__class__"', METHOD, "__class__"),
    _method("traversal", b'"../tools/list"', METHOD, "../tools/list"),
    _method("case", b'"Tools/List"', METHOD, "Tools/List"),
    _method("trailing-blank", b'"tools/list "', METHOD, "tools/list", HEADER),
    _method("nul", b'"tools/list\\u0000"', METHOD, "tools/list", HEADER),
    _method("crlf", b'"tools/list\\r\\nX: y"', METHOD, "tools/list", HEADER),
    _method("rpc-prefix", b'"rpc.discover"', METHOD, "rpc.discover"),
    _method("unknown", b'"tools/forget"', METHOD, "tools/forget"),
    _method("look-alike-slash", '"tools\N{DIVISION SLASH}list"'.encode(), METHOD, "tools/list", HEADER),
    _method("of-the-other-era", b'"ping"', METHOD, "ping"),
    Case("params-array", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', REQUEST),
    Case("params-string", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', REQUEST),
    Case("result-from-a-caller", b'{"jsonrpc":"2.0","id":1,"result":{}}', REQUEST),
    Case("error-from-a-caller", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', REQUEST),
    Case("request-and-result", listing().replace(b'"id":1', b'"id":1,"result":{}'), REQUEST),
]


def _encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _call_with(name: str, headers: Headers, over_http: Expected) -> Case:
    return Case(name, GOOD_CALL, ACCEPTED, headers, over_http)


_VERSION, _METHOD, _NAME = CALLING

MIRRORED_HEADERS = [
    _call_with("all-headers-right", CALLING, ACCEPTED),
    _call_with("version-header-missing", (_METHOD, _NAME), HEADER),
    _call_with("version-header-differs", (("MCP-Protocol-Version", "2025-11-25"), _METHOD, _NAME), HEADER),
    _call_with("method-header-missing", (_VERSION, _NAME), HEADER),
    _call_with("method-header-differs", (_VERSION, ("Mcp-Method", "tools/list"), _NAME), HEADER),
    _call_with("method-header-in-another-case", (_VERSION, ("Mcp-Method", "Tools/Call"), _NAME), HEADER),
    _call_with("name-header-missing", (_VERSION, _METHOD), HEADER),
    _call_with("name-header-differs", mirrored("tools/call", "rm"), HEADER),
    _call_with("name-header-in-another-case", mirrored("tools/call", TOOL.upper()), HEADER),
    _call_with("name-header-in-base64", mirrored("tools/call", _encoded(TOOL)), ACCEPTED),
    _call_with("name-header-in-broken-base64", mirrored("tools/call", "=?base64?ZWNo*?="), HEADER),
    _call_with("name-header-in-unpadded-base64", mirrored("tools/call", "=?base64?ZWNobw?="), HEADER),
    _call_with("name-header-in-base64-of-another", mirrored("tools/call", _encoded("rm")), HEADER),
    _call_with("version-header-doubled", (*CALLING, _VERSION), HEADER),
    _call_with("method-header-doubled", (*CALLING, _METHOD), HEADER),
    _call_with("name-header-doubled", (*CALLING, _NAME), HEADER),
    _call_with("session-id-beside", (*CALLING, ("Mcp-Session-Id", "stolen")), ACCEPTED),
    Case("meta-missing", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}', PARAMS),
    Case("params-missing", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', PARAMS),
    Case("meta-is-a-string", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":"x"}}', PARAMS),
    Case("capabilities-missing", listing().replace(b"clientCapabilities", b"clientCapacities"), PARAMS),
    Case(
        "version-unsupported",
        listing().replace(REVISION.encode(), b"2031-01-01"),
        VERSION,
        (("MCP-Protocol-Version", "2031-01-01"), ("Mcp-Method", "tools/list")),
    ),
]

GROUPS = {"json-text": JSON_TEXT, "keys": KEYS, "json-rpc": JSON_RPC, "mirrored-headers": MIRRORED_HEADERS}
ALL = [case for group in GROUPS.values() for case in group]
