"""The record of a server can be read while it is written."""

from __future__ import annotations

from pathlib import Path

from pactgate.conformance.gateway.server_log import ScriptedLogs, ServerLog


def test_messages_are_read_as_they_come_each_once_and_half_a_line_later(tmp_path: Path) -> None:
    log, logs = ServerLog("lh", tmp_path / "record.lh"), ScriptedLogs(tmp_path)
    log.add(is_sent=False, data="\udcff", label="a", exchange="1", headers=(("x", "y"),))
    assert [(frame.who, frame.data, frame.headers) for frame in logs.refresh()] == [("lh", "\udcff", (("x", "y"),))]
    file = next(tmp_path.iterdir())
    whole = file.read_bytes()
    with file.open("ab") as half:
        half.write(whole[:10])
    assert len(logs.refresh()) == 1
    with file.open("ab") as rest:
        rest.write(whole[10:])
    assert len(logs.refresh()) == 2
    assert logs.about({"b"}) == []
    log.close()


def test_of_a_flood_only_the_beginning_is_kept(tmp_path: Path) -> None:
    log, logs = ServerLog("lh", tmp_path / "record.lh"), ScriptedLogs(tmp_path)
    for data in (*["noise"] * 1000, "answer"):
        log.add(is_sent=True, data=data, label="a", exchange="1")
    assert [frame.data for frame in logs.refresh()] == [*["noise"] * 10, "answer"]
    log.close()
