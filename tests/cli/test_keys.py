"""`pactgate keys`, and a gateway that serves by what it says: over TCP, over TLS, at a Unix socket."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.cli.program import WATCHFUL, Served, demo, run, run_program, write_config
from tests.support.certificates import Authority
from tests.support.eventually import eventually_blocking

KEY = re.compile(r"pg_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}\n")


def keys(folder: Path, *words: str) -> CompletedProcess[str]:
    return run(folder, "keys", *words)


def listed(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(keys(folder, "list", "--json").stdout)["keys"]
    return rows


def test_a_key_is_shown_once_alone_on_standard_output(tmp_path: Path) -> None:
    write_config(tmp_path, {}, auth={"tokens": {"ops": {"token": "${NOT_SET_HERE}", "roles": ["admin"]}}})
    made = keys(tmp_path, "add", "ci", "--groups", "dev, ops", "--roles", "admin", "--expires", "90d")
    assert (made.returncode, bool(KEY.fullmatch(made.stdout))) == (0, True)
    assert "need a token or a key" in made.stderr
    (row,) = listed(tmp_path)
    assert (row["name"], row["groups"], row["roles"], row["lastUsed"]) == ("ci", ["dev", "ops"], ["admin"], None)
    shown = keys(tmp_path, "list")
    assert re.search(r"ci +dev, ops +admin +\S+Z +\S+Z +never", shown.stdout)
    assert made.stdout.strip()[12:] not in shown.stdout + (tmp_path / "pactgate.keys").read_text()
    assert "need a token or a key" not in keys(tmp_path, "add", "other", "--json").stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "anonymous"), 2, "Choose another"),
        (("add", "a b"), 2, "can't be the name"),
        (("add", "x", "--roles", "boss"), 2, "Nothing refers to the role boss"),
        (("add", "x", "--expires", "soon"), 2, "Write it as 90d"),
        (("add", "x", "--expires", "2020-01-01"), 2, "is over"),
        (("add", "ci"), 1, "keys rotate ci"),
        (("rotate", "ci", "--overlap", "later"), 2, "24h"),
        (("rotate", "nobody"), 1, "has no key"),
        (("revoke", "nobody"), 1, "There is no key"),
    ],
)
def test_what_makes_no_sense_is_told_and_changes_nothing(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    write_config(tmp_path, {})
    keys(tmp_path, "add", "ci")
    before = (tmp_path / "pactgate.keys").read_bytes()
    done = keys(tmp_path, *words)
    assert (done.returncode, said in done.stderr, done.stdout) == (code, True, "")
    assert (tmp_path / "pactgate.keys").read_bytes() == before


def test_without_a_configuration_there_are_no_keys(tmp_path: Path) -> None:
    assert "keys belong to one" in keys(tmp_path, "list").stderr


def test_rotating_and_revoking(tmp_path: Path) -> None:
    write_config(tmp_path, {})
    first = keys(tmp_path, "add", "ci").stdout.strip()
    second = keys(tmp_path, "rotate", "ci", "--overlap", "1h", "--json")
    assert [row["expires"] is None for row in listed(tmp_path)] == [False, True]
    assert keys(tmp_path, "revoke", first[3:11]).stdout == f"Revoked: {first[3:11]}.\n"
    assert [row["id"] for row in listed(tmp_path)] == [json.loads(second.stdout)["id"]]
    assert keys(tmp_path, "revoke", "ci").returncode == 0
    assert "There are no keys" in keys(tmp_path, "list").stdout


def status(served: Served, key: str) -> int:
    done = served.run("tools", "--json", PACTGATE_TOKEN=key)
    return 200 if done.returncode == 0 else 401 if "did not accept" in done.stderr else 0


def test_a_running_gateway_follows_the_file_also_the_first_key_and_the_last(tmp_path: Path) -> None:
    write_config(tmp_path, {"almanac": demo("almanac")})
    with Served(tmp_path, program=WATCHFUL) as served:
        assert served.run("tools").returncode == 0, "nobody needs a key yet"
        key = keys(tmp_path, "add", "ci").stdout.strip()
        eventually_blocking(lambda: "needs a token" in served.run("tools").stderr)
        assert status(served, key) == 200
        assert status(served, key + "x") == 401
        fresh = keys(tmp_path, "rotate", "ci").stdout.strip()
        eventually_blocking(lambda: status(served, fresh) == 200)
        assert status(served, key) == 200
        eventually_blocking(lambda: listed(tmp_path)[0]["lastUsed"])
        keys(tmp_path, "revoke", "ci")
        eventually_blocking(lambda: status(served, fresh) == 401)
        assert "needs a token" in served.run("tools").stderr, "taking the last key away lets nobody in"


def test_a_file_of_keys_that_cant_be_used_stops_the_start(tmp_path: Path) -> None:
    write_config(tmp_path, {}, listen={"port": 0})
    (tmp_path / "pactgate.keys").write_text("{")
    done = run_program(tmp_path, "serve")
    assert (done.returncode, "pactgate.keys" in done.stderr, "damaged" in done.stderr) == (1, True, True)
    assert "Traceback" not in done.stderr
    for command, code in (("check", 2), ("doctor", 1)):
        told = run(tmp_path, command)
        assert (told.returncode, "damaged" in told.stdout + told.stderr) == (code, True)


# -- TLS and the socket


@contextmanager
def over_tls(folder: Path, **listen: Any) -> Iterator[tuple[Served, Authority]]:
    authority = Authority(folder)
    certificate, key = authority.issue("gateway.example")
    tls = {"certificate": certificate.name, "key": key.name}
    write_config(
        folder, {"almanac": demo("almanac")}, listen={"tls": tls, "allowedHosts": ["gateway.example"], **listen}
    )
    with Served(folder) as served:
        yield served, authority


def test_commands_reach_a_gateway_over_tls_without_being_told_how(tmp_path: Path) -> None:
    with over_tls(tmp_path) as (served, authority):
        url = served.wait_for(r"at (https://\S+)/mcp\n")[1]
        assert json.loads(served.wait_for(r'(\{"mcpServers".*)\n')[1])["mcpServers"]["pactgate"]["url"] == f"{url}/mcp"
        assert run(tmp_path, "tools").returncode == 0, "this user's gateway, by its own certificate"
        assert run(tmp_path, "tools", "--url", url).returncode == 0
        port = url.rpartition(":")[2]
        foreign = run(tmp_path, "status", "--url", f"https://localhost:{port}")
        assert (foreign.returncode, "--ca-file" in foreign.stderr) == (1, True)
        other = run(tmp_path, "status", "--url", f"https://localhost:{port}", "--ca-file", str(authority.file))
        assert "Hostname mismatch" in other.stderr, "which is for another name"
        _reach_by_name(int(port), authority)
        assert served.stop() == 0


def _reach_by_name(port: int, authority: Authority) -> None:
    """As a client elsewhere does, which knows the gateway by its name."""
    connection = http.client.HTTPSConnection("gateway.example", port, context=authority.client_context(), timeout=5)
    connection._create_connection = lambda address, *rest: _connect(port)  # type: ignore[attr-defined]
    try:
        connection.request("GET", "/api/status")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def _connect(port: int) -> Any:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_renewed_certificate_is_served_by_the_running_gateway(tmp_path: Path) -> None:
    with over_tls(tmp_path) as (served, authority):
        port = int(served.wait_for(r"at https://\S+:(\d+)/mcp\n")[1])
        before = ssl.get_server_certificate(("127.0.0.1", port))
        authority.issue("gateway.example")  # writes over the files
        eventually_blocking(lambda: ssl.get_server_certificate(("127.0.0.1", port)) != before)
        (tmp_path / "authority-gateway.example.key").write_text("broken")
        served.process.send_signal(signal.SIGHUP)
        lines = eventually_blocking(
            lambda: [line for line in served.log_lines() if line["event"] == "ConfigurationRefused"]
        )
        assert "listen.tls.key" in lines[0]["problems"][0]
        assert ssl.get_server_certificate(("127.0.0.1", port)) != before
        assert sum(line["event"] == "CertificateReplaced" for line in served.log_lines()) == 1


def test_local_commands_need_no_port_and_no_token(tmp_path: Path) -> None:
    keys_and_socket = {"port": "off", "socket": "gw.sock"}
    write_config(tmp_path, {"almanac": demo("almanac")}, listen=keys_and_socket)
    keys(tmp_path, "add", "ci")
    words = ("tools", "config get limits.maxArraySize", "call almanac__date_facts date=2026-06-21")
    with _served_locally(tmp_path) as served:
        served.wait_for(r"at unix:\S+gw\.sock\n")
        for line in words:
            done = run(tmp_path, *line.split())
            assert (done.returncode, done.stderr) == (0, "")
        assert run(tmp_path, "tools", "--url", f"unix:{tmp_path / 'gw.sock'}").returncode == 0
        assert "mcpServers" not in served.printed
        assert "only the socket" in run(tmp_path, "doctor").stdout
        row = json.loads(run(tmp_path, "explain", "--json").stdout)[0]
        assert (row["subject"], row["peer"]) == (f"uid:{os.getuid()}", "unix")
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(5)
    assert (tmp_path / "gw.sock").exists()
    with _served_locally(tmp_path) as served:  # what the killed one left is no obstacle
        served.wait_for(r"at unix:")
        assert run(tmp_path, "tools").returncode == 0
        assert served.stop() == 0
    assert not (tmp_path / "gw.sock").exists()


@contextmanager
def _served_locally(folder: Path) -> Iterator[Served]:
    with Served(folder, port=None) as served:
        yield served
