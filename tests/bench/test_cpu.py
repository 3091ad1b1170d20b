from __future__ import annotations

import os
import subprocess
import sys

from bench.cpu import cpu_us, descriptors, pss_bytes, rss_bytes, tree

BUSY_GRANDCHILD = """
import subprocess, sys, time
code = "import time\\nuntil = time.process_time() + 0.2\\nwhile time.process_time() < until: pass\\nprint(1, flush=True); input()"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.pid, child.stdout.readline(), flush=True)
sys.stdin.read()
child.communicate(b"\\n")
"""


def test_time_and_memory_of_descendants_are_charged_to_the_root() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY_GRANDCHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as root:
        assert root.stdout is not None
        grandchild = int(root.stdout.readline().split()[0])
        assert tree(root.pid) == [root.pid, grandchild]
        assert cpu_us(root.pid) >= cpu_us(grandchild) >= 200_000
        assert rss_bytes(root.pid) > rss_bytes(grandchild) > 0
        assert 0 < pss_bytes(root.pid) <= rss_bytes(root.pid)
        assert descriptors(root.pid) > descriptors(grandchild) >= 3
        root.communicate(b"")


def test_a_process_that_is_gone_costs_nothing() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert cpu_us(done.pid) == rss_bytes(done.pid) == descriptors(done.pid) == 0
    assert tree(os.getpid())[0] == os.getpid()
