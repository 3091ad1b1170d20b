"""An address that accepts no connection and refuses none, as behind a firewall that drops everything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def deaf_socket() -> Iterator[str]:
    """Host and port."""
    with ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        yield f"127.0.0.1:{deaf.getsockname()[1]}"
