"""`pactgate add FILE.mcpb`: a good bundle is unpacked and added, and a hostile one leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pactgate.cli.bundles import read_bundle
from pactgate.cli.errors import CommandError
from pactgate.config.expand import expand
from tests.cli.program import run

MANIFEST: dict[str, Any] = {
    "manifest_version": "0.3",
    "name": "Local Files",
    "user_config": {
        "folders": {"type": "directory", "multiple": True, "required": True, "default": ["${HOME}/a", "${AWS_SECRET}"]},
        "key": {"type": "string", "sensitive": True, "required": True},
        "mode": {"type": "string", "required": True},
    },
    "server": {
        "type": "node",
        "mcp_config": {
            "command": "node",
            "args": [
                "${__dirname}/server/index.js",
                "${user_config.folders}",
                "--mode=${user_config.mode}",
                "${AWS_SECRET}",
            ],
            "env": {"API_KEY": "${user_config.key}"},
        },
    },
}
GOOD = {"manifest.json": json.dumps(MANIFEST), "server/index.js": "// hi"}


def bundle(folder: Path, files: dict[str, str] | None = None, *, mode: int = 0o100644, size: int | None = None) -> Path:
    path = folder / "files.mcpb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in {**GOOD, **(files or {})}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode if name not in GOOD else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, text if size is None or name in GOOD else "0" * size)
    return path


def unpacked(folder: Path) -> list[str]:
    found = (folder / ".local/share/pactgate/bundles").rglob("*")
    return sorted(path.name for path in found if path.is_file())


def test_a_bundle_is_unpacked_by_its_hash_and_added_after_a_yes(tmp_path: Path) -> None:
    path = bundle(tmp_path)
    words = ("add", path.name, "--user-config", "mode=fast")
    shown = run(tmp_path, *words, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "--mode=fast" in shown.stdout
    assert (run(tmp_path, *words).returncode, unpacked(tmp_path)) == (2, [])
    assert not (tmp_path / "pactgate.json").exists()
    done = run(tmp_path, *words, "--yes")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / ".local/share/pactgate/bundles" / hashlib.sha256(path.read_bytes()).hexdigest()
    entry = json.loads((tmp_path / "pactgate.json").read_text())["mcpServers"]["local-files"]
    args = [f"{folder}/server/index.js", "${HOME}/a", "$${AWS_SECRET}", "--mode=fast", "$${AWS_SECRET}"]
    assert entry == {"command": "node", "args": args, "cwd": str(folder), "env": {"API_KEY": "${KEY}"}}
    assert unpacked(tmp_path) == ["index.js", "manifest.json"]
    assert "needs settings: mode" in run(tmp_path, "add", path.name).stderr


@pytest.mark.parametrize(
    "word", ["$${user_config.a}", "${x${CRM_TOKEN}", "${CRM_TOKEN}", "$${CRM_TOKEN}", "\0{CRM_TOKEN}"]
)
def test_no_word_of_a_bundle_becomes_a_variable_of_the_gateway(tmp_path: Path, word: str) -> None:
    start = {"command": "node", "args": [word, "${user_config.a}"], "env": {"A": word}}
    manifest = {"user_config": {"a": {"default": ["{CRM_TOKEN}", word]}}, "server": {"mcp_config": start}}
    path = bundle(tmp_path, {"manifest.json": json.dumps(manifest)})
    _, entry, *_ = read_bundle(path, {})
    for text in (*entry["args"], entry["env"]["A"]):
        assert expand(text, {"CRM_TOKEN": "canary"}).taken == ()


def test_a_directory_of_the_zip_file_that_would_fill_the_memory_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "x.mcpb", "w") as packed:
        for number in range(500):
            packed.writestr(zipfile.ZipInfo(f"{number}{'x' * 60_000}/"), "")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(CommandError, match="more than 50000 files"):
        read_bundle(tmp_path / "x.mcpb", {})


@settings(max_examples=100)
@given(
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]),
    changes=st.lists(st.tuples(st.integers(min_value=0), st.binary(max_size=3)), min_size=1, max_size=4),
)
def test_a_damaged_bundle_is_refused_or_read(
    method: int, changes: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged", numbered=True) / "x.mcpb"
    with zipfile.ZipFile(path, "w", method) as packed:
        packed.writestr("manifest.json", json.dumps(MANIFEST))
    data = bytearray(path.read_bytes())
    for place, piece in changes:
        at = place % len(data)
        data[at : at + len(piece)] = piece
    path.write_bytes(data)
    with suppress(CommandError):
        read_bundle(path, {"mode": "fast"})


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:evil", "SERVER/index.js"])
def test_a_name_that_leads_out_of_the_folder_or_is_twice_there_is_refused(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, "add", bundle(tmp_path, {name: "x"}).name, "--user-config", "mode=x", "--yes")
    assert (done.returncode, "refused" in done.stderr, unpacked(tmp_path)) == (1, True, [])
    assert not (tmp_path / "pactgate.json").exists()
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_special_files_are_refused(tmp_path: Path, kind: int) -> None:
    path = bundle(tmp_path, {"link": "/etc/passwd"}, mode=kind | 0o777)
    done = run(tmp_path, "add", path.name, "--user-config", "mode=x", "--yes")
    assert (done.returncode, "link or a special file" in done.stderr, unpacked(tmp_path)) == (1, True, [])


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    done = run(
        tmp_path, "add", bundle(tmp_path, {"bomb": ""}, size=30_000_000).name, "--user-config", "mode=x", "--yes"
    )
    assert (done.returncode, "far more than is in it" in done.stderr, unpacked(tmp_path)) == (1, True, [])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"server": {"mcp_config": {"command": 3}}}'])
def test_a_bundle_without_a_manifest_that_can_be_used_is_refused(tmp_path: Path, text: str) -> None:
    done = run(tmp_path, "add", bundle(tmp_path, {"manifest.json": text}).name, "--yes")
    assert (done.returncode, unpacked(tmp_path)) == (1, [])


def test_a_file_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.mcpb").write_text("no zip")
    assert "can't be unpacked" in run(tmp_path, "add", "x.mcpb", "--yes").stderr
    assert run(tmp_path, "add", "missing.mcpb", "--yes").returncode == 1
