"""The cgroups of children: made where the gateway may, ended as one, and no obstacle where there are none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pactgate.upstreams.process import cgroup
from pactgate.upstreams.process.cgroup import ChildCgroups, own_cgroup
from tests.support.eventually import eventually_blocking

needs_cgroup = pytest.mark.skipif(own_cgroup() is None, reason="NOT PROVED HERE: needs a cgroup this process may use")
NAME = f"pactgate-test-{os.getpid()}"


@needs_cgroup
def test_everything_in_the_cgroup_of_a_child_ends_at_once_and_the_cgroup_is_removed() -> None:
    parent = own_cgroup()
    cgroups = ChildCgroups(NAME, parent=parent)
    script = "read -r go; env -i setsid sleep 600 & sleep 600"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, start_new_session=True) as child:
        cgroups.add(child.pid)
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
        cgroups.kill(child.pid)
        assert child.wait(5) == -9

    def is_removed() -> bool:
        cgroups.sweep()
        return not os.path.exists(os.path.join(str(cgroups.folder), str(child.pid)))

    eventually_blocking(is_removed)
    cgroups.close()
    assert not os.path.exists(os.path.join(str(parent), NAME))


@needs_cgroup
def test_what_a_child_started_before_it_was_moved_is_moved_with_it() -> None:
    cgroups = ChildCgroups(NAME, parent=own_cgroup())
    script = "sleep 600 & (sleep 600 & exec sleep 600) & wait"
    with (
        subprocess.Popen(["sh", "-c", script], start_new_session=True) as child,
        subprocess.Popen(["sleep", "600"], start_new_session=True) as orphan,
    ):
        eventually_blocking(lambda: len(cgroup._descendants_of(child.pid)) == 3)
        cgroups.add(child.pid, orphans=lambda: [orphan.pid])
        assert len(cgroups.members(child.pid) or ()) == 5
        cgroups.kill(child.pid)
        assert (child.wait(5), orphan.wait(5)) == (-9, -9)
    eventually_blocking(lambda: cgroups.members(child.pid) == [])
    cgroups.close()


def test_without_a_cgroup_every_step_is_without_effect() -> None:
    cgroups = ChildCgroups(NAME, parent=None)
    cgroups.add(1)
    cgroups.kill(1)
    cgroups.sweep()
    cgroups.close()
    assert cgroups.folder is None


def test_a_folder_that_is_no_cgroup_is_left_as_it_was(tmp_path: Path) -> None:
    cgroups = ChildCgroups(NAME, parent=str(tmp_path))
    assert cgroups.folder is None
    assert list(tmp_path.iterdir()) == []
    assert ChildCgroups(NAME, parent="/no/such/folder").folder is None


def test_a_cgroup_that_nobody_delegated_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not cgroup._is_delegated(str(tmp_path))
    monkeypatch.setattr(os, "getxattr", lambda _folder, name: b"1" if name == "user.delegate" else b"0")
    assert cgroup._is_delegated(str(tmp_path))
