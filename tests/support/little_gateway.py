"""The least that has children: opens one channel per given manner, prints all process numbers as JSON, and stays.

SIGUSR1 closes the channels, SIGTERM ends it in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import msgspec

from pactgate.upstreams.process.stdio import StdioChannel
from tests.support.children import Inbox, guarded, scripted


async def main(manners: list[str]) -> None:
    loop, stop, close = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, close.set)
    async with guarded(find_cgroup=lambda: None, adopts=True) as child_reaper:
        pids: list[int | None] = []
        channels: list[StdioChannel] = []
        for manner in manners:
            inbox = Inbox()
            channel = StdioChannel(
                manner, sys.executable, scripted(manner), {}, None, inbox.events.append, child_reaper
            )
            await channel.open(inbox)
            channels.append(channel)
            pids.append(channel.pid)
            if manner.endswith("parent"):
                pids.append(await inbox.child_pid())
            else:
                await inbox.wait_frames(1)
        pids.append(child_reaper.pid)
        os.write(1, msgspec.json.encode(pids) + b"\n")
        waiting = [asyncio.create_task(event.wait()) for event in (stop, close)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for channel in channels:
            await channel.close()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
