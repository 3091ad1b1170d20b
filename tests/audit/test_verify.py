"""Whatever is done to a log afterwards is found, with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pactgate.audit import chain
from pactgate.audit import verify as verify_module
from pactgate.audit.chain import MAX_LINE_BYTES, ChainLink
from pactgate.audit.verify import files_of, find_call, latest, verify, verify_log
from tests.audit.logs import call, made

Lines = list[bytes]


def changed(lines: Lines) -> Lines:
    return [*lines[:3], lines[3].replace(b"r2", b"rX"), *lines[4:]]


def changed_in_its_place(lines: Lines) -> Lines:
    """Somebody who knows how lines are made, but not how chains are."""
    head, _ = chain.read(lines[3])
    forged, _ = chain.append_record(b'{"kind":"call","requestId":"rX"}', ChainLink(head.seq - 1, head.prev))
    return [*lines[:3], forged, *lines[4:]]


def removed(lines: Lines) -> Lines:
    return [*lines[:3], *lines[4:]]


def first_removed(lines: Lines) -> Lines:
    return [*lines[:1], *lines[2:]]


def swapped(lines: Lines) -> Lines:
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


def repeated(lines: Lines) -> Lines:
    return [*lines[:4], lines[3], *lines[4:]]


def inserted(lines: Lines) -> Lines:
    return [*lines[:3], b'{"seq":4,"kind":"call"}\n', *lines[3:]]


def too_long(lines: Lines) -> Lines:
    return [*lines[:3], b"x" * (2 * MAX_LINE_BYTES) + b"\n", *lines[3:]]


def last_changed(lines: Lines) -> Lines:
    return [*lines[:-1], lines[-1].replace(b"r5", b"rX")]


@pytest.mark.parametrize(
    ("tamper", "line", "why"),
    [
        (changed, 4, "its content was changed"),
        (changed_in_its_place, 5, "does not follow"),
        (removed, 4, "1 record before it is missing"),
        (first_removed, 2, "1 record before it is missing"),
        (swapped, 4, "1 record before it is missing"),
        (repeated, 5, "out of order"),
        (inserted, 4, "does not end like a record"),
        (too_long, 4, "longer than any record"),
        (last_changed, 7, "its content was changed"),
    ],
)
def test_tampering_is_found_where_it_happened(
    tamper: Callable[[Lines], Lines], line: int, why: str, tmp_path: Path
) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 6)
    log.write_bytes(b"".join(tamper(log.read_bytes().splitlines(keepends=True))))
    verdict = verify([log])
    assert not verdict.is_valid
    first = verdict.breaks[0]
    assert (first.file, first.line) == ("audit.jsonl", line)
    assert why in first.why


def test_one_changed_line_is_one_break(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 6)
    log.write_bytes(b"".join(changed(log.read_bytes().splitlines(keepends=True))))
    assert verify([log]).break_count == 1


def test_a_file_missing_from_the_middle_is_found(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 40, max_bytes=2000)
    files = files_of(log)
    files[1].unlink()
    verdict = verify(files_of(log))
    assert (verdict.breaks[0].file, verdict.breaks[0].line) == (files[2].name, 1)
    assert "missing" in verdict.breaks[0].why


def test_a_file_set_aside_while_the_log_is_read_is_no_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 40, max_bytes=2000)
    whole = files_of(log)
    answers = iter([[whole[0], *whole[2:]]])
    monkeypatch.setattr(verify_module, "files_of", lambda path: next(answers, whole))
    assert len(whole) > 2
    assert verify_log(log).is_valid


@pytest.mark.parametrize("count", [1, 3, 6])
def test_missing_first_records_are_a_break(count: int, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 6)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[count:]))
    verdict = verify([log])
    assert f"the {count} records before it are missing" in verdict.breaks[0].why


@pytest.mark.parametrize("left", [[], [b""]])
def test_a_log_without_a_record_is_broken_because_each_start_writes_one(left: Lines, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(b"".join(left))
    assert "there is no record" in verify([log]).breaks[0].why


def test_a_first_file_that_the_gateway_did_not_delete_is_missed(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 40, max_bytes=2000)
    first = files_of(log)[0]
    first.unlink()
    verdict = verify(files_of(log))
    assert f"{first.name}, which it continues, is missing" in verdict.breaks[0].why
    assert verdict.break_count == 1


def test_one_more_file_removed_than_the_gateway_deleted_is_missed(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 60, max_bytes=2000, max_files=3)
    assert verify(files_of(log)).is_valid
    files_of(log)[0].unlink()
    assert not verify(files_of(log)).is_valid


def test_a_chain_with_a_key_cant_be_made_anew_without_it(tmp_path: Path) -> None:
    log, key = tmp_path / "audit.jsonl", b"0123456789abcdef"
    made(log, 6, key=key)
    assert verify_log(log, key).is_valid
    assert not verify_log(log).is_valid
    assert find_call([log], "r3", key) is not None
    last = chain.START
    forged = []
    for line in log.read_bytes().splitlines(keepends=True):
        facts = {name: fact for name, fact in chain.facts(line).items() if name not in ("seq", "prev", "hash")}
        made_anew, last = chain.append_record(msgspec.json.encode(facts), last)
        forged.append(made_anew)
    log.write_bytes(b"".join(forged))
    assert verify_log(log).is_valid
    assert not verify_log(log, key).is_valid


def test_a_log_with_a_key_is_continued_after_a_restart(tmp_path: Path) -> None:
    log, key = tmp_path / "audit.jsonl", b"0123456789abcdef"
    made(log, 3, key=key)
    made(log, 3, key=key, max_bytes=1000)
    assert verify_log(log, key).is_valid


def test_half_a_line_at_the_end_is_no_break(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 2)
    with log.open("ab") as file:
        file.write(b'{"seq":')
    verdict = verify([log])
    assert verdict.is_valid
    assert "half a line" in verdict.notes[0]


def test_the_head_changes_when_lines_are_cut_off_the_end(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 3)
    head = verify([log]).head
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    verdict = verify([log])
    assert verdict.is_valid
    assert verdict.head != head


def test_a_call_is_found_in_whichever_file_it_is_and_a_forged_one_is_not(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 40, max_bytes=2000)
    for number in (0, 20, 39):
        found = find_call(files_of(log), f"r{number}")
        assert found is not None
        assert found["requestId"] == f"r{number}"
    assert find_call(files_of(log), "r99") is None
    with log.open("ab") as file:
        file.write(call(99) + b"\n")
    assert find_call(files_of(log), "r99") is None


def test_the_last_records_come_from_as_many_files_as_it_takes(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made(log, 40, max_bytes=2000)
    ids = [record["requestId"] for record in latest(files_of(log), 30) if record["kind"] == "call"]
    assert ids[-1] == "r39"
    assert len(ids) > 20
    assert latest([], 5) == []
