"""A test run leaves no process behind, living or dead, wherever it runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.test_architecture import ROOT

ORPHAN = (
    "import os, time\n"
    "told, telling = os.pipe()\n"
    "def orphan(seconds):\n"
    "    if os.fork() == 0:\n"
    "        if os.fork() == 0:\n"
    "            os.write(telling, b'%d\\n' % os.getpid())\n"
    "            os.setsid()\n"
    "            time.sleep(seconds)\n"
    "        os._exit(0)\n"
    "    os.wait()\n"
    "    return int(os.read(told, 20))\n"
)


def adopting(code: str) -> subprocess.CompletedProcess[str]:
    wrapper = (
        f"import sys; sys.path.append({str(ROOT)!r})\nfrom scripts import adopt_orphans\nadopt_orphans.GRACE_S = 0.2\n"
    )
    words = [sys.executable, "-c", f"{wrapper}sys.exit(adopt_orphans.main(sys.argv[1:]))"]
    command = [*words, sys.executable, "-I", "-S", "-c", f"{ORPHAN}{code}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_an_orphan_that_ends_is_reaped_while_the_command_runs() -> None:
    code = "stat = f'/proc/{orphan(0.2)}/stat'\nprint(open(stat).read().split()[3], os.getppid())\n"
    done = adopting(f"{code}while os.path.exists(stat): pass\nraise SystemExit(3)")
    parent, ours = done.stdout.split()
    assert parent == ours
    assert (done.returncode, done.stderr) == (3, "")


def test_what_still_runs_when_the_command_has_ended_is_named_and_ended() -> None:
    done = adopting("print(orphan(600))")
    assert done.returncode == 0
    assert f"left behind, and ended: {int(done.stdout)} " in done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_a_command_that_a_signal_ends_exits_as_in_a_shell() -> None:
    assert adopting("os.kill(os.getpid(), 9)").returncode == 128 + 9
