"""Tokens of a real identity provider (oidc-provider), and clients that find their way from a bare 401 to a call by themselves."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from tests.interop.identity_gateway import RealProvider, call, start_gateway, why_no_provider
from tests.interop.processes import HERE, NODE, NODE_FOLDER, PYTHON, free_port

pytestmark = [pytest.mark.interop, pytest.mark.skipif(why_no_provider() is not None, reason=str(why_no_provider()))]

JOB_S = 40


class Place:
    """One provider and one gateway that trusts it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.resource = f"http://127.0.0.1:{self.port}/mcp"
        self.provider = RealProvider(folder, self.resource)
        self.provider.start()
        issuer = {
            "issuer": self.provider.issuer,
            "audiences": [self.resource],
            "introspection": {"clientId": "gateway", "clientSecret": "of-the-gateway"},
        }
        try:
            self._gateway = start_gateway(folder, self.port, {"resource": self.resource, "issuers": [issuer]})
        except BaseException:
            self.provider.stop()
            raise

    def close(self) -> None:
        self._gateway.stop()
        self.provider.stop()

    def token(self, scope: str = "mcp:read", *, resource: str | None = None) -> str:
        """By client credentials."""
        form = {"grant_type": "client_credentials", "scope": scope, "resource": resource or self.resource}
        request = Request(f"{self.provider.issuer}/token", urlencode(form).encode())
        request.add_header("Authorization", "Basic c2VydmljZTpvZi10aGUtc2VydmljZQ==")
        with urlopen(request, timeout=10) as answer:
            token: str = json.load(answer)["access_token"]
        return token

    def job(self, client: str, path: str, tools: list[str]) -> dict[str, Any]:
        """What a client with OAuth of its own is to do, without a token."""
        return {"client": client, "url": f"http://127.0.0.1:{self.port}{path}", "tools": tools, "seconds": JOB_S}

    def call(self, tool: str, token: str, path: str = "/mcp") -> int:
        return call(self.port, tool, token, path).status


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("identity"))
    try:
        yield place
    finally:
        place.close()


def test_a_token_for_this_resource_calls_what_its_scopes_allow(place: Place) -> None:
    assert [place.call(tool, place.token()) for tool in ("look", "write", "start")] == [200, 403, 403]
    assert [place.call(tool, place.token("mcp:run")) for tool in ("look", "write", "start")] == [200, 200, 200]


def test_a_token_for_another_resource_is_refused_and_one_for_a_server_is_good_there_only(place: Place) -> None:
    assert place.call("look", place.token(resource="https://other.example/mcp")) == 401
    own = place.token(resource=f"{place.resource}/files")
    assert [place.call("look", own, "/mcp/files"), place.call("look", own)] == [200, 401]


def test_a_token_that_is_no_jwt_is_introspected(place: Place) -> None:
    outcome = play("python", place.job("sdk2", "/mcp/opaque", ["look"]))
    assert "error" not in outcome, outcome
    assert "." not in outcome["token"]
    assert place.call("look", outcome["token"], "/mcp/opaque") == 200
    assert place.call("look", outcome["token"]) == 401, "it is for the other server"
    assert place.call("look", "made-up-" + outcome["token"], "/mcp/opaque") == 401


CLIENTS = {"ts1": "typescript", "ts2": "typescript", "sdk2": "python"}
DRIVERS: dict[str, list[str | Path]] = {
    "typescript": [NODE, HERE / "clients" / "oauth.mjs", NODE_FOLDER],
    "python": [PYTHON, HERE / "clients" / "oauth.py"],
}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/files", "/mcp/v/desk"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_finds_its_way_from_a_bare_401_to_a_call(client: str, path: str, place: Place) -> None:
    outcome = play(CLIENTS[client], place.job(client, path, ["files__look" if path == "/mcp" else "look"]))
    assert "error" not in outcome, outcome
    assert (len(outcome["said"]), outcome["logins"], outcome["scope"]) == (1, 1, "mcp:read")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_the_provider_knows_steps_up_for_a_tool_that_needs_more(client: str, place: Place) -> None:
    job = place.job(client, "/mcp", ["files__look", "files__write"])
    outcome = play(CLIENTS[client], {**job, "clientId": "desk", "issuer": place.provider.issuer})
    assert "error" not in outcome, outcome
    assert len(outcome["said"]) == 2
    assert outcome["logins"] == 2, "the second one for the scope of the second tool"
    assert "mcp:write" in outcome["scope"]


def test_the_inspector_finds_its_way_too(place: Place, tmp_path: Path) -> None:
    """It prints where to log in, and listens for the answer."""
    program = (
        NODE_FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "cli" / "build" / "index.js"
    )
    words = [
        *(
            str(NODE),
            str(program),
            f"http://127.0.0.1:{place.port}/mcp",
            "--transport",
            "http",
            "--format",
            "json",
            "-q",
        ),
        *("--method", "tools/call", "--tool-name", "files__look", "--tool-args-json", "{}"),
        *("--callback-url", f"http://127.0.0.1:{free_port()}/oauth/callback"),
    ]
    alone = {"HOME": str(tmp_path), "PATH": "", "MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "memory"}
    inspector = subprocess.Popen(words, env=alone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert inspector.stdout is not None
        lines = []
        for line in inspector.stdout:
            lines.append(line)
            where = re.search(r"http://127\.0\.0\.1:\d+/auth\?\S+", line)
            if where is not None:
                browser = build_opener(HTTPCookieProcessor(CookieJar()))
                with browser.open(where[0], timeout=10) as page:
                    assert b"OAuth complete" in page.read()
        assert inspector.wait(JOB_S) == 0, lines
        assert json.loads(lines[-1])["result"]["content"][0]["text"] == "look"
    finally:
        inspector.kill()
        inspector.wait()
        assert inspector.stdout is not None
        inspector.stdout.close()


def play(driver: str, job: dict[str, Any]) -> dict[str, Any]:
    words = [str(word) for word in DRIVERS[driver]]
    done = subprocess.run(
        words, input=json.dumps([job]), capture_output=True, text=True, timeout=JOB_S + 20, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-2000:]
    outcome: dict[str, Any] = json.loads(lines[-1])
    return outcome


def test_new_keys_of_the_provider_work_and_without_it_known_tokens_go_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    try:
        before = place.token()
        assert place.call("look", before) == 200
        place.provider.stop()
        assert place.call("look", before) == 200
        place.provider.start()
        assert place.call("look", place.token()) == 200, "signed with a key that the gateway has not seen"
        assert place.call("look", before) == 401, "its key was withdrawn"
    finally:
        place.close()
