"""Settings on their way between our own processes, as the very values they are.

They were checked when they were read and are not checked again: a path that was made absolute since may be longer than what a file may
say. Pickled, which is safe only because both ends of the socket were made by us, and nobody else can write to it. Must not: be used for
anything that comes from a file, a caller or a server.
"""

from __future__ import annotations

import pickle
from typing import TypeVar

T = TypeVar("T")


def pack(value: object) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(text: bytes, kind: type[T]) -> T:
    value = pickle.loads(text)
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} was expected, {type(value).__name__} came")
    return value
