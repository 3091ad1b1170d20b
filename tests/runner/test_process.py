"""The life of a runner: loaded, loaded again, refused, ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.runner.driving import WAIT_S, Driven, write_tools

GOOD = '@tool(**query)\ndef one() -> int:\n    "One."\n    return 1\n'
BETTER = GOOD + '@tool(**query)\ndef two() -> int:\n    "Two."\n    return 2\n'
MARKED = '@tool(category="x", idempotent=2)'
BAD = GOOD + MARKED + "\ndef three():\n    pass\n"
REPORT = "notifications/dev.pactgate/report"


def names(driven: Driven) -> list[str]:
    return [tool["name"] for tool in driven.ask("tools/list")["result"]["tools"]]


def test_a_changed_file_is_loaded_again_and_the_client_is_told(tmp_path: Path) -> None:
    with Driven(write_tools(tmp_path, GOOD), "--reports") as driven:
        assert names(driven) == ["one"]
        write_tools(tmp_path, BETTER)
        driven.hear("notifications/tools/list_changed")
        assert names(driven) == ["one", "two"]
        assert driven.hear(REPORT)["params"] == {"what": "reloaded", "text": "2 tools"}


def test_a_new_version_with_problems_changes_nothing_but_what_is_said(tmp_path: Path) -> None:
    with Driven(write_tools(tmp_path, GOOD), "--reports") as driven:
        assert names(driven) == ["one"]
        write_tools(tmp_path, BAD)
        said = driven.hear(REPORT)["params"]
        assert said["what"] == "not_reloaded"
        assert "three" in said["text"]
        assert driven.call("one")["structuredContent"] == {"result": 1}
        write_tools(tmp_path, BETTER)
        driven.hear("notifications/tools/list_changed")
        assert names(driven) == ["one", "two"]


def test_a_file_that_is_bad_from_the_start_says_so_in_its_list_until_it_is_good(tmp_path: Path) -> None:
    path = write_tools(tmp_path, BAD)
    with Driven(path) as driven:
        refused = driven.ask("tools/list")["error"]["message"]
        line = path.read_text().splitlines().index(MARKED) + 1
        assert f"{path}:{line}: three: " in refused
        assert "category" in refused
        write_tools(tmp_path, GOOD)
        driven.hear("notifications/tools/list_changed")
        assert names(driven) == ["one"]
    assert "idempotent" in driven.stderr


def test_a_module_beside_the_file_is_loaded_again_with_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 1\n")
    body = 'import beside\n@tool(**query)\ndef number() -> int:\n    "The number."\n    return beside.NUMBER\n'
    with Driven(write_tools(tmp_path, body)) as driven:
        assert driven.call("number")["structuredContent"] == {"result": 1}
        (tmp_path / "beside.py").write_text("NUMBER = 22\n")
        driven.hear("notifications/tools/list_changed")
        assert driven.call("number")["structuredContent"] == {"result": 22}


def test_it_ends_with_its_client_even_where_a_thread_does_not(tmp_path: Path) -> None:
    body = (
        "import time\n@tool(**query)\ndef hang(call: Call) -> None:\n"
        '    "Never ends."\n    call.progress(1)\n    time.sleep(60)\n'
    )
    with Driven(write_tools(tmp_path, body)) as driven:
        driven.begin("hang")
        driven.hear("notifications/progress")
    assert driven.code == 4


def test_a_file_whose_code_does_not_end_ends_with_its_client(tmp_path: Path) -> None:
    with Driven(write_tools(tmp_path, "import time\ntime.sleep(60)\n")) as driven:
        driven.ask("ping")
    assert driven.code == 4


def test_check_prints_what_a_file_offers_or_all_that_is_wrong_with_it(tmp_path: Path) -> None:
    def check(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pactgate.runner", "--check", str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

    good = check(write_tools(tmp_path, BETTER))
    assert [tool["name"] for tool in json.loads(good.stdout)] == ["one", "two"]
    bad = check(write_tools(tmp_path, BAD))
    assert (bad.returncode, bad.stdout) == (1, "")
    assert len(bad.stderr.splitlines()) >= 3
    assert "There is no such file." in check(tmp_path / "absent.py").stderr


def test_a_file_that_asks_for_other_packages_is_left_to_a_new_interpreter(tmp_path: Path) -> None:
    block = '# /// script\n# dependencies = ["{}"]\n# ///\n'
    path = write_tools(tmp_path, GOOD)
    text = path.read_text()
    path.write_text(block.format("a") + text)
    with Driven(path) as driven:
        assert names(driven) == ["one"]
        path.write_text(block.format("a") + text + BETTER.removeprefix(GOOD))
        driven.hear("notifications/tools/list_changed")
        path.write_text(block.format("b") + text)
        assert driven.process.wait(WAIT_S) == 0
