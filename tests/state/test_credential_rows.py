"""The rows in a file: one writer at a time, locks for each server and principal, and whose rows are removed."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pactgate.state.credential_rows import CredentialRow, FileRows, RowsUnusableError

ROW = CredentialRow("grant", "linear", "https://a.example", "key", b"sealed")

WRITER = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("begin immediate")
except sqlite3.OperationalError as problem:
    print(problem)
"""


@pytest.fixture
def rows(tmp_path: Path) -> FileRows:
    return FileRows(str(tmp_path / "credentials"))


def named(principal: str) -> CredentialRow:
    return CredentialRow("grant", "linear", f"https://a.example {principal}", "key", b"sealed")


def as_it_is(row: CredentialRow) -> CredentialRow:
    return row


def test_a_change_is_another_state_and_looking_is_none(rows: FileRows) -> None:
    before = rows.state()
    assert not rows.exists
    assert rows.put(ROW, 0, as_it_is) == 1
    changed = rows.state()
    assert before != changed == rows.state()
    assert rows.get("grant", "linear", "https://a.example") is not None
    assert rows.key_ids() == {"key"}
    assert rows.state() == changed


def test_another_process_does_not_write_while_one_does_that_reads_in_another_thread(rows: FileRows) -> None:
    seen = []

    def seal(row: CredentialRow) -> CredentialRow:
        assert rows.get("grant", "linear", "https://a.example") is None
        done = subprocess.run([sys.executable, "-c", WRITER, rows.path], capture_output=True, text=True, check=True)
        seen.append(done.stdout.strip())
        return row

    rows.put(ROW, 0, seal)
    assert seen == ["database is locked"]


def test_the_file_is_private_from_the_beginning_and_a_link_is_refused(rows: FileRows, tmp_path: Path) -> None:
    rows.put(ROW, 0, as_it_is)
    assert stat.S_IMODE((tmp_path / "credentials").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "credentials")
    with pytest.raises(RowsUnusableError):
        FileRows(str(tmp_path / "link")).get("grant", "linear", "https://a.example")
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_the_rows_of_one_principal_are_removed_alone(rows: FileRows) -> None:
    for row in (ROW, named("alice"), named("bob")):
        rows.put(row, None, as_it_is)
    assert rows.remove("linear", "alice")
    assert not rows.remove("linear", "alice")
    assert [row.principal for row in rows.of_kind("grant")] == ["", "bob"]
    assert rows.remove("linear", "")
    assert rows.of_kind("grant") == []


async def test_two_do_not_hold_the_same_credentials(rows: FileRows, tmp_path: Path) -> None:
    async with rows.locked("linear", ""), rows.locked("linear", "alice"), rows.locked("other", ""):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), rows.locked("linear", "alice"):
                raise AssertionError("held twice")
    async with asyncio.timeout(1), rows.locked("linear", "alice"):
        for number in range(100):
            if number:
                async with rows.locked("bounded", str(number)):
                    pass
    locks = [file for file in tmp_path.iterdir() if file.name.startswith("credentials.bounded")]  # noqa: ASYNC240 - a test
    assert len(locks) <= 32


async def test_a_lock_that_can_not_be_made_is_said() -> None:
    with pytest.raises(RowsUnusableError, match="its lock"):
        async with FileRows("/nowhere/credentials").locked("linear", ""):
            raise AssertionError("nothing is locked")
