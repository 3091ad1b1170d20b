"""The least that has children: opens one channel per given manner, prints all process numbers as JSON, and stays until killed."""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec

from pactgate.upstreams.process.stdio import StdioChannel
from tests.support.children import Inbox, guarded, scripted


async def main(manners: list[str]) -> None:
    async with guarded(find_cgroup=lambda: None) as child_reaper:
        pids: list[int | None] = []
        for manner in manners:
            inbox = Inbox()
            channel = StdioChannel(
                manner, sys.executable, scripted(manner), {}, None, inbox.events.append, child_reaper
            )
            await channel.open(inbox)
            pids.append(channel.pid)
            if manner.endswith("parent"):
                pids.append(await inbox.child_pid())
            else:
                await inbox.wait_frames(1)
        pids.append(child_reaper.pid)
        os.write(1, msgspec.json.encode(pids) + b"\n")
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
