"""No credential of a client is in anything the gateway writes or answers, however the client sends it.

A further kind of credential is one more row of `CREDENTIALS`: how to configure it, and how to take it away again.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from pactgate.protocol.versions import LATEST_MODERN
from tests.cli.program import Served, run, scripted, write_config
from tests.support.eventually import eventually_blocking
from tests.support.facing import META, initialize, message
from tests.support.identity_provider import AUDIENCE, public_jwk, rsa_key, sign
from tests.support.processes import descendants_of
from tests.support.raw_http import RawClient, get, post, request

TOKEN = "Tk9f86d081884c7d659a2feaa0c55ad0153aX"
ADMIN = "Ad5c1e7b2aa90d4f3386e17f0b9dd4c28e60Z"
EVERYTHING: dict[str, Any] = {
    "audit": {"file": "audit.jsonl", "arguments": "values"},
    "capture": {"dir": "captures"},
    "log": {"level": "debug", "format": "json"},
    "limits": {"maxStringLength": 2000},
}


class CredentialKind(NamedTuple):
    """`make` gives the credential of a folder with a configuration, `revoke` takes it away from a running gateway."""

    name: str
    make: Callable[[Path], str]
    revoke: Callable[[Path], None]
    is_known: bool = True
    """Whether the gateway can tell it from other text, wherever a client puts it. Nobody can tell an opaque token but its provider."""


def configure(folder: Path, **holders: Any) -> None:
    tokens = {"ops": {"token": ADMIN, "roles": ["admin"]}, **holders}
    write_config(folder, {"files": scripted()}, auth={"tokens": tokens}, **EVERYTHING)


def make_token(folder: Path) -> str:
    configure(folder, ann={"token": TOKEN})
    return TOKEN


def make_key(folder: Path) -> str:
    configure(folder)
    return run(folder, "keys", "add", "ann").stdout.strip()


def revoke_api_key(folder: Path) -> None:
    assert run(folder, "keys", "revoke", "ann").returncode == 0


def make_access_token(folder: Path) -> str:
    key = rsa_key()
    issuer = {"issuer": "https://idp.example", "audiences": [AUDIENCE], "jwks": {"keys": [public_jwk(key, kid="k")]}}
    auth = {"tokens": {"ops": {"token": ADMIN, "roles": ["admin"]}}, "issuers": [issuer], "resource": AUDIENCE}
    write_config(folder, {"files": scripted()}, auth=auth, **EVERYTHING)
    claims = {"iss": issuer["issuer"], "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 600, "scope": "mcp:run"}
    return sign({"alg": "RS256", "typ": "at+jwt", "kid": "k"}, claims, key)


class Introspection(BaseHTTPRequestHandler):
    """Says of every token that it is Ann's."""

    url = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"active": True, "sub": "ann", "aud": AUDIENCE, "scope": "mcp:run"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def provider() -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Introspection) as server:
        Introspection.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


def make_opaque_token(folder: Path) -> str:
    own = {"clientId": "gateway", "clientSecret": "Se" * 12, "url": f"{Introspection.url}/introspect"}
    issuer = {"issuer": Introspection.url, "audiences": [AUDIENCE], "introspection": own}
    auth = {"tokens": {"ops": {"token": ADMIN, "roles": ["admin"]}}, "issuers": [issuer], "resource": AUDIENCE}
    write_config(folder, {"files": scripted()}, auth=auth, **EVERYTHING)
    return TOKEN


CREDENTIALS = (
    CredentialKind("a token of the file", make_token, configure),
    CredentialKind("an API key", make_key, revoke_api_key),
    CredentialKind("an access token", make_access_token, configure),
    CredentialKind("an opaque access token", make_opaque_token, configure, is_known=False),
)


def modern(method: str, params: dict[str, Any], path: str = "/mcp", **headers: str) -> bytes:
    mirrored = {"mcp_protocol_version": LATEST_MODERN, "mcp_method": method}
    name = {"mcp_name": params["name"]} if "name" in params else {}
    return post(message(method, {**params, "_meta": META}), path, **{**mirrored, **name, **headers})


def call(arguments: Any, name: str = "files__pid", **headers: str) -> bytes:
    return modern("tools/call", {"name": name, "arguments": arguments}, **headers)


def as_header(secret: str) -> Iterator[bytes]:
    """The credential where it belongs, and where it does not."""
    yield call({}, authorization=f"Bearer {secret}")
    yield call({}, authorization=f"bearer  {secret} ")
    for value in (secret, f"Basic {secret}", f"Bearer {secret}, Bearer {secret}", f"Bearer {secret}/"):
        yield call({}, authorization=value)
    good = {"authorization": f"Bearer {secret}"}
    for name in (
        "x_api_key",
        "cookie",
        "proxy_authorization",
        "mcp_session_id",
        "last_event_id",
        "mcp_method",
        "origin",
    ):
        yield call({}, **{**good, name: secret})
        yield call({}, **{name: secret})
    for name in ("host", "content_type", "accept", "mcp_protocol_version", "content_encoding", "expect"):
        yield call({}, **{name: secret})
    yield request(f"X{secret}", "/mcp", {"host": "127.0.0.1"})


def as_path(secret: str) -> Iterator[bytes]:
    for good in ({}, {"authorization": f"Bearer {ADMIN}"}):
        for path in (f"/mcp?token={secret}", f"/api/status?access_token={secret}", f"/{secret}", f"/mcp/{secret}"):
            yield get(path, **good)
        yield get(f"/api/calls/{secret}", **good)
        yield modern("tools/list", {}, f"/mcp?access_token={secret}", **good)


def as_message(secret: str) -> Iterator[bytes]:
    """In what an admitted client says."""
    good = {"authorization": f"Bearer {ADMIN}"}
    for arguments in ({"x": secret}, {secret: 1}, {"x": [{"y": f"-{secret}-"}]}, {"x": secret * 100}, secret):
        yield call(arguments, **good)
    for name in (secret, f"files__{secret}", f"files.{secret}", "files__refuse"):
        yield call({"code": secret}, name=name, **good)
    yield modern(secret, {}, **good)
    yield modern("resources/read", {"uri": f"file:///{secret}", "name": "x"}, **good)
    yield modern("prompts/get", {"name": secret}, **good)
    yield call({"path": f"limits.{secret}"}, name="pactgate__config_get", **good)
    yield call({"path": "limits.maxArraySize", "value": secret}, name="pactgate__config_set", **good)
    yield post(f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"{secret}"'.encode(), **good)
    greeting = initialize()
    greeting["params"]["clientInfo"] = {"name": secret, "version": secret}
    yield post(greeting, **good)


class Answers:
    """Sends requests, each on a connection of its own, and keeps every byte that comes back."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.received = bytearray()

    def send(self, data: bytes) -> bytes:
        answer = asyncio.run(self._ask(data))
        self.received += answer
        return answer

    async def _ask(self, data: bytes) -> bytes:
        async with RawClient(self._port) as client:
            await client.send(data.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            return await client.rest()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def written(folder: Path, *, without: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != without
    }


@pytest.mark.parametrize("kind", CREDENTIALS, ids=lambda kind: kind.name)
def test_a_credential_is_in_nothing_that_is_written_or_answered(kind: CredentialKind, tmp_path: Path) -> None:
    secret = kind.make(tmp_path)
    with Served(tmp_path) as served:
        answers = Answers(int(served.url.rpartition(":")[2]))
        asked = call({}, authorization=f"Bearer {secret}")
        assert status(answers.send(asked)) == 200
        for requests in (as_header, as_path, as_message) if kind.is_known else (as_header,):
            for data in requests(secret):
                answers.send(data)
        kind.revoke(tmp_path)
        eventually_blocking(lambda: status(answers.send(asked)) == 401)
        admin = {"authorization": f"Bearer {ADMIN}"}
        for path in ("/health", "/api/status", "/api/servers", "/api/tools", "/api/calls", "/metrics"):
            answer = answers.send(get(path, **admin))
            assert status(answer) == 200
        calls = json.loads(answers.send(get("/api/calls", **admin)).partition(b"\r\n\r\n")[2])["calls"]
        for one in calls:
            answers.send(get(f"/api/calls/{one['requestId']}", **admin))
        shown = [served.run(*words, PACTGATE_TOKEN=ADMIN) for words in (["explain"], ["status"], ["config", "show"])]
        shown += [run(tmp_path, *words) for words in (["audit", "show", "-n", "100"], ["keys", "list", "--json"])]
        commands = [Path(f"/proc/{one}/cmdline").read_bytes() for one in descendants_of(served.process.pid)]
        commands.append(Path(f"/proc/{served.process.pid}/cmdline").read_bytes())
        assert served.stop() == 0
    everything = written(tmp_path, without="pactgate.json")
    assert {"audit.jsonl", "log.jsonl"} < set(everything)
    assert any(name.startswith("captures/") for name in everything)
    everything |= {"answers": bytes(answers.received), "printed": served.printed.encode(), "ps": b"".join(commands)}
    everything |= {f"command {at}": (one.stdout + one.stderr).encode() for at, one in enumerate(shown)}
    own = secret.rpartition(".")[2]  # of a token its signature: the rest is worth nothing without it
    part = own[len(own) // 2 - 8 : len(own) // 2 + 8].encode()
    found = {name: _around(data, part) for name, data in everything.items() if part in data}
    assert not found


def _around(data: bytes, part: bytes) -> list[bytes]:
    return [data[max(0, match.start() - 200) : match.end() + 40] for match in re.finditer(re.escape(part), data)]
