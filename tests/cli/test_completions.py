"""The shell completes names that exist: of tools and servers of the running gateway, of settings, of clients."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, Served, demo, environment, write_config


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gateway")
    write_config(folder, {"almanac": demo("almanac"), "off": {"command": "nothing", "enabled": False}})
    with Served(folder) as served:
        served.wait_for("ok +almanac")
        yield served


def completed(folder: Path, words: str) -> set[str]:
    """What bash is told, with `words` on the line; the last one is being written."""
    at = str(len(words.split(" ")) - 1)
    asked = {"_PACTGATE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": at}
    done = subprocess.run(
        PROGRAM, cwd=folder, env=environment(folder, **asked), capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return {line.partition(",")[2] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        ("pactgate call almanac__d", {"almanac__date_facts", "almanac__days_between"}),
        ("pactgate tools --server ", {"almanac", "off"}),
        ("pactgate read pact", {"pactgate://status"}),
        ("pactgate disable o", {"off"}),
        ("pactgate config get limits.maxA", {"limits.maxArraySize"}),
        ("pactgate config set rateLimits.read.r", {"rateLimits.read.rpm"}),
        ("pactgate connect vs", {"vscode", "vscode-insiders"}),
    ],
)
def test_names_are_completed(gateway: Served, words: str, suggested: set[str]) -> None:
    assert completed(gateway.folder, words) == suggested


def test_without_a_gateway_servers_come_from_the_file_and_nothing_fails(tmp_path: Path) -> None:
    write_config(tmp_path, {"files": demo("almanac")})
    assert completed(tmp_path, "pactgate remove ") == {"files"}
    assert completed(tmp_path, "pactgate call al") == set()
    (tmp_path / "pactgate.json").write_text("{")
    assert completed(tmp_path, "pactgate remove ") == set()
