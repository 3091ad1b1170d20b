"""A worker that does nothing but talk to its owner, as its manners say: run with them, and the number of a descriptor last.

It tells what it does on its control link, as a real one does. Manners: `obedient`, `stubborn` (takes over nothing), `failing` (can't
start), `dead` (exits at once). On the question `ask` it asks the owner what it is told to, on `tell` it tells it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from typing import Any

from pactgate.workers.crew import Hello
from pactgate.workers.link import Fds, Link
from pactgate.workers.parcels import unpack


class Stub:
    def __init__(self, manners: str, end: socket.socket) -> None:
        self.manners = manners
        self.stop, self.hello = asyncio.Event(), asyncio.Event()
        self.seen: dict[str, Any] = {"notices": [], "fds": 0}
        self.link = Link(end, self.on_notice, self.on_question, self.stop.set)

    def on_notice(self, name: str, body: Any, fds: Fds) -> None:
        if name == "hello":
            self.seen["hello"], self.seen["fds"] = _shown(unpack(body, object)), len(fds)
            self.hello.set()
        elif name == "stop":
            self.stop.set()
        else:
            self.seen["notices"].append([name, body])

    async def on_question(self, name: str, body: Any) -> tuple[Any, Fds]:
        if name == "ask":
            said, fds = await self.link.ask(*body, timeout_s=5)
            for one in fds:
                os.close(one)
            return [said, len(fds)], ()
        if name == "tell":
            self.link.tell(*body)
        if name == "seen":
            return self.seen, ()
        if name == "take_over" and self.manners == "stubborn":
            return False, ()
        return [name, os.getpid()], ()

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop.set)
        await self.hello.wait()
        if self.manners == "failing":
            self.link.tell("failed", "no disk")
        else:
            self.link.tell("ready")
            await self.stop.wait()
        self.link.close()


def _shown(hello: Any) -> Any:
    if not isinstance(hello, Hello):
        return hello
    return {
        "place": [hello.place.index, hello.place.count],
        "token": hello.token,
        "file": hello.standing.config.file,
        "unwritten": list(hello.standing.unwritten),
    }


async def main() -> None:
    await Stub(sys.argv[1], socket.socket(fileno=int(sys.argv[2]))).run()


if __name__ == "__main__":
    if sys.argv[1] == "dead":
        sys.exit(3)
    asyncio.run(main())
