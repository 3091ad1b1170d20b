"""The image of deploy/Containerfile: built, and run as its own user in a root file system that nobody can write to.

Its base image is in a registry only; a Debian with Python stands for it here. What runs is in a network and file system of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import ROOT, TOOLS

BASE = TOOLS / "image" / "root"
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        os.geteuid() != 0 or not BASE.exists() or shutil.which("buildah") is None,
        reason="NOT RUN: root, buildah and .tools/image are needed: run `make interop` and read what it says",
    ),
]

_TOOL = '''
from pactgate import tool

@tool(category="query", idempotent=True, effects=[])
def hello() -> str:
    """Says hello."""
    return "hello"
'''
_INSIDE = """
set -e
ip link set lo up
mount --bind {root} {root}
mount -t tmpfs -o mode=755 none {root}/etc/pactgate
cp {config}/* {root}/etc/pactgate/
mount -o remount,ro,bind {root}
mount -t tmpfs -o mode=1777 none {root}/tmp
mount -t proc proc {root}/proc
mount --rbind /dev {root}/dev
exec chroot --userspec={user} {root} /usr/bin/env -i {environ} sh -c {script}
"""


class Image:
    """A built image: its file system, and what it says of itself."""

    def __init__(self, root: Path, config: dict[str, Any], folder: Path) -> None:
        self._root = root
        self.config = config
        self._folder = folder / "config"
        self._folder.mkdir()
        (self._folder / "hello.py").write_text(_TOOL)
        tokens = {"clients": {"token": "${PACTGATE_TOKEN}"}}
        settings = {"mcpServers": {"hello": {"tools": "hello.py"}}, "auth": {"tokens": tokens}}
        (self._folder / "pactgate.json").write_text(json.dumps(settings))
        (root / "etc" / "pactgate").mkdir()  # as the engine does for a mount

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the shell as the user of the image, with its variables."""
        inside = _INSIDE.format(
            root=self._root,
            config=self._folder,
            user=self.config["User"],
            environ=shlex.join([*self.config["Env"], f"PACTGATE_TOKEN={secrets.token_hex()}"]),
            script=shlex.quote(f"cd {self.config['WorkingDir']}; {script}"),
        )
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", inside]
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image")
    buildah = ["buildah", "--root", str(folder / "storage"), "--runroot", str(folder / "run")]

    def run(*words: str | Path) -> str:
        done = subprocess.run([*buildah, *map(str, words)], capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    mounts = [f"--volume={path}:{path}:ro" for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
    try:
        base = run("from", "scratch")
        run("copy", base, BASE, "/")
        run("commit", base, "localhost/python:3.13-slim-bookworm")
        words = ["--isolation=chroot", "--pull-never", "--format=docker", *mounts, "--target=slim", "--tag=pactgate"]
        run("build", *words, f"--file={ROOT / 'deploy' / 'Containerfile'}", ROOT)
        container = run("from", "--pull-never", "localhost/pactgate")
        config = json.loads(run("inspect", "--type=image", "localhost/pactgate"))["Docker"]["config"]
        yield Image(Path(run("mount", container)), config, folder)
    finally:
        run("umount", "--all")
        run("rm", "--all")
        run("rmi", "--all", "--force")


def test_doctor_finds_nothing_wrong_where_nothing_can_be_written(image: Image) -> None:
    done = image.run("id -u; pactgate doctor --config /etc/pactgate/pactgate.json; echo $?; touch /x /opt/x $HOME/x")
    assert done.stdout.startswith("65532\n"), done.stderr
    assert "Everything works." in done.stdout, done.stdout
    assert done.stdout.endswith("\n0\n"), done.stdout
    refused = [line.split("'")[1] for line in done.stderr.splitlines() if "Read-only file system" in line]
    assert refused == ["/x", "/opt/x"]


def test_the_image_serves_as_it_is_started_and_its_health_check_sees_it(image: Image) -> None:
    serve = shlex.join([*image.config["Entrypoint"], *image.config["Cmd"]])
    kind, *check = image.config["Healthcheck"]["Test"]
    assert kind == "CMD"
    wait = f"for n in $(seq 100); do {shlex.join(check)} 2>/dev/null && echo healthy && break; sleep 0.2; done"
    done = image.run(f"{serve} & {wait}; kill -TERM $!; wait $!; echo ended $?")
    assert "healthy" in done.stdout, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("ended 0"), done.stdout + done.stderr


def test_the_image_has_nothing_that_only_building_needs(image: Image) -> None:
    done = image.run("ls /opt/pactgate/bin /opt/pactgate/lib/python3*/site-packages")
    assert "pactgate" in done.stdout.split()
    assert not {"pip", "hatchling", "editables"}.intersection(done.stdout.split())
