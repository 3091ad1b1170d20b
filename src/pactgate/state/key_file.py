"""The file of API keys: read and changed by several processes, the gateway and `pactgate keys`.

A key is kept as a keyed hash (HMAC-SHA256, with a random pepper of the file), so the file opens nothing. A change is made under a lock
file and replaces the file as a whole, so that a reader sees one state or the other. A file that others may write is refused. A key that was
revoked before its end stays listed by its id: other machines may have it in files of their own. Must not: keep or repeat a key, or be used
on the path of a request.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from pactgate.config.file_access import FileState, file_state, locked, other_writers, read_regular_file, replacing
from pactgate.config.problems import UnreadableError, show, shown_path
from pactgate.config.sections.auth import Role, TokenName
from pactgate.core.api_key import ID_CHARS, SECRET_BITS, read_id, write_key
from pactgate.core.failures import GatewayFailure, Kind

MAX_KEYS: Final = 10_000
MAX_REVOKED: Final = 2_000
"""Replicas read the list as a whole: 2,000 take some 10 ms."""
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
HexDigest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ApiKey(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One key. Times are seconds of the wall clock, `last_used` is a day (UTC)."""

    id: str
    name: TokenName
    digest: HexDigest
    created: int
    expires: int | None = None
    groups: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    last_used: str | None = None

    def is_live(self, now: float) -> bool:
        return self.expires is None or now < self.expires


class RevokedKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A key that ends before its time, listed until it would have expired. `ends` is when, where it was not at once."""

    id: str
    ends: int = 0
    expires: int | None = None


class KeyRing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says."""

    version: Literal[1] = 1
    pepper: HexDigest
    keys: tuple[ApiKey, ...] = ()
    revoked: tuple[RevokedKey, ...] = ()

    def named(self, name: str) -> list[ApiKey]:
        """The keys of one name, the oldest first."""
        return [key for key in self.keys if key.name == name]


Edit = Callable[[KeyRing], KeyRing]


class KeyFile:
    """The file at one path. Every method but `state` may wait for the disk."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def _real_path(self) -> str:
        """What a link stands for: it is changed, and the link stays."""
        return os.path.realpath(self.path)

    def state(self) -> FileState | None:
        """Tells one state of the file from another; None while there is no file."""
        return file_state(self.path)

    def read(self) -> KeyRing | None:
        """None while there is no file. Raises INVALID_CONFIG."""
        if not os.path.lexists(self.path):
            return None
        writers = other_writers(self.path)
        if writers is not None:
            raise self._unusable(f"{writers.who} may write it. {writers.hint}.")
        try:
            data = read_regular_file(self.path, MAX_FILE_BYTES + 1)
            if len(data) <= MAX_FILE_BYTES:
                return msgspec.json.decode(data, type=KeyRing)
        except UnreadableError as problem:
            raise self._unusable(f"{problem.message} {problem.hint}") from None
        except msgspec.DecodeError:
            raise self._unusable("it is damaged. Restore it, or remove it and make new keys.") from None
        raise self._unusable(f"it is larger than {MAX_FILE_BYTES} bytes.")

    def change(self, edit: Edit) -> KeyRing:
        """Apply one change to the state of now, while no other process does. Raises INVALID_CONFIG, or what `edit` raises."""
        try:
            with locked(f"{self._real_path}.lock") as handle:
                self._give_away(handle)
                before = self.read()
                after = edit(KeyRing(pepper=secrets.token_hex(32)) if before is None else before)
                if after != before:
                    self._replace(msgspec.json.format(msgspec.json.encode(after)) + b"\n")
                return after
        except OSError as problem:
            raise self._unusable(f"it can't be written: {problem.strerror}.") from None

    def _replace(self, data: bytes) -> None:
        with replacing(self._real_path) as file:
            self._give_away(file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _give_away(self, handle: int) -> None:
        """Root changes the file for the user whose gateway reads it: the owner of the file, or of its folder."""
        if os.geteuid() == 0:
            path = self._real_path
            whose = os.stat(path if os.path.exists(path) else os.path.dirname(path))
            os.fchown(handle, whose.st_uid, whose.st_gid)

    def _unusable(self, why: str) -> GatewayFailure:
        return GatewayFailure(Kind.INVALID_CONFIG, f"The file of keys {shown_path(self.path)} can't be used: {why}")


def digest_of(ring: KeyRing, text: str) -> bytes:
    return hmac.digest(bytes.fromhex(ring.pepper), text.encode(), "sha256")


def add_key(
    ring: KeyRing, name: str, *, now: float, expires: float | None, groups: tuple[str, ...], roles: tuple[str, ...]
) -> tuple[KeyRing, str]:
    """One more key, and its text, which is nowhere else. Raises INVALID_ARGUMENTS where the name has a key."""
    if any(key.is_live(now) for key in ring.named(name)):
        raise _refused(f"{show(name)} has a key. Replace it with `pactgate keys rotate {name}`.")
    return _with_key(_without(ring, ring.named(name), now), name, now=now, expires=expires, groups=groups, roles=roles)


def rotate_key(ring: KeyRing, name: str, *, now: float, expires: float | None, overlap_s: float) -> tuple[KeyRing, str]:
    """A new key beside the newest one of the name, which ends after the overlap; older ones end now.

    Without `expires` the new key lives as long as the one before. Raises INVALID_ARGUMENTS where the name has no key.
    """
    live = [key for key in ring.named(name) if key.is_live(now)]
    if not live:
        raise _refused(f"{show(name)} has no key. `pactgate keys list` shows the keys.")
    last = live[-1]
    if expires is None and last.expires is not None:
        expires = now + (last.expires - last.created)
    ending = min(now + overlap_s, last.expires or now + overlap_s)
    kept = _without(ring, ring.named(name), now)
    if overlap_s > 0:
        ended = replace(last, expires=int(ending))
        kept = replace(kept, keys=(*kept.keys, ended), revoked=_listed(kept, [last], now, ends=int(ending)))
    return _with_key(kept, name, now=now, expires=expires, groups=last.groups, roles=last.roles)


def revoke_key(ring: KeyRing, name_or_id: str, *, now: float) -> KeyRing:
    """Without every key of a name, or the one key with an id. Raises INVALID_ARGUMENTS where there is none."""
    gone = ring.named(name_or_id) or [key for key in ring.keys if key.id == name_or_id]
    if not gone:
        raise _refused(f"There is no key {show(name_or_id)}. `pactgate keys list` shows the keys.")
    return _without(ring, gone, now)


def note_use(ring: KeyRing, ids: frozenset[str], day: str) -> KeyRing:
    """The same with the day on which these keys were used last."""
    return replace(ring, keys=tuple(replace(key, last_used=day) if key.id in ids else key for key in ring.keys))


def _without(ring: KeyRing, gone: list[ApiKey], now: float) -> KeyRing:
    return replace(ring, keys=tuple(key for key in ring.keys if key not in gone), revoked=_listed(ring, gone, now))


def _listed(ring: KeyRing, gone: list[ApiKey], now: float, ends: int = 0) -> tuple[RevokedKey, ...]:
    """The list of revoked keys with those of `gone` that are valid; the oldest make room."""
    listed = {one.id: one for one in ring.revoked if one.expires is None or now < one.expires}
    for key in gone:
        if key.is_live(now):
            before = listed.pop(key.id, None)  # rotated: other machines may know only its first end
            expires = key.expires if before is None else before.expires
            listed[key.id] = RevokedKey(id=key.id, ends=ends, expires=expires)
    return tuple(listed.values())[-MAX_REVOKED:]


def _with_key(
    ring: KeyRing, name: str, *, now: float, expires: float | None, groups: tuple[str, ...], roles: tuple[str, ...]
) -> tuple[KeyRing, str]:
    if len(ring.keys) >= MAX_KEYS:
        raise _refused(f"There are {MAX_KEYS} keys, as many as there may be. Revoke some.")
    taken = {key.id for key in ring.keys}
    id_ = None
    while id_ is None or id_ in taken:
        text = write_key(secrets.randbelow(62**ID_CHARS), secrets.randbits(SECRET_BITS))
        id_ = read_id(text)
    key = ApiKey(
        id=id_,
        name=name,
        digest=digest_of(ring, text).hex(),
        created=int(now),
        expires=None if expires is None else int(expires),
        groups=groups,
        roles=roles,
    )
    return replace(ring, keys=(*ring.keys, key)), text


def _refused(message: str) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_ARGUMENTS, message)
