"""What a scripted server offers and does, as data: its tools, prompts and resources, each with the text it answers.

Texts are JSON as it goes on the wire; `@` in a name or URI stands for the tag of the server, so that each server has its own. Must not:
know a check.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

OK = '"content":[{"type":"text","text":"ok"}]'


class ScriptStep(Struct, frozen=True, omit_defaults=True):
    """One thing to do before the answer.

    `notify`: send `data`, a notification (`@TOKEN@` stands for the progress token; without one it is not sent), and wait for `seconds`.
    `log`: send a log message with `data` as its params, if the client wants its level, and wait for `seconds`. `ask`: send the requests
    in `data`, an object by their keys, to the client, and wait for the answers. `until_cancelled`: wait for `seconds`, and answer only
    if the call was not cancelled. `wait`: for `seconds`. `raw`: `data` on the wire as it is, `count` times. `show`: from now on the
    hidden tools are listed, and everybody is notified. `stay`: from now on ignore the end of the input and SIGTERM. `crash`: exit.
    `hang`: never answer. `freeze`: the whole server stops.
    """

    do: str
    data: str = ""
    seconds: float = 0.0
    count: int = 1


class ScriptedTool(Struct, frozen=True, omit_defaults=True):
    """A tool: `members` are those of its definition after the name, `result` and `meta` those of its result and of its `_meta`."""

    name: str
    members: str = '"description":"A tool of the gateway profile.","inputSchema":{"type":"object"}'
    result: str = OK
    meta: str = ""
    error: str = ""
    """A JSON-RPC error object, in place of a result."""
    steps: tuple[ScriptStep, ...] = ()
    is_hidden: bool = False
    servers: tuple[str, ...] = ()
    """The tags of the servers that offer it; empty: those of the check."""

    def definition(self, tag: str) -> str:
        return f'{{"name":"{named(self.name, tag)}",{self.members}}}'


def structured(name: str, text: str) -> ScriptedTool:
    """A tool that declares structured content, and returns this text as it. Some gateways lose what is not declared or stands alone;
    GWP-034 asks for that, so that it is counted once."""
    return ScriptedTool(
        name=name,
        members='"inputSchema":{"type":"object"},"outputSchema":{"type":"object"}',
        result=f'"content":[{{"type":"text","text":"see structuredContent"}}],"structuredContent":{text}',
    )


class ScriptedPrompt(Struct, frozen=True, omit_defaults=True):
    """A prompt, in the same way."""

    name: str
    members: str = '"description":"A prompt of the gateway profile."'
    result: str = '"messages":[]'
    servers: tuple[str, ...] = ()


class ScriptedResource(Struct, frozen=True, omit_defaults=True):
    """A resource, in the same way."""

    uri: str
    members: str = '"name":"r"'
    result: str = '"contents":[]'
    servers: tuple[str, ...] = ()


class ServerScript(Struct, frozen=True):
    """A whole server. `record` is the file that it writes its messages to."""

    tag: str
    era: str
    """`legacy`, `modern` or `both`."""
    record: str
    tools: tuple[ScriptedTool, ...] = ()
    prompts: tuple[ScriptedPrompt, ...] = ()
    resources: tuple[ScriptedResource, ...] = ()
    page_size: int = 0
    lifetime_s: float = 600.0


class Scenario:
    """What a check asks of the servers, and the routes that it is about."""

    servers: ClassVar[tuple[str, ...]] = ("lh", "mh", "dh", "ls", "ms")
    """The servers that offer what the check brings, and that its routes lead to (`fleet.SERVERS`)."""
    eras: ClassVar[tuple[str, ...]] = ("legacy", "modern")
    """The eras of the clients of its routes."""
    tools: ClassVar[tuple[ScriptedTool, ...]] = ()
    prompts: ClassVar[tuple[ScriptedPrompt, ...]] = ()
    resources: ClassVar[tuple[ScriptedResource, ...]] = ()


def named(name: str, tag: str) -> str:
    """The name on one server."""
    return name.replace("@", tag)
