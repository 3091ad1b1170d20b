"""The lock file is the same bytes everywhere, shows what is invisible, and is refused when somebody changed one half of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.definition_lock import LockedServer, LockFile, lock_path, lock_text, locked, read_lock
from pactgate.config.load import load
from pactgate.config.problems import ConfigurationError, UnreadableError

TOOL = b'{"name":"a","description":"hi\xf3\xa0\x81\x81","inputSchema":{}}'
SERVER = LockedServer(
    identity=("npx", "crm@1", "${TOKEN}"),
    name="crm",
    instructions=locked(b'"Be brief."'),
    tools={"b": locked(b'{"name":"b"}'), "a": locked(TOOL)},
    templates={"note://{id}": locked(b'{"uriTemplate":"note://{id}"}')},
)


def write(folder: Path, text: str | None = None) -> Path:
    file = folder / "pactgate.lock"
    file.write_text(lock_text(LockFile(servers={"crm": SERVER})) if text is None else text)
    return file


def test_the_file_is_sorted_ascii_with_a_line_for_each_definition(tmp_path: Path) -> None:
    file = write(tmp_path)
    text = file.read_text()
    assert text.isascii()
    assert "\\udb40\\udc41" in text
    lines = [line.strip() for line in text.splitlines() if '"digest"' in line]
    assert [line.partition(":")[0] for line in lines] == ['"instructions"', '"a"', '"b"', '"note']
    assert read_lock(file).servers["crm"].pins() == SERVER.pins()
    assert lock_text(read_lock(file)) == text
    assert lock_text(LockFile()) == '{\n  "version": 1,\n  "servers": {}\n}\n'


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-20],
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: text.replace("Be brief", "Be evil"),
        lambda text: text.replace('"name": "crm"', '"name": "crm", "more": 1'),
        lambda text: text.replace('"b": {"digest"', '"a": {"digest"'),
        lambda text: "[" * 100_000,
    ],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, change: Any) -> None:
    text = lock_text(LockFile(servers={"crm": SERVER}))
    assert change(text) != text
    with pytest.raises(UnreadableError):
        read_lock(write(tmp_path, change(text)))


def config_of(folder: Path, mode: str) -> Path:
    file = folder / "pactgate.json"
    crm = {"command": "npx", "args": ["crm@1", "${TOKEN}"]}
    file.write_text(json.dumps({"mcpServers": {"crm": crm}, "lock": {"mode": mode}}))
    return file


@pytest.mark.parametrize("text", [None, "{"])
def test_hold_and_refuse_do_not_start_without_their_lock_file(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path, text)
    for mode in ("hold", "refuse"):
        with pytest.raises(ConfigurationError) as caught:
            load(config_of(tmp_path, mode), environ={"TOKEN": "t"})
        (problem,) = caught.value.problems
        assert (problem.path, "`pactgate lock`" in problem.hint) == ("lock.mode", True)
    config = load(config_of(tmp_path, "report"), environ={"TOKEN": "t"})
    assert config.pins == {}
    assert any("lock file" in problem.message for problem in config.warnings)
    assert load(config_of(tmp_path, "off"), environ={"TOKEN": "t"}).pins is None


def test_the_identity_is_as_the_file_has_it_so_a_secret_stays_out_of_the_lock(tmp_path: Path) -> None:
    write(tmp_path)
    config = load(config_of(tmp_path, "hold"), environ={"TOKEN": "s3cret"})
    assert config.servers["crm"].identity == ("npx", "crm@1", "${TOKEN}")
    assert config.pins == {"crm": SERVER.pins()}
    assert config.watched_files == (str(lock_path(tmp_path / "pactgate.json")),)
