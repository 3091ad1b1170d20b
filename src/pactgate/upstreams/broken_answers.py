"""Finds the request that a broken answer is for, so that its caller does not wait until the time limit.

Only the beginning of a message is read: the members before the result of an answer have no objects in them, so an id that stands there is
the id of the answer. Must not: take a broken request or notification of the server for an answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_HEAD: Final = re.compile(
    rb'\s*+\{\s*+(?:"jsonrpc"\s*+:\s*+"2\.0"\s*+,?+\s*+)?'
    rb'(?:"id"\s*+:\s*+(\d{1,18})\s*+,?+\s*+)?(?:"(?:result|error)"|"?([a-z]{0,6})$)'
)
"""Possessive, so that no blank is tried twice: a server may send a megabyte of them. Groups are not: Python before 3.11.5 misreads them."""


def find_request(frame: bytes, waiting: Collection[str | int]) -> str | int | None:
    """The waiting request that the answer names, or the only one that waits if it names none. None if the frame is no answer."""
    head = _HEAD.match(frame)
    if head is None:
        return None
    id_, cut_name = head.groups()
    if cut_name and not any(name.startswith(cut_name) for name in (b"result", b"error")):
        return None
    if id_ is not None:
        return int(id_) if int(id_) in waiting else None
    return next(iter(waiting)) if len(waiting) == 1 else None
