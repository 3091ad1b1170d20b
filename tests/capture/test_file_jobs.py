"""The file of a recording, as jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pactgate.capture.capture_files import CaptureFolder
from pactgate.capture.file_jobs import FinishedCapture, Sheet
from pactgate.capture.session_file import SessionFile


def test_a_file_is_whole_after_every_job_and_its_end_is_told(tmp_path: Path) -> None:
    endings: list[FinishedCapture] = []
    sheet = Sheet(CaptureFolder(tmp_path, 10), endings.append, print)
    sheet.begin("a", {"server_label": "a"})
    sheet.sync([b'{"seq":1}', b'{"seq":2}'], [b'{"seq":3}'], {"closed": False})
    (part,) = tmp_path.iterdir()
    assert [each["seq"] for each in json.loads(part.read_text())["exchanges"]] == [1, 2, 3]
    sheet.sync([], [], {"closed": False})
    assert [each["seq"] for each in json.loads(part.read_text())["exchanges"]] == [1, 2]
    sheet.finish([b'{"seq":3}'], {"closed": True}, 7)
    assert [(ending.exchange_count, ending.missing) for ending in endings] == [(3, 7)]
    capture = json.loads(endings[0].path.read_text())
    assert ([each["seq"] for each in capture["exchanges"]], capture["closed"]) == ([1, 2, 3], True)


class Refusing:
    def begin(self, label: str, head: dict[str, Any]) -> SessionFile:
        raise OSError(28, "No space left on device")

    def finished(self, path: Path) -> None:
        raise AssertionError

    def close(self) -> None:
        return


def test_an_error_of_the_disk_is_told_once_and_nothing_more_is_done() -> None:
    endings: list[FinishedCapture] = []
    troubles: list[str] = []
    sheet = Sheet(Refusing(), endings.append, troubles.append)
    sheet.begin("a", {})
    sheet.sync([b"{}"], [], {})
    sheet.finish([], {}, 0)
    assert sheet.has_failed
    assert (endings, troubles) == ([], ["No space left on device"])
