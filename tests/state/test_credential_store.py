"""The store of credentials: sealed, private, shared by processes, and clear about a wrong key."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from pathlib import Path

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.state.credential_keys import new_key
from pactgate.state.credential_store import CredentialStore

SECRET = b"refresh-token-that-nobody-may-read"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "pactgate.credentials")


@pytest.fixture
def store(path: str) -> CredentialStore:
    return CredentialStore.in_file(path)


def test_what_is_written_is_read_and_lies_sealed_in_private_files(
    store: CredentialStore, tmp_path: Path, path: str
) -> None:
    assert store.write("grant", "linear", "https://a.example", SECRET) == 1
    found = CredentialStore.in_file(path).read("grant", "linear", "https://a.example")
    assert found is not None
    assert found.data == SECRET
    for file in tmp_path.iterdir():
        assert SECRET not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_nothing_is_made_by_looking(store: CredentialStore, tmp_path: Path) -> None:
    store.check()
    assert store.read("grant", "linear", "x") is None
    assert list(tmp_path.iterdir()) == []


def test_a_write_over_an_older_generation_is_refused(store: CredentialStore) -> None:
    assert store.write("grant", "linear", "x", b"1", replaces=0) == 1
    assert store.write("grant", "linear", "x", b"2", replaces=1) == 2
    assert store.write("grant", "linear", "x", b"3", replaces=1) is None
    found = store.read("grant", "linear", "x")
    assert found is not None
    assert (found.data, found.generation) == (b"2", 2)


def test_a_wrong_key_is_said_at_the_start(store: CredentialStore, path: str) -> None:
    store.write("grant", "linear", "x", SECRET)
    with pytest.raises(GatewayFailure, match="another key than PACTGATE_KEY") as refused:
        CredentialStore.in_file(path, new_key()).check()
    assert refused.value.kind is Kind.INVALID_CONFIG


def test_a_key_that_is_none_is_refused(store: CredentialStore, path: str) -> None:
    with pytest.raises(GatewayFailure, match="openssl rand -base64 32"):
        CredentialStore.in_file(path, "secret").write("grant", "linear", "x", SECRET)


def test_a_row_that_was_moved_to_another_server_can_not_be_opened(store: CredentialStore, path: str) -> None:
    store.write("grant", "linear", "x", SECRET)
    with sqlite3.connect(path) as rows:
        rows.execute("update credentials set server = 'evil'")
    with pytest.raises(GatewayFailure, match="damaged"):
        store.read("grant", "evil", "x")


async def test_a_rotated_key_opens_every_row_also_in_a_process_that_knew_the_old_one(
    store: CredentialStore, path: str
) -> None:
    store.write("grant", "linear", "x", SECRET)
    other = CredentialStore.in_file(path)
    assert other.read("grant", "linear", "x") is not None
    before = store.key_id
    assert await store.rotate() == 1
    assert store.key_id != before
    found = other.read("grant", "linear", "x")
    assert found is not None
    assert found.data == SECRET


async def test_a_process_that_knew_the_old_key_seals_with_the_new_one(store: CredentialStore, path: str) -> None:
    store.write("grant", "linear", "x", SECRET)
    await CredentialStore.in_file(path).rotate()
    store.write("grant", "notion", "y", SECRET)
    fresh = CredentialStore.in_file(path)
    fresh.check()
    assert fresh.read("grant", "notion", "y") is not None


async def test_rotations_at_the_same_moment_lose_nothing(store: CredentialStore, path: str) -> None:
    for number in range(5):
        store.write("grant", "linear", str(number), SECRET)
    counts = await asyncio.gather(*(CredentialStore.in_file(path).rotate() for _ in range(4)))
    assert counts == [5] * 4
    fresh = CredentialStore.in_file(path)
    fresh.check()
    assert [row.data for row in fresh.rows("grant")] == [SECRET] * 5
    assert len(Path(f"{path}.key").read_text().split()) == 1  # noqa: ASYNC240 - a test


async def test_credentials_that_another_process_holds_are_waited_for_so_long_and_then_it_is_said(
    store: CredentialStore, path: str
) -> None:
    async with CredentialStore.in_file(path).locked("linear"):
        with pytest.raises(GatewayFailure, match="another process has been changing those of linear") as refused:
            async with store.locked("linear", within_s=0.05):
                raise AssertionError("held twice")
    assert refused.value.kind is Kind.STATE_UNAVAILABLE
    async with store.locked("linear", within_s=0.05):
        with pytest.raises(TimeoutError):  # of who holds them: it is no other's
            raise TimeoutError


def test_a_crash_in_the_middle_of_a_rotation_loses_nothing(store: CredentialStore, path: str) -> None:
    store.write("grant", "linear", "x", SECRET)
    key_file = Path(f"{path}.key")
    key_file.write_text(
        f"{new_key()}\n{key_file.read_text()}"
    )  # the new key is there, and nothing is sealed with it yet
    again = CredentialStore.in_file(path)
    again.check()
    found = again.read("grant", "linear", "x")
    assert found is not None
    assert found.data == SECRET


async def test_a_key_of_the_environment_is_rotated_by_writing_the_new_one_before_it(
    store: CredentialStore, path: str
) -> None:
    old, new = new_key(), new_key()
    CredentialStore.in_file(path, old).write("grant", "linear", "x", SECRET)
    assert await CredentialStore.in_file(path, f"{new},{old}").rotate() == 1
    found = CredentialStore.in_file(path, new).read("grant", "linear", "x")
    assert found is not None
    assert not Path(f"{path}.key").exists()  # noqa: ASYNC240 - a test


def test_a_file_that_others_may_write_is_refused(store: CredentialStore, path: str) -> None:
    store.write("grant", "linear", "x", SECRET)
    Path(path).chmod(0o666)
    with pytest.raises(GatewayFailure, match="may write it"):
        store.read("grant", "linear", "x")


def test_removing_a_server_removes_all_of_it(store: CredentialStore) -> None:
    store.write("grant", "linear", "x", SECRET)
    store.write("client", "linear", "x y", SECRET)
    store.write("grant", "other", "x", SECRET)
    assert store.remove("linear")
    assert not store.remove("linear")
    assert [row.server for row in store.rows("grant")] == ["other"]
    assert store.rows("client") == []
