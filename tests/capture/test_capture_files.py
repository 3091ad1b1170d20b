"""Where captures go."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from pactgate.capture.capture_files import CaptureFolder, SessionFile, SingleCaptureFile, adopt_leftovers


def test_a_folder_keeps_the_newest_captures_and_touches_nothing_else(tmp_path: Path) -> None:
    other = tmp_path / "mine.json"
    other.write_text("{}")
    folder = CaptureFolder(tmp_path, max_files=2)
    for number in range(4):
        path = folder.begin(f"Servers/Ünit {number}", {}).finish({})
        folder.finished(path)
    kept = sorted(entry.name for entry in tmp_path.iterdir())
    assert len(kept) == 3
    assert "mine.json" in kept
    assert [name[-8:] for name in kept[:2]] == ["t-2.json", "t-3.json"]


def test_two_gateways_may_write_into_one_folder(tmp_path: Path) -> None:
    first, second = CaptureFolder(tmp_path, 10), CaptureFolder(tmp_path, 10)
    files = [store.begin("a", {}) for store in (first, second)]
    assert files[0].path != files[1].path
    for file in files:
        file.finish({})


def test_one_session_is_one_object_and_several_are_an_array_in_their_order(tmp_path: Path) -> None:
    for count in (1, 11):
        store = SingleCaptureFile(tmp_path / "session.json")
        files = [store.begin("x", {"server_label": str(number)}) for number in range(count)]
        for file in reversed(files):
            store.finished(file.finish({}))
        store.close()
        capture = json.loads((tmp_path / "session.json").read_text())
        labels = [each["server_label"] for each in (capture if count > 1 else [capture])]
        assert labels == [str(number) for number in range(count)]
        assert [entry.name for entry in tmp_path.iterdir()] == ["session.json"]


def test_the_file_that_was_there_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text("before")
    store = SingleCaptureFile(path)
    file = store.begin("x", {})
    assert path.read_text() == "before"
    store.finished(file.finish({}))
    store.close()
    assert path.read_text() != "before"


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
