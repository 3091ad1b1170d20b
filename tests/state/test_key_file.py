"""The file of keys: it opens nothing, several processes change it at once, and nobody else may."""

from __future__ import annotations

import hmac
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pactgate.core.api_key import read_id
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state import key_file
from pactgate.state.key_file import (
    KeyFile,
    KeyRing,
    RevokedKey,
    add_key,
    digest_of,
    note_use,
    revoke_key,
    rotate_key,
)

NOW = 1_800_000_000.0
DAY_S = 86400.0


def empty() -> KeyRing:
    return KeyRing(pepper="0" * 64)


def added(ring: KeyRing, name: str = "ci", expires: float | None = None) -> tuple[KeyRing, str]:
    return add_key(ring, name, now=NOW, expires=expires, groups=("a",), roles=("admin",))


def make(file: KeyFile, name: str) -> str:
    texts = []

    def edit(ring: KeyRing) -> KeyRing:
        after, text = added(ring, name)
        texts.append(text)
        return after

    file.change(edit)
    return texts[0]


def test_the_file_has_a_keyed_hash_and_nothing_of_the_key_but_its_id(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path / "keys"))
    assert file.read() is None
    text = make(file, "ci")
    written = (tmp_path / "keys").read_text()
    ring = file.read()
    assert ring is not None
    (key,) = ring.keys
    assert key.id == read_id(text)
    assert key.digest == hmac.digest(bytes.fromhex(ring.pepper), text.encode(), "sha256").hex()
    assert not any(text[at : at + 10] in written for at in range(len(text) - 10))
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys", "keys.lock"]


_MAKE_TEN = """
import sys
from pactgate.state.key_file import KeyFile, add_key
for number in range(10):
    KeyFile(sys.argv[1]).change(
        lambda ring: add_key(ring, f"{sys.argv[2]}-{number}", now=0, expires=None, groups=(), roles=())[0]
    )
"""


def test_processes_that_change_it_at_once_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "keys")
    writers = [subprocess.Popen([sys.executable, "-c", _MAKE_TEN, path, name]) for name in ("a", "b", "c")]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    ring = KeyFile(path).read()
    assert ring is not None
    assert {key.name for key in ring.keys} == {f"{name}-{number}" for name in "abc" for number in range(10)}


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON", b'{"version":2,"pepper":"' + b"0" * 64 + b'"}', b'{"pepper":"x"}', b'{"pepper":1,"more":1}'],
)
def test_a_damaged_file_is_refused_and_not_written_over(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(GatewayFailure) as refused:
        make(KeyFile(str(path)), "ci")
    assert refused.value.kind is Kind.INVALID_CONFIG
    assert path.read_bytes() == content


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    file = KeyFile(str(tmp_path / "keys"))
    make(file, "ci")
    (tmp_path / "keys").chmod(0o620)
    with pytest.raises(GatewayFailure, match="chmod g-w"):
        file.read()


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    make(KeyFile(str(tmp_path / "there" / "keys")), "ci")
    os.symlink(tmp_path / "there" / "keys", tmp_path / "keys")
    make(KeyFile(str(tmp_path / "keys")), "ops")
    ring = KeyFile(str(tmp_path / "there" / "keys")).read()
    assert (tmp_path / "keys").is_symlink()
    assert ring is not None
    assert [key.name for key in ring.keys] == ["ci", "ops"]
    (tmp_path / "keys").unlink()
    file = KeyFile(str(tmp_path / "keys"))
    make(KeyFile(str(tmp_path / "new")), "other")
    os.symlink(tmp_path / "new", tmp_path / "keys")  # as Kubernetes replaces a mounted secret
    moved = file.read()
    assert moved is not None
    assert [key.name for key in moved.keys] == ["other"]


def test_while_rotating_a_name_has_two_keys_and_then_one() -> None:
    ring, first = added(empty(), expires=NOW + 90 * DAY_S)
    ring, second = rotate_key(ring, "ci", now=NOW + DAY_S, expires=None, overlap_s=3600)
    old, new = ring.keys
    assert (old.id, old.expires) == (read_id(first), NOW + DAY_S + 3600)
    assert (new.id, new.expires) == (read_id(second), NOW + 91 * DAY_S), "the new one lives as long as the old one"
    assert (new.groups, new.roles) == (old.groups, old.roles)
    ring, third = rotate_key(ring, "ci", now=NOW + DAY_S, expires=None, overlap_s=DAY_S)
    assert [key.id for key in ring.keys] == [read_id(second), read_id(third)], "never more than two"
    ring, last = rotate_key(ring, "ci", now=NOW + DAY_S, expires=None, overlap_s=0)
    assert [key.id for key in ring.keys] == [read_id(last)]
    assert digest_of(ring, last).hex() == ring.keys[0].digest


def test_a_name_has_one_key_until_it_is_rotated_or_gone() -> None:
    ring, text = added(empty(), expires=NOW + 10)
    with pytest.raises(GatewayFailure, match="rotate"):
        added(ring)
    again, _ = add_key(ring, "ci", now=NOW + 11, expires=None, groups=(), roles=())
    assert len(again.keys) == 1, "an expired one is replaced"
    with pytest.raises(GatewayFailure):
        rotate_key(ring, "ci", now=NOW + 11, expires=None, overlap_s=0)
    assert revoke_key(ring, "ci", now=NOW).keys == revoke_key(ring, str(read_id(text)), now=NOW).keys == ()
    with pytest.raises(GatewayFailure):
        revoke_key(ring, "nobody", now=NOW)


def test_a_key_that_ends_before_its_time_stays_listed_until_it_would_have_expired() -> None:
    end = int(NOW + 90 * DAY_S)
    ring, text = added(empty(), expires=end)
    first = str(read_id(text))
    assert revoke_key(ring, "ci", now=NOW).revoked == (RevokedKey(id=first, expires=end),)
    ring, _ = rotate_key(ring, "ci", now=NOW, expires=None, overlap_s=3600)
    assert ring.revoked == (RevokedKey(id=first, ends=int(NOW + 3600), expires=end),)
    ring = revoke_key(ring, first, now=NOW + 60)
    assert ring.revoked == (RevokedKey(id=first, expires=end),), (
        "until its first end, which other machines may know alone"
    )
    ring, _ = rotate_key(ring, "ci", now=end - 60, expires=None, overlap_s=0)
    assert len(ring.revoked) == 2
    assert len(revoke_key(ring, "ci", now=end + 60).revoked) == 1


def test_a_key_that_had_expired_is_not_listed_and_the_oldest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, _ = added(empty(), expires=NOW + 10)
    assert revoke_key(ring, "ci", now=NOW + 11).revoked == ()
    monkeypatch.setattr(key_file, "MAX_REVOKED", 2)
    for name in ("a", "b", "c"):
        ring, text = added(ring, name)
        ring = revoke_key(ring, name, now=NOW)
    assert [one.id for one in ring.revoked][1:] == [read_id(text)]
    assert len(ring.revoked) == 2


def test_the_day_of_the_last_use_is_noted() -> None:
    ring, text = added(empty())
    noted = note_use(ring, frozenset({str(read_id(text))}), "2026-11-18")
    assert noted.keys[0].last_used == "2026-11-18"
    assert note_use(ring, frozenset({"gone"}), "2026-11-18") == ring
