"""An upstream on the official SDK whose tools ask their caller, in either era: `python asking.py stdio|http [PORT]`."""

from __future__ import annotations

import sys
from typing import Annotated

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("asking", log_level="ERROR")


class Name(BaseModel):
    name: str


async def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


async def ask_model() -> Sample:
    said = SamplingMessage(role="user", content=TextContent(type="text", text="Say a word"))
    return Sample([said], max_tokens=10)


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def greet(who: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    """Asks for a name."""
    return f"hello {who.data.name}" if isinstance(who, AcceptedElicitation) else f"hello nobody ({who.action})"


@server.tool()
async def think(said: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Asks the caller's model."""
    assert isinstance(said.content, TextContent)
    return f"the model said {said.content.text}"


@server.tool()
async def look(found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    """Asks for roots."""
    return " ".join(str(root.uri) for root in found.roots)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
