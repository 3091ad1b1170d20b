"""HTTP/1.1 heads that repeat but for their Content-Length, so that a head that was read once need not be read again.

Clients and servers send the same head with each message on a connection; only the length of the body differs. Must not: judge a head;
a head is compared with one that a parser has accepted.
"""

from __future__ import annotations

import re
from typing import Final

_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,9})(?=\r\n|\Z)")


def split_length(head: bytes) -> tuple[bytes, int] | None:
    """The head without the value of its first Content-Length, and that value; None where there is none in a usual spelling."""
    found = _LENGTH.search(head)
    if found is None:
        return None
    start, end = found.span(1)
    return head[:start] + head[end:], int(found[1])
