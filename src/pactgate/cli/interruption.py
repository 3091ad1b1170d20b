"""Wait for Ctrl-C, SIGTERM or a closed terminal."""

from __future__ import annotations

import asyncio
import signal


async def until_interrupted() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
