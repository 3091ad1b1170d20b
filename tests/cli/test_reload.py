"""The configuration of a running gateway: taken over when it changes, refused whole when it is wrong."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN
from tests.cli.program import WATCHFUL, Served, put, write_config
from tests.support.eventually import eventually_blocking
from tests.support.facing import META, initialize, message
from tests.support.servers import UPSTREAM


def entry(**options: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(UPSTREAM), json.dumps(options)]}


def servers(served: Served) -> dict[str, dict[str, Any]]:
    with urlopen(f"{served.url}/api/servers", timeout=5) as answer:
        return {row["serverId"]: row for row in json.load(answer)["servers"]}


def until(served: Served, is_so: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    return eventually_blocking(lambda: rows if is_so(rows := servers(served)) else {})


def all_connected(rows: dict[str, dict[str, Any]]) -> bool:
    return all(row["status"] == "connected" and row["toolCount"] for row in rows.values())


def logged(served: Served, event: str) -> dict[str, Any]:
    return eventually_blocking(lambda: [line for line in served.log_lines() if line["event"] == event])[-1]


def test_a_changed_file_adds_removes_and_changes_servers_without_touching_the_others(tmp_path: Path) -> None:
    write_config(tmp_path, {"keep": entry(), "change": entry(), "drop": entry()})
    with Served(tmp_path) as served:
        before = until(served, all_connected)
        write_config(tmp_path, {"keep": entry(), "change": entry(tools=["extra"]), "new": entry()})
        after = until(served, lambda rows: "new" in rows and all_connected(rows))
        assert set(after) == {"keep", "change", "new"}
        assert after["keep"]["pid"] == before["keep"]["pid"]
        assert after["change"]["pid"] != before["change"]["pid"]
        assert after["change"]["toolCount"] == before["change"]["toolCount"] + 1
        told = logged(served, "ConfigurationReloaded")
    assert (told["added"], told["removed"], told["changed"]) == (["new"], ["drop"], ["change"])


def test_a_file_with_problems_is_refused_whole_and_what_runs_goes_on(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"keep": entry()})
    with Served(tmp_path, program=WATCHFUL) as served:
        before = until(served, all_connected)
        put(path, '{"mcpServers": {"keep": {"comand": "x"}, "new": {"url": "ftp://x"}}, "limitz": {}}')
        told = logged(served, "ConfigurationRefused")
        assert len(told["problems"]) >= 3
        assert servers(served)["keep"]["pid"] == before["keep"]["pid"]
        assert set(servers(served)) == {"keep"}
        write_config(tmp_path, {"keep": entry(), "new": entry()})
        until(served, lambda rows: "new" in rows and all_connected(rows))


def test_a_hangup_signal_asks_for_the_file_at_once_and_says_what_needs_a_restart(tmp_path: Path) -> None:
    write_config(tmp_path, {"keep": entry()})
    with Served(tmp_path, program=WATCHFUL) as served:
        until(served, all_connected)
        write_config(tmp_path, {"keep": {**entry(), "enabled": False}}, sessions={"maxSessions": 5})
        served.process.send_signal(signal.SIGHUP)
        until(served, lambda rows: rows["keep"]["status"] == "disabled")
        assert logged(served, "ConfigurationReloaded")["needs_restart"] == ["sessions"]


def test_a_file_that_disappears_changes_nothing(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"keep": entry()})
    with Served(tmp_path, program=WATCHFUL) as served:
        before = until(served, all_connected)
        path.unlink()
        served.process.send_signal(signal.SIGHUP)
        logged(served, "ConfigurationRefused")
        assert servers(served)["keep"]["pid"] == before["keep"]["pid"]


# -- who may call

ALICE, BOB, CAROL = ("9f86d081884c7d659a2feaa0c55ad01" + digit for digit in "abc")
LISTEN = {"notifications": {"toolsListChanged": True}}


def allow(folder: Path, **holders: Any) -> None:
    write_config(folder, {"keep": entry()}, auth={"tokens": holders})


class Client:
    """One connection that is kept open, and the token it is used with."""

    def __init__(self, served: Served, token: str) -> None:
        address = served.url.removeprefix("http://")
        self._connection = HTTPConnection(address, timeout=10)
        self._token = token
        self.close = self._connection.close

    def send(self, data: bytes, method: str = "POST", **headers: str) -> HTTPResponse:
        common = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        sent = common | {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, "/mcp", data, sent)
        return self._connection.getresponse()

    def request(self, method: str, **params: Any) -> HTTPResponse:
        """A modern request."""
        body = encode_json({**message(method, {**params, "_meta": META})})
        named = {"Mcp_Name": params["name"]} if "name" in params else {}
        return self.send(body, MCP_Protocol_Version=LATEST_MODERN, Mcp_Method=method, **named)

    def call(self, name: str = "keep__echo", **arguments: Any) -> tuple[int, str]:
        answer = self.request("tools/call", name=name, arguments=arguments)
        return answer.status, answer.read().decode()

    def open_session(self) -> dict[str, str]:
        answer = self.send(encode_json(initialize()))
        answer.read()
        return {"Mcp_Session_Id": str(answer.headers["Mcp-Session-Id"]), "MCP_Protocol_Version": LATEST_LEGACY}


Connect = Callable[[Served, str], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as stack:

        def open_one(served: Served, token: str) -> Client:
            return stack.enter_context(closing(Client(served, token)))

        yield open_one


def reloads(served: Served) -> int:
    return sum(line["event"] == "ConfigurationReloaded" for line in served.log_lines())


def test_a_token_taken_out_of_the_file_is_refused_everywhere_without_a_restart(
    tmp_path: Path, connect: Connect
) -> None:
    allow(tmp_path, alice={"token": ALICE}, bob={"token": BOB})
    with Served(tmp_path, program=WATCHFUL) as served:
        alice, kept, other = connect(served, ALICE), connect(served, BOB), connect(served, BOB)
        listening = other.request("subscriptions/listen", **LISTEN)
        assert b"acknowledged" in listening.readline() + listening.readline()
        owner = connect(served, BOB)
        session = owner.open_session()
        stream = connect(served, BOB).send(b"", "GET", **session)
        assert stream.status == 200
        assert [kept.call()[0], kept.call()[0], alice.call()[0]] == [200, 200, 200]
        allow(tmp_path, alice={"token": ALICE})
        eventually_blocking(lambda: reloads(served))
        assert kept.call()[0] == 401
        assert connect(served, BOB).call()[0] == 401
        assert owner.send(encode_json(message("ping")), **session).status == 401
        assert stream.read() == b""
        assert b"no longer valid" in listening.read()
        assert alice.call()[0] == 200
        assert logged(served, "ConfigurationReloaded")["needs_restart"] == []


def test_a_role_taken_away_is_felt_by_the_next_call(tmp_path: Path, connect: Connect) -> None:
    allow(tmp_path, ops={"token": ALICE, "roles": ["admin"]})
    with Served(tmp_path, program=WATCHFUL) as served:
        ops = connect(served, ALICE)
        status, answer = ops.call("pactgate__config_get", path="limits")
        assert (status, '"isError":true' in answer, '"error"' in answer) == (200, False, False)
        allow(tmp_path, ops={"token": ALICE})
        eventually_blocking(lambda: reloads(served))
        assert "error" in ops.call("pactgate__config_get", path="limits")[1]
        assert ops.call()[0] == 200


def test_a_token_is_replaced_without_a_gap(tmp_path: Path, connect: Connect) -> None:
    digest = "sha256:" + hashlib.sha256(BOB.encode()).hexdigest()
    allow(tmp_path, ops={"token": ALICE})
    with Served(tmp_path, program=WATCHFUL) as served:
        old = connect(served, ALICE)
        assert old.call()[0] == 200
        allow(tmp_path, ops={"tokens": [{"token": ALICE, "expires": "2099-01-01"}, {"token": digest}]})
        eventually_blocking(lambda: reloads(served))
        assert (old.call()[0], connect(served, BOB).call()[0]) == (200, 200)
        allow(tmp_path, ops={"token": digest})
        eventually_blocking(lambda: reloads(served) == 2)
        assert (old.call()[0], connect(served, BOB).call()[0]) == (401, 200)


def test_a_token_in_a_file_of_its_own_is_replaced_when_that_file_changes(tmp_path: Path, connect: Connect) -> None:
    secret = tmp_path / "token"
    secret.write_text(f"{ALICE}\n")
    allow(tmp_path, ops={"token": f"${{file:{secret}}}"})
    with Served(tmp_path, program=WATCHFUL) as served:
        assert connect(served, ALICE).call()[0] == 200
        put(secret, f"{BOB}\n")
        eventually_blocking(lambda: reloads(served))
        assert (connect(served, ALICE).call()[0], connect(served, BOB).call()[0]) == (401, 200)
        secret.unlink()
        refused = logged(served, "ConfigurationRefused")
        assert "secret file" in refused["problems"][0]
        assert connect(served, BOB).call()[0] == 200
        assert ALICE not in served.log_text() + served.printed


def test_taking_the_last_token_away_lets_nobody_in(tmp_path: Path, connect: Connect) -> None:
    allow(tmp_path, ops={"token": ALICE})
    with Served(tmp_path, program=WATCHFUL) as served:
        ops = connect(served, ALICE)
        assert ops.call()[0] == 200
        allow(tmp_path)
        eventually_blocking(lambda: reloads(served))
        assert (ops.call()[0], connect(served, BOB).call()[0]) == (401, 401)
        with pytest.raises(HTTPError, match="401") as refused:
            urlopen(f"{served.url}/api/tools", timeout=5)
        refused.value.close()
        assert logged(served, "ConfigurationReloaded")["needs_restart"] == ["auth"]


def test_a_file_that_every_user_may_write_is_not_reloaded(tmp_path: Path, connect: Connect) -> None:
    allow(tmp_path, ops={"token": ALICE})
    with Served(tmp_path, program=WATCHFUL) as served:
        assert connect(served, ALICE).call()[0] == 200
        new = put(tmp_path / "new.json", "{}")
        new.chmod(0o666)
        new.replace(tmp_path / "pactgate.json")
        assert "Every user may write" in logged(served, "ConfigurationRefused")["problems"][0]
        assert connect(served, ALICE).call()[0] == 200
