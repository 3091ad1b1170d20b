"""Lists on disk are bounded and private to the user, and whatever is wrong with them costs a start and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.state import known_lists
from pactgate.state.known_lists import KnownLists


def store(folder: Path, config: str | None = "/etc/pactgate.json") -> KnownLists:
    return KnownLists({"XDG_STATE_HOME": str(folder)}, config)


def test_what_was_written_is_read_for_the_same_server_of_the_same_configuration_only(tmp_path: Path) -> None:
    store(tmp_path).write("crm", ("npx", "crm"), b"lists")
    assert store(tmp_path).read("crm", ("npx", "crm")) == b"lists"
    assert store(tmp_path).read("crm", ("npx", "other")) is None
    assert store(tmp_path).read("files", ("npx", "crm")) is None
    assert store(tmp_path, "/srv/pactgate.json").read("crm", ("npx", "crm")) is None
    folder = tmp_path / "pactgate" / "lists"
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_others_may_write_is_not_read(tmp_path: Path) -> None:
    store(tmp_path).write("crm", (), b"lists")
    folder = tmp_path / "pactgate" / "lists"
    (file,) = folder.iterdir()
    file.chmod(0o666)
    assert store(tmp_path).read("crm", ()) is None
    file.chmod(0o600)
    folder.chmod(0o777)
    assert store(tmp_path).read("crm", ()) is None
    store(tmp_path).write("crm", (), b"more")
    folder.chmod(0o700)
    assert store(tmp_path).read("crm", ()) == b"lists"


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_lists, "MAX_FILES", 3)
    monkeypatch.setattr(known_lists, "MAX_BYTES", 10)
    for number in range(5):
        store(tmp_path).write(f"s{number}", (), b"x")
    store(tmp_path).write("large", (), b"x" * 11)
    assert len(list((tmp_path / "pactgate" / "lists").iterdir())) == 3
    assert store(tmp_path).read("s4", ()) == b"x"
    assert store(tmp_path).read("large", ()) is None


def test_without_a_home_or_a_disk_nothing_is_kept(tmp_path: Path) -> None:
    for environ in ({}, {"XDG_STATE_HOME": "relative"}, {"XDG_STATE_HOME": "/proc/1"}):
        kept = KnownLists(environ, None)
        kept.write("crm", (), b"lists")
        assert kept.read("crm", ()) is None


def test_lists_are_kept_of_what_takes_time_to_start_but_never_of_our_own_tools(tmp_path: Path) -> None:
    kept, in_memory = store(tmp_path), store(tmp_path, None)
    program, remote = ServerConfig(id="a", command="npx"), ServerConfig(id="b", url="https://b.example/mcp")
    assert [kept.are_kept(one) for one in (program, remote)] == [True, True]
    assert [in_memory.are_kept(one) for one in (program, remote)] == [False, False]
    assert in_memory.are_kept(ServerConfig(id="a", command="npx", start="lazy"))
    assert not kept.are_kept(ServerConfig(id="c", tools="/srv/c.py"))


def test_lists_for_a_client_that_offers_more_are_kept_apart(tmp_path: Path) -> None:
    kept = KnownLists({"XDG_STATE_HOME": str(tmp_path)}, str(tmp_path / "pactgate.json"))
    kept.offered = '{"sampling":{}}'
    kept.write("files", ("files",), b"seventeen")
    kept.offered = ""
    assert kept.read("files", ("files",)) is None
    kept.offered = '{"sampling":{}}'
    assert kept.read("files", ("files",)) == b"seventeen"
