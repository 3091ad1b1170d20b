"""The folder of one run: private, gone with the run, and of a killed one gone with the next."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

from pactgate.cli.run_folder import run_folder
from tests.cli.program import Served

HOLDER = """
import sys
from pathlib import Path
from pactgate.cli.run_folder import run_folder
with run_folder(Path(sys.argv[1])) as folder:
    (folder / "left").write_text("x")
    print(folder, flush=True)
    sys.stdin.readline()
"""


def test_a_folder_is_this_users_alone_and_gone_with_its_run(tmp_path: Path) -> None:
    with run_folder(tmp_path / "own") as folder:
        (folder / "inside").mkdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list((tmp_path / "own").iterdir()) == []


def test_what_a_killed_process_has_left_goes_with_the_next_run_and_what_a_live_one_uses_stays(tmp_path: Path) -> None:
    parent = tmp_path / "own"
    words = [sys.executable, "-c", HOLDER, str(parent)]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        left, used = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "left").exists()
        with run_folder(parent):
            assert not left.exists()
            assert (used / "left").exists()
        alive.communicate("\n")
    assert list(parent.iterdir()) == []


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with run_folder(shared) as folder:
        assert folder.parent != shared
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_a_demo_that_was_killed_leaves_nothing_after_the_next_one(tmp_path: Path) -> None:
    with Served(tmp_path, TMPDIR=str(tmp_path)) as served:
        assert served.url
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
    left = set(tmp_path.rglob("run-*"))
    assert len(left) == 2, "the captures, and the link of the console"
    with Served(tmp_path, TMPDIR=str(tmp_path)) as served:
        assert served.url
        assert not left & set(tmp_path.rglob("run-*"))
    assert set(tmp_path.rglob("run-*")) == set()
