"""Counting real processes."""

from __future__ import annotations

import os
from pathlib import Path

CHILD_REAPER = "pactgate-child-reaper"


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def children_of(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def descendants_of(pid: int) -> list[int]:
    found: list[int] = []
    waiting = children_of(pid)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting += children_of(child)
    return found


def running_children() -> list[int]:
    """Descendants of this process, the child reaper left out."""
    return [pid for pid in descendants_of(os.getpid()) if CHILD_REAPER not in command_line(pid)]
