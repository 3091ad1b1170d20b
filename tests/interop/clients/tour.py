"""One visit with the official Python client: lists everything, reads, gets and calls a little. The job is JSON in the first argument:
`mode`, `url` or `command`, `tool`, `arguments`. Refusals are part of a visit. Prints one JSON line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable
from typing import Any

from mcp import Client, MCPError, StdioServerParameters


async def visit(job: dict[str, Any]) -> dict[str, Any]:
    target = job.get("url") or StdioServerParameters(command=job["command"][0], args=job["command"][1:])
    async with Client(target, mode=job["mode"], read_timeout_seconds=20) as client:
        tools = await attempt(client.list_tools())
        resources = await attempt(client.list_resources())
        await attempt(client.list_resource_templates())
        prompts = await attempt(client.list_prompts())
        for resource in (resources.resources if resources else [])[:2]:
            await attempt(client.read_resource(str(resource.uri)))
        for prompt in (prompts.prompts if prompts else [])[:3]:
            if not any(argument.required for argument in prompt.arguments or []):
                await attempt(client.get_prompt(prompt.name))
        result = await attempt(client.call_tool(job["tool"], job["arguments"], progress_callback=ignore))
        await attempt(client.call_tool("no_such_tool", {}))
        return {
            "tools": len(tools.tools) if tools else 0,
            "called": result is not None,
            "version": client.protocol_version,
        }


async def attempt(request: Awaitable[Any]) -> Any:
    try:
        return await request
    except MCPError:
        return None


async def ignore(progress: float, total: float | None, message: str | None) -> None:
    return


if __name__ == "__main__":
    print(json.dumps(asyncio.run(asyncio.wait_for(visit(json.loads(sys.argv[1])), 30))))
