"""The Unix socket: the system says who the client is, and nobody can put another file in its place."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.auth import Guard
from pactgate.inbound.unix_socket import SocketFile, local_user, peer_user
from tests.support.facing import Served, credentials, modern, serving
from tests.support.raw_http import WAIT_S, get

TOKENS = {"token-of-ann-0123456789": ("ann", frozenset[str]())}
OWN = os.geteuid()


@asynccontextmanager
async def local(path: Path, mode: str = "0600") -> AsyncIterator[Served]:
    guard = Guard(host="127.0.0.1", credentials=credentials(TOKENS), users=partial(local_user, mode))
    async with serving(guard=guard) as served:
        await served.server.listen_locally(str(path), mode)
        yield served


async def ask(path: Path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(data.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        return await asyncio.wait_for(reader.read(), WAIT_S)
    finally:
        writer.close()


async def test_the_user_who_started_the_gateway_needs_no_token_and_may_manage_it(tmp_path: Path) -> None:
    async with local(tmp_path / "s") as served:
        assert (await served.ask(modern("tools/call", name="echo"))).status == 401, "over TCP"
        assert (await ask(tmp_path / "s", modern("tools/call", name="echo"))).startswith(b"HTTP/1.1 200")
        (caller,) = served.kernel.callers
        assert caller.principal == Principal(
            f"uid:{OWN}", frozenset({"admin"}), PrincipalKind.SOCKET, issuer="socket", subject=str(OWN)
        )


async def test_a_token_that_is_sent_counts_there_too(tmp_path: Path) -> None:
    async with local(tmp_path / "s") as served:
        (token,) = TOKENS
        good, wrong = (modern("tools/call", name="echo", authorization=f"Bearer {one}") for one in (token, token + "x"))
        assert (await ask(tmp_path / "s", good)).startswith(b"HTTP/1.1 200")
        assert (await ask(tmp_path / "s", wrong)).startswith(b"HTTP/1.1 401")
        assert [caller.principal.key for caller in served.kernel.callers] == ["ann"]


@pytest.mark.parametrize(("header", "status"), [("host", b"421"), ("origin", b"403")])
async def test_host_and_origin_are_checked_because_a_socket_can_be_forwarded(
    header: str, status: bytes, tmp_path: Path
) -> None:
    async with local(tmp_path / "s"):
        value = "evil.example" if header == "host" else "https://evil.example"
        assert (await ask(tmp_path / "s", get("/api/status", **{header: value}))).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(("mode", "status"), [("0600", "403"), ("0666", "200")])
@pytest.mark.skipif(OWN != 0, reason="only root can become another user")
async def test_another_user_is_refused_unless_the_mode_allows_it_and_is_never_an_administrator(
    mode: str, status: str, tmp_path: Path
) -> None:
    async with local(tmp_path / "s", mode) as served:
        os.chmod(tmp_path / "s", 0o666)  # so that the check of the user decides
        listing = get("/api/status", connection="close").decode()
        script = (
            "import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect('s');"
            f"s.sendall({listing!r}.encode()); print(s.recv(1000).decode())"
        )
        os.chmod(tmp_path, 0o755)
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, cwd=tmp_path, stdout=subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(program.communicate(), WAIT_S)
        assert out.decode().startswith(f"HTTP/1.1 {status}")
        stranger = local_user(mode, 65534)
        assert stranger is None or stranger.roles == frozenset()
        assert served.kernel.callers == []


def test_the_file_has_its_mode_from_the_start_and_is_removed(tmp_path: Path) -> None:
    for mode in ("0600", "0660", "0666"):
        file = SocketFile(str(tmp_path / "s"), mode)
        assert stat.S_IMODE((tmp_path / "s").lstat().st_mode) == int(mode, 8)
        file.socket.close()
        file.remove()
        assert not (tmp_path / "s").exists()


def test_what_a_killed_gateway_left_is_replaced_and_a_living_one_is_not(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    dead = SocketFile(path, "0600")
    dead.socket.close()
    lost = SocketFile(path, "0600")
    (tmp_path / "s").unlink()
    living = SocketFile(path, "0600")
    lost.remove()
    assert (tmp_path / "s").exists(), "the file is another one now"
    lost.socket.close()
    with pytest.raises(GatewayFailure, match="another gateway listens there") as refused:
        SocketFile(path, "0600")
    assert refused.value.kind is Kind.INVALID_CONFIG
    living.socket.close()


@pytest.mark.parametrize("what", ["file", "link", "dangling link", "link to a socket"])
def test_another_file_at_the_path_is_neither_followed_nor_removed(what: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    if what == "file":
        path.write_text("precious")
    elif what == "link to a socket":
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(tmp_path / "other"))
        path.symlink_to(tmp_path / "other")
    else:
        target = tmp_path / "target"
        if what == "link":
            target.write_text("precious")
        path.symlink_to(target)
    before = sorted(one.name for one in tmp_path.iterdir())
    with pytest.raises(GatewayFailure, match="another file"):
        SocketFile(str(path), "0600")
    assert sorted(one.name for one in tmp_path.iterdir()) == before


def test_a_folder_in_which_others_can_replace_the_file_is_refused(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    with pytest.raises(GatewayFailure, match="chmod go-w"):
        SocketFile(str(open_folder / "s"), "0600")
    open_folder.chmod(0o1777)  # as /tmp: only the owner of a file removes it
    file = SocketFile(str(open_folder / "s"), "0600")
    file.socket.close()
    file.remove()
    with pytest.raises(GatewayFailure, match="no such file"):
        SocketFile(str(tmp_path / "none" / "s"), "0600")


def test_the_user_of_a_peer_is_read_as_macos_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: `struct xucred`, a version, the user, the number of groups and sixteen of them."""

    class Connection:
        def getsockopt(self, level: int, option: int, size: int) -> bytes:
            assert (level, option) == (0, 1)
            return struct.pack("IIh2x16I", 0, 501, 1, *range(16))[:size]

    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert peer_user(cast("socket.socket", Connection())) == 501
