"""The file of a log: whole lines, one writer, one chain across restarts, torn ends and rotations."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.audit import chain_file as file_module
from pactgate.audit.chain import MAX_LINE_BYTES
from pactgate.audit.chain_file import ChainFile, LogLockedError, last_line, rotated_files
from pactgate.audit.verify import files_of, verify
from tests.audit.logs import call, fill_the_disk, made, open_file, said


def test_a_restart_goes_on_where_the_chain_ended(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 2)
    made(log, 1)
    lines = said(log)
    assert [line["kind"] for line in lines] == ["opened", "call", "call", "opened", "call"]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert verify([log]).is_valid


def test_only_its_owner_may_read_a_log(tmp_path: Path) -> None:
    made(tmp_path / "audit.jsonl", 1)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(data=st.data())
def test_a_line_cut_at_any_byte_is_cut_off_at_the_next_start_which_says_so(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "audit.jsonl"
        made(log, 3)
        whole = log.read_bytes()
        end = data.draw(st.integers(0, len(whole)))
        log.write_bytes(whole[:end])
        kept = whole[:end].count(b"\n")
        torn_bytes = end - whole[:end].rfind(b"\n") - 1
        made(log, 1)
        lines = said(log)
        assert len(lines) == kept + 2
        assert lines[kept].get("repairedBytes", 0) == torn_bytes
        assert verify([log]).is_valid


def test_an_end_that_can_not_be_trusted_is_set_aside_untouched_and_a_new_chain_says_why(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 2)
    damaged = log.read_bytes()[:-10] + b"\x00" * 9 + b"\n"
    log.write_bytes(damaged)
    made(log, 1)
    (aside,) = rotated_files(log)
    assert aside.read_bytes() == damaged
    assert "can't be continued" in said(log)[0]["broken"]
    assert not verify(files_of(log)).is_valid


def test_a_log_has_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_module, "_LOCK_WAIT_S", 0.0)
    log = tmp_path / "audit.jsonl"
    first = open_file(log)
    with pytest.raises(LogLockedError):
        open_file(log)
    first.append([call(1)])
    first.close()
    open_file(log).close()
    assert verify([log]).is_valid


def test_a_full_file_is_set_aside_and_the_chain_runs_on(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 40, max_bytes=2000)
    files = files_of(log)
    assert len(files) > 3
    assert all(path.stat().st_size <= 2000 for path in files)
    assert said(files[1])[0]["after"] == files[0].name == "audit.000001.jsonl"
    verdict = verify(files)
    assert (verdict.is_valid, verdict.calls, verdict.notes) == (True, 40, ())


def test_the_oldest_files_beyond_what_is_kept_are_deleted_and_the_log_says_so(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 60, max_bytes=2000, max_files=2)
    aside = rotated_files(log)
    assert len(aside) == 2
    assert said(log)[0]["deleted"] < aside[0].name
    verdict = verify(files_of(log))
    assert verdict.is_valid
    assert "the oldest file kept" in verdict.notes[0]


def test_a_process_killed_between_setting_aside_and_beginning_anew_loses_nothing(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 3)
    log.rename(tmp_path / "audit.000001.jsonl")
    made(log, 1)
    verdict = verify(files_of(log))
    assert (verdict.is_valid, verdict.calls) == (True, 4)


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    file = open_file(log)
    before, last = log.read_bytes(), file.last
    fill_the_disk(log)
    with pytest.raises(OSError, match="No space left"):
        file.append([call(1)])
    assert (log.read_bytes(), file.last) == (before, last)
    file.reopen()
    file.append([call(1)])
    file.close()
    assert verify([log]).is_valid


def test_what_a_failed_write_left_behind_is_cut_off_when_the_file_is_taken_up_again(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    file = open_file(log)
    with log.open("ab") as torn:
        torn.write(b'{"seq":2,"prev')
    file.reopen()
    file.append([call(1)])
    file.close()
    assert [line["kind"] for line in said(log)] == ["opened", "call"]
    assert verify([log]).is_valid


def test_a_log_that_is_deleted_is_begun_again_with_its_chain(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    file = open_file(log)
    log.unlink()
    file._seen_until = 0.0
    with pytest.raises(FileNotFoundError):
        file.append([call(1)])
    file.reopen()
    file.append([call(1)])
    file.close()
    assert [(line["seq"], line["kind"]) for line in said(log)] == [(2, "continued"), (3, "call")]


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_only_a_regular_file_can_be_a_log(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    file = ChainFile(path, max_bytes=2**20, max_files=1, fsync=False)
    with pytest.raises(OSError):
        file.open()
    file.close()


def test_a_file_of_something_else_is_not_written_over(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(b"x" * (3 * MAX_LINE_BYTES))
    made(log, 1)
    (aside,) = rotated_files(log)
    assert aside.stat().st_size == 3 * MAX_LINE_BYTES
    assert last_line(aside) != b""


def test_records_can_be_forced_to_the_disk(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 3, fsync=True)
    assert json.loads(last_line(log))["requestId"] == "r2"
