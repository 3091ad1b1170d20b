"""Where the key of the credential store comes from: the environment, a file beside the store, or the keyring of the system.

A source has one key to seal with and perhaps older ones, which rows may still need. A file and a keyring get their key at the first use.
Must not: show a key.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from pactgate.config.file_access import other_writers, read_regular_file, replacing
from pactgate.config.problems import UnreadableError, shown_path
from pactgate.config.sections.state import KEY_BYTES

KEY_VARIABLE: Final = "PACTGATE_KEY"
KEYRING: Final = "keyring"
"""As the value of `PACTGATE_KEY`: the key is in the keyring of the system."""
_SERVICE: Final = "pactgate"
_ENTRY: Final = "credentials"
_MAX_FILE_BYTES: Final = 1024


class KeyUnusableError(Exception):
    """Why there is no key."""


class KeySource(Protocol):
    """`where` names it in messages. `is_ours`: the gateway may write another key there."""

    where: str
    is_ours: bool

    def read(self) -> str:
        """The keys, the one to seal with first. Makes one where there is none. Raises KeyUnusableError."""

    def replace(self, texts: Sequence[str]) -> None:
        """Write other keys."""


class GivenKeys:
    """The keys of the environment, or those that replicas derive."""

    is_ours = False

    def __init__(self, text: str, where: str = KEY_VARIABLE) -> None:
        self.where = where
        self._text = text

    def read(self) -> str:
        return self._text

    def replace(self, texts: Sequence[str]) -> None:
        raise KeyUnusableError("it is the operator's own.")


class SealingKeyFile:
    """A file that only its owner may write."""

    is_ours = True

    def __init__(self, path: str) -> None:
        self.where = shown_path(path)
        self._path = path

    def read(self) -> str:
        if not os.path.lexists(self._path):
            return self._make()
        writers = other_writers(self._path)
        if writers is not None:
            raise KeyUnusableError(f"{writers.who} may write the key file. {writers.hint}.")
        try:
            return read_regular_file(self._path, _MAX_FILE_BYTES).decode("ascii", "replace").strip()
        except UnreadableError as problem:
            raise KeyUnusableError(f"the key file: {problem.message} {problem.hint}") from None

    def replace(self, texts: Sequence[str]) -> None:
        self._write(texts, os.replace)

    def _make(self) -> str:
        """The first process makes the key; one that was slower uses it."""
        text = new_key()
        try:
            self._write([text], os.link)
        except FileExistsError:
            return self.read()
        except OSError as problem:
            raise KeyUnusableError(f"the key file can't be written: {problem.strerror}.") from None
        return text

    def _write(self, texts: Sequence[str], place: Callable[[str, str], None]) -> None:
        with replacing(self._path, place) as file:
            file.write("".join(f"{text}\n" for text in texts).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())


class SystemKeyring:
    """The keyring of the user, by the package `keyring` where it is installed."""

    where = f"the keyring ({_SERVICE}, {_ENTRY})"
    is_ours = True

    def read(self) -> str:
        found = self._ask(lambda keyring: keyring.get_password(_SERVICE, _ENTRY))
        if found:
            return str(found)
        self.replace([new_key()])
        return str(self._ask(lambda keyring: keyring.get_password(_SERVICE, _ENTRY)))  # another process may be faster

    def replace(self, texts: Sequence[str]) -> None:
        self._ask(lambda keyring: keyring.set_password(_SERVICE, _ENTRY, ",".join(texts)))

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        import importlib

        try:
            keyring = importlib.import_module("keyring")
        except ImportError:
            raise KeyUnusableError("PACTGATE_KEY is `keyring`, and the package keyring is not installed.") from None
        try:
            return question(keyring)
        except keyring.errors.KeyringError as problem:
            raise KeyUnusableError(f"the keyring of the system: {type(problem).__name__}.") from None


def key_source(given: str | None, path: str) -> KeySource:
    """The source for what `PACTGATE_KEY` says, or the file at this path."""
    if given is None:
        return SealingKeyFile(path)
    return SystemKeyring() if given == KEYRING else GivenKeys(given)


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
