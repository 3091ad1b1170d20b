"""Replicas on three machines, as far as the network is concerned: one namespace each, and the store and the clients in a fourth.

One machine is cut off while it has a session: what waits for it ends with its verdict, and it joins again when it is back.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.interop.processes import GATEWAY, Program
from tests.replicas.cluster import KEY, health_at
from tests.support.eventually import eventually_blocking
from tests.support.plain_requests import call, initialize
from tests.support.redis_server import PROGRAM as REDIS
from tests.support.redis_server import needs_redis
from tests.support.servers import UPSTREAM

_NEW_NETWORK: Final = 0x40000000
_Found = TypeVar("_Found")
HOSTS: Final = ("10.77.0.1", "10.77.0.2", "10.77.0.3")
STORE: Final = "10.77.0.254"


def can_make_networks() -> bool:
    probe = ["unshare", "--net", "ip", "link", "add", "x", "type", "bridge"]
    has_tools = os.geteuid() == 0 and shutil.which("ip") is not None and shutil.which("unshare") is not None
    return has_tools and subprocess.run(probe, capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.interop,
    needs_redis,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not can_make_networks(), reason="NOT RUN: network namespaces need root and the command ip"),
]


class Network:
    """A bridge in a namespace of its own, and a namespace for each host."""

    def __init__(self) -> None:
        self.switch = f"pactgate-{os.getpid()}"
        self._pool = ThreadPoolExecutor(8, initializer=self._enter)

    def __enter__(self) -> Network:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        self._ip(f"netns add {self.switch}")
        self._ip(f"-n {self.switch} link add br0 type bridge")
        self._ip(f"-n {self.switch} address add {STORE}/24 dev br0")
        for device in ("lo", "br0"):
            self._ip(f"-n {self.switch} link set {device} up")
        for number, address in enumerate(HOSTS):
            name = self.host(number)
            self._ip(f"netns add {name}")
            self._ip(f"-n {name} link add eth type veth peer name port{number} netns {self.switch}")
            self._ip(f"-n {name} address add {address}/24 dev eth")
            for device in ("lo", "eth"):
                self._ip(f"-n {name} link set {device} up")
            self._ip(f"-n {self.switch} link set port{number} master br0 up")

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        for name in (self.switch, *map(self.host, range(len(HOSTS)))):
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def host(self, number: int) -> str:
        return f"{self.switch}-{number}"

    def plug(self, number: int, state: str) -> None:
        """`down`: the machine is gone as if its cable were pulled, and nobody is told."""
        self._ip(f"-n {self.switch} link set port{number} {state}")

    def outside(self, work: Callable[..., _Found], *args: Any, **named: Any) -> _Found:
        """Do something where the clients are."""
        return self._pool.submit(work, *args, **named).result()

    def begin(self, work: Callable[..., _Found], *args: Any, **named: Any) -> Callable[[], _Found]:
        return self._pool.submit(work, *args, **named).result

    def _enter(self) -> None:
        """A namespace belongs to a thread."""
        with open(f"/run/netns/{self.switch}") as file:
            assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEW_NETWORK) == 0

    @staticmethod
    def _ip(words: str) -> None:
        subprocess.run(["ip", *words.split()], check=True)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    plain = {"command": sys.executable, "args": [str(UPSTREAM), json.dumps({"log": str(tmp_path / "received")})]}
    programs: list[Program] = []
    with Network() as network:
        try:
            store: list[str | Path] = [
                "--port",
                "6379",
                "--bind",
                STORE,
                "--protected-mode",
                "no",
                "--save",
                "",
                "--dir",
                tmp_path,
            ]
            programs.append(
                Program(["ip", "netns", "exec", network.switch, str(REDIS), *store], tmp_path / "redis.log")
            )
            for number, address in enumerate(HOSTS):
                config = tmp_path / f"pactgate{number}.json"
                state = {"url": f"redis://{STORE}:6379/0", "key": KEY, "hop": {"host": address}}
                listen = {"host": address, "allowedHosts": [f"{address}:7411"]}
                settings = {
                    "mcpServers": {"plain": plain},
                    "state": state,
                    "listen": listen,
                    "auth": {"anonymous": True},
                }
                config.write_text(json.dumps(settings))
                inside = ["ip", "netns", "exec", network.host(number)]
                programs.append(
                    Program([*inside, *GATEWAY, "serve", "--config", str(config)], tmp_path / f"gateway{number}.log")
                )
            for address, program in zip(HOSTS, programs[1:], strict=True):
                program.wait_until(lambda address=address: network.outside(knows, address) == 3, "all know each other")  # type: ignore[misc]
            yield network
        finally:
            for program in programs:
                program.stop()


def at(address: str) -> str:
    return f"http://{address}:7411"


def knows(address: str) -> int:
    """How many replicas this one knows of, itself included."""
    try:
        return int(health_at(at(address))["state"]["replicas"])
    except OSError:
        return 0


def test_a_machine_that_is_cut_off_takes_its_session_with_it_and_joins_again(network: Network, tmp_path: Path) -> None:
    session = network.outside(initialize, at(HOSTS[0]))
    for address in HOSTS:
        assert network.outside(call, at(address), session, "plain__echo", text="x")[0] == 200
    waiting = network.begin(call, at(HOSTS[1]), session, "plain__slow", ms=60_000, nonce="only-once")
    received = tmp_path / "received"
    eventually_blocking(lambda: "only-once" in received.read_text())
    network.plug(0, "down")
    begun = time.monotonic()
    _, body = waiting()
    assert time.monotonic() - begun < 15
    assert body["error"]["data"]["failure_mode"] == "replica_lost"
    assert body["error"]["data"]["verdict"] == "may_have_run"
    eventually_blocking(lambda: network.outside(knows, HOSTS[2]) == 2, within_s=40)
    assert network.outside(call, at(HOSTS[2]), session, "plain__echo", text="x")[0] == 404
    again = network.outside(initialize, at(HOSTS[1]))
    assert network.outside(call, at(HOSTS[2]), again, "plain__echo", text="x")[0] == 200
    network.plug(0, "up")
    eventually_blocking(lambda: all(network.outside(knows, address) == 3 for address in HOSTS), within_s=40)
    assert network.outside(call, at(HOSTS[0]), again, "plain__echo", text="x")[0] == 200
    assert received.read_text().count("only-once") == 1
