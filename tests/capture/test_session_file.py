"""A capture on disk: whole at any time."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from pactgate.capture.session_file import SessionFile, adopt_leftovers


def test_the_file_is_a_whole_capture_from_the_first_moment(tmp_path: Path) -> None:
    file = SessionFile(tmp_path / "a.json", {"server_label": "x"})
    assert json.loads(file.part.read_text()) == {"server_label": "x", "exchanges": []}
    file.append([b'{"n":1}'])
    file.sync([b'{"n":2}', b'{"n":3}'], {"closed": False})
    assert json.loads(file.part.read_text()) == {
        "server_label": "x",
        "exchanges": [{"n": 1}, {"n": 2}, {"n": 3}],
        "closed": False,
    }
    file.append([b'{"n":2}'])
    file.sync([], {"closed": False})
    assert [each["n"] for each in json.loads(file.part.read_text())["exchanges"]] == [1, 2]
    file.abandon()


def test_a_finished_capture_has_its_final_name_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = SessionFile(tmp_path / "a.json", {"server_label": "x"})
    path = file.finish({"closed": True}, [b'{"n":1}'])
    assert json.loads(path.read_text())["exchanges"] == [{"n": 1}]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_crash_left_behind_is_adopted_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    crashed, busy = (SessionFile(tmp_path / name, {"server_label": name}) for name in ("a.json", "b.json"))
    crashed.abandon()
    assert adopt_leftovers(tmp_path) == [tmp_path / "a.json"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.json", "b.json.part"]
    busy.abandon()
