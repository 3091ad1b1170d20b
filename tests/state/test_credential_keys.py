"""Where the key of the store comes from: the environment, a file, the keyring of the system."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from pactgate.config.sections.state import read_key
from pactgate.core.failures import GatewayFailure
from pactgate.state.credential_keys import KeyUnusableError, SystemKeyring, key_source, new_key
from pactgate.state.credential_store import CredentialStore


class Keyring(types.ModuleType):
    """The package `keyring`, as far as it is used."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.errors = types.SimpleNamespace(KeyringError=OSError)
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, entry: str) -> str | None:
        if self.is_locked:
            raise OSError("locked")
        return self.kept.get((service, entry))

    def set_password(self, service: str, entry: str, text: str) -> None:
        self.kept[service, entry] = text


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    found = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", found)
    return found


def test_a_new_key_is_one() -> None:
    assert read_key(new_key()) is not None
    assert [read_key(text) for text in ("", "short", "z" * 64, "A" * 42)] == [None] * 4


async def test_the_keyring_of_the_system_has_the_key_and_no_file_does(keyring: Keyring, tmp_path: Path) -> None:
    path = str(tmp_path / "credentials")
    store = CredentialStore.in_file(path, "keyring")
    store.write("grant", "linear", "x", b"secret")
    assert await store.rotate() == 1
    found = CredentialStore.in_file(path, "keyring").read("grant", "linear", "x")
    assert found is not None
    assert found.data == b"secret"
    assert [read_key(text) is not None for text in keyring.kept.values()] == [True]
    assert not (tmp_path / "credentials.key").exists()


def test_a_keyring_that_is_locked_or_missing_is_said(keyring: Keyring, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring.is_locked = True
    with pytest.raises(KeyUnusableError, match="the keyring of the system"):
        SystemKeyring().read()
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(GatewayFailure, match="the package keyring is not installed"):
        CredentialStore.in_file("/nowhere/credentials", "keyring").write("grant", "linear", "x", b"secret")


def test_a_key_that_is_given_is_not_written(tmp_path: Path) -> None:
    source = key_source(new_key(), str(tmp_path / "key"))
    assert not source.is_ours
    assert source.read() == source.read()
    assert list(tmp_path.iterdir()) == []
