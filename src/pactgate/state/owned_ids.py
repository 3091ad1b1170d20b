"""Ids that say, to replicas only, which replica owns what they name: a legacy session, a result in pages, a task.

An id is the owner and 128 random bits, sealed; more may follow it after `OWNER_END`. The owner finds what it owns by the whole id, without
opening it. Must not: say whether the owner still lives.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from functools import lru_cache
from typing import Final

from pactgate.state.sealing_keys import SealingKeys

REPLICA_CHARS: Final = 16
MAX_ID_CHARS: Final = 128
OWNER_END: Final = "."
_PURPOSE: Final = "owned id"
_RANDOM_BYTES: Final = 16
_REMEMBERED: Final = 4096


def new_replica_id() -> str:
    """The id of one gateway process, from its start to its end."""
    return secrets.token_hex(REPLICA_CHARS // 2)


def new_plain_id() -> str:
    """The id of something where there is one replica."""
    return secrets.token_hex(_RANDOM_BYTES)


class OwnedIds:
    def __init__(self, keys: SealingKeys, replica: str) -> None:
        self._keys = keys
        self._replica = bytes.fromhex(replica)
        self._known_owner_of = lru_cache(maxsize=_REMEMBERED)(self._owner_of)
        """A client repeats its id with every request."""

    def new(self) -> str:
        """A new id of something that this replica owns."""
        sealed = self._keys.seal(_PURPOSE, self._replica + secrets.token_bytes(_RANDOM_BYTES))
        return urlsafe_b64encode(sealed).decode("ascii").rstrip("=")

    def owner_of(self, id_: str) -> str | None:
        """The replica that made an id; None unless a replica with our key made it."""
        owned = id_.partition(OWNER_END)[0]
        return None if len(owned) > MAX_ID_CHARS else self._known_owner_of(owned)

    def _owner_of(self, id_: str) -> str | None:
        try:
            sealed = urlsafe_b64decode(id_ + "=" * (-len(id_) % 4))
        except (Base64Error, ValueError):
            return None
        opened = self._keys.open(_PURPOSE, sealed)
        size = REPLICA_CHARS // 2
        return opened[:size].hex() if opened is not None and len(opened) == size + _RANDOM_BYTES else None
