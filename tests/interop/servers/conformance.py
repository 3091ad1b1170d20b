"""The upstream the official conformance suite wants to meet: `python conformance.py both|handshake PORT`, at /mcp.

The suite calls tools, prompts and resources by names it fixes and looks for contents it fixes. `both` serves either era;
`handshake` knows nothing of 2026-07-28 and puts the same questions as requests of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import mcp.types as mcp_types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged

NAME = "conformance-fixture"
MODERN = "2026-07-28"
STEP_S = 0.02
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

Json = dict[str, Any]
Answer = Callable[[Any, Any], Awaitable[Json]]

tools: dict[str, tuple[Json, Answer]] = {}
prompts: dict[str, tuple[list[str], Answer]] = {}
extra: set[str] = set()
bus = InMemorySubscriptionBus()


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def image() -> Json:
    return {"type": "image", "data": PICTURE, "mimeType": "image/png"}


def embedded(uri: str, mime: str, held: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": held}}


def result(*content: Json, **more: Any) -> Json:
    return {"content": list(content), "resultType": "complete", **more}


def schema(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


WORDS: Json = {"type": "string"}


def tool(name: str, input_schema: Json | None = None) -> Callable[[Answer], Answer]:
    def register(answer: Answer) -> Answer:
        tools[name] = (input_schema or schema(), answer)
        return answer

    return register


# Tools that only answer.


def fixed(name: str, *content: Json, **more: Any) -> None:
    async def answer(ctx: Any, params: Any) -> Json:
        return result(*content, **more)

    tools[name] = (schema(), answer)


fixed("test_simple_text", text("This is a simple text response for testing."))
fixed("test_image_content", image())
fixed("test_audio_content", {"type": "audio", "data": SOUND, "mimeType": "audio/wav"})
fixed(
    "test_embedded_resource",
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
)
fixed(
    "test_multiple_content_types",
    text("Multiple content types test:"),
    image(),
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
)
fixed("test_error_handling", text("This tool intentionally returns an error for testing"), isError=True)

RICH: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": WORDS, "city": WORDS}}},
    "properties": {
        "name": WORDS,
        "address": {"$ref": "#/$defs/address"},
        "phone": WORDS,
        "email": WORDS,
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
}


@tool("test_x_mcp_header", schema(region={"type": "string", "x-mcp-header": "Region"}))
@tool("json_schema_2020_12_tool", RICH)
async def repeat(ctx: Any, params: Any) -> Json:
    return result(text(json.dumps(params.arguments or {})))


# Tools that say something on the way.


@tool("test_tool_with_logging")
async def log_three_times(ctx: Any, params: Any) -> Json:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
        await asyncio.sleep(STEP_S)
    return result(text("logged three times"))


@tool("test_logging_tool")
async def log_once(ctx: Any, params: Any) -> Json:
    await ctx.session.send_log_message("info", "said only to who asked", related_request_id=ctx.request_id)
    return result(text("logged"))


@tool("test_tool_with_progress")
async def progress(ctx: Any, params: Any) -> Json:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_S)
    return result(text("done in steps"))


@tool("test_reconnection")
async def hang_up(ctx: Any, params: Any) -> Json:
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await asyncio.sleep(10 * STEP_S)
    return result(text("Reconnection test completed"))


@tool("test_trigger_tool_change")
async def change_tools(ctx: Any, params: Any) -> Json:
    extra.symmetric_difference_update({"test_sometimes_there"})
    await bus.publish(ToolsListChanged())
    if ctx.protocol_version < MODERN:
        await ctx.session.send_tool_list_changed()
    return result(text("changed"))


@tool("test_trigger_prompt_change")
async def change_prompts(ctx: Any, params: Any) -> Json:
    extra.symmetric_difference_update({"sometimes_there"})
    await bus.publish(PromptsListChanged())
    if ctx.protocol_version < MODERN:
        await ctx.session.send_prompt_list_changed()
    return result(text("changed"))


# Tools that ask their caller something. `rounds` is the modern way; a handshake client gets each question as a request.


def form(message: str, asked: Json) -> Json:
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": asked},
    }


def sample(prompt: str, max_tokens: int = 50) -> Json:
    said = {"role": "user", "content": text(prompt)}
    return {"method": "sampling/createMessage", "params": {"maxTokens": max_tokens, "messages": [said]}}


ROOTS: Json = {"method": "roots/list"}
NAME_FORM = form("What is your name?", schema(("name",), name=WORDS))
CONFIRM = form("Please confirm", schema(("ok",), ok={"type": "boolean"}))
Rounds = Callable[[Json, str | None, Json], Json]
rounds: dict[str, Rounds] = {}
_ASKED_AS: dict[str, tuple[Any, Any]] = {
    "elicitation/create": (mcp_types.ElicitRequest, mcp_types.ElicitResult),
    "sampling/createMessage": (mcp_types.CreateMessageRequest, mcp_types.CreateMessageResult),
    "roots/list": (mcp_types.ListRootsRequest, mcp_types.ListRootsResult),
}


def ask(state: str | None = None, **questions: Json) -> Json:
    asked: Json = {"resultType": "input_required", "inputRequests": questions}
    return asked if state is None else {**asked, "requestState": state}


def asking(suffix: str) -> Callable[[Rounds], Rounds]:
    def register(step: Rounds) -> Rounds:
        rounds[suffix] = step

        async def answer(ctx: Any, params: Any) -> Json:
            return await play(ctx, step, params)

        tools[f"test_input_required_result_{suffix}"] = (schema(), answer)
        return step

    return register


async def play(ctx: Any, step: Rounds, params: Any) -> Json:
    declared = ctx.session.client_capabilities
    can = declared.model_dump(by_alias=True, exclude_none=True) if declared else {}
    outcome = step(as_json(params.input_responses), params.request_state, can)
    if ctx.protocol_version >= MODERN:
        return outcome
    for _ in range(4):
        if outcome["resultType"] == "complete" or not outcome["inputRequests"]:
            return outcome if outcome["resultType"] == "complete" else result(text("nothing this client can be asked"))
        answers = {key: await put(ctx, question) for key, question in outcome["inputRequests"].items()}
        outcome = step(answers, outcome.get("requestState"), can)
    return result(text("asked too often"), isError=True)


async def put(ctx: Any, question: Json) -> Json:
    request, expected = _ASKED_AS[question["method"]]
    about = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = await ctx.session.send_request(request.model_validate(question, by_name=False), expected, metadata=about)
    shown: Json = answer.model_dump(by_alias=True, exclude_none=True)
    return shown


def as_json(answers: Any) -> Json:
    return {
        key: held if isinstance(held, dict) else held.model_dump(by_alias=True, exclude_none=True)
        for key, held in (answers or {}).items()
    }


def entered(answer: Json, member: str) -> Any:
    return (answer.get("content") or {}).get(member)


@asking("elicitation")
def greet(answers: Json, state: str | None, can: Json) -> Json:
    if "user_name" not in answers:
        return ask(user_name=NAME_FORM)
    return result(text(f"Hello, {entered(answers['user_name'], 'name')}!"))


@asking("sampling")
def think(answers: Json, state: str | None, can: Json) -> Json:
    if "capital_question" not in answers:
        return ask(capital_question=sample("What is the capital of France?", 100))
    return result(text(f"The model says {json.dumps(answers['capital_question'].get('content'))}"))


@asking("list_roots")
def count_roots(answers: Json, state: str | None, can: Json) -> Json:
    if "client_roots" not in answers:
        return ask(client_roots=ROOTS)
    return result(text(f"There are {len(answers['client_roots'].get('roots', []))} roots"))


@asking("request_state")
def keep_state(answers: Json, state: str | None, can: Json) -> Json:
    return result(text("state-ok")) if state == "kept" and "confirm" in answers else ask("kept", confirm=CONFIRM)


@asking("tampered_state")
def guard_state(answers: Json, state: str | None, can: Json) -> Json:
    return result(text("state-ok")) if state == "guarded" else ask("guarded", confirm=CONFIRM)


@asking("multiple_inputs")
def ask_three(answers: Json, state: str | None, can: Json) -> Json:
    wanted = {"user_name": NAME_FORM, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}
    return result(text("All three came")) if wanted.keys() <= answers.keys() else ask("three", **wanted)


@asking("multi_round")
def ask_twice(answers: Json, state: str | None, can: Json) -> Json:
    seen = json.loads(state) if state else {}
    if seen.get("round") == 1 and "step1" in answers:
        second = json.dumps({"round": 2, "name": entered(answers["step1"], "name")})
        return ask(second, step2=form("Which colour?", schema(("color",), color=WORDS)))
    if seen.get("round") == 2 and "step2" in answers:
        return result(text(f"{seen['name']} likes {entered(answers['step2'], 'color')}"))
    return ask(json.dumps({"round": 1}), step1=NAME_FORM)


@asking("capabilities")
def ask_what_it_can(answers: Json, state: str | None, can: Json) -> Json:
    questions = {"sampling": ("sample", sample("Say hello")), "elicitation": ("ask", NAME_FORM)}
    return ask("within", **dict(question for kind, question in questions.items() if can.get(kind) is not None))


@tool("test_streaming_elicitation")
async def ask_while_streaming(ctx: Any, params: Any) -> Json:
    return await play(ctx, greet, params)


@tool("test_missing_capability")
async def need_sampling(ctx: Any, params: Any) -> Json:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(-32021, "This tool needs sampling", {"requiredCapabilities": {"sampling": {}}})
    return result(text("it is there"))


@tool("test_sampling", schema(("prompt",), prompt=WORDS))
async def ask_the_model(ctx: Any, params: Any) -> Json:
    answer = await put(ctx, sample(params.arguments["prompt"], 100))
    return result(text(f"LLM response: {answer['content'].get('text')}"))


def options(count: int, word: str) -> list[str]:
    return [f"{word}{number}" for number in range(1, count + 1)]


def titled(count: int) -> list[Json]:
    return [{"const": f"value{number}", "title": f"Title {number}"} for number in range(1, count + 1)]


FORMS: dict[str, Json] = {
    "test_elicitation": schema(("response",), response=WORDS),
    "test_elicitation_sep1034_defaults": schema(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        verified={"type": "boolean", "default": True},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    ),
    "test_elicitation_sep1330_enums": schema(
        untitledSingle={"type": "string", "enum": options(3, "option")},
        titledSingle={"type": "string", "oneOf": titled(3)},
        legacyEnum={"type": "string", "enum": options(3, "opt"), "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options(3, "option")}},
        titledMulti={"type": "array", "items": {"anyOf": titled(3)}},
    ),
}


def elicit(name: str, asked: Json) -> None:
    async def answer(ctx: Any, params: Any) -> Json:
        message = (params.arguments or {}).get("message", "Please answer")
        given = await put(ctx, form(message, asked))
        return result(
            text(f"Elicitation completed: action={given['action']}, content={json.dumps(given.get('content'))}")
        )

    tools[name] = (schema(("message",), message=WORDS) if name == "test_elicitation" else schema(), answer)


for form_name, form_schema in FORMS.items():
    elicit(form_name, form_schema)


# Resources, prompts, completions.

RESOURCES: dict[str, tuple[str, Json]] = {
    "test://static-text": ("text/plain", {"text": "This is the content of the static text resource."}),
    "test://static-binary": ("image/png", {"blob": PICTURE}),
    "test://watched-resource": ("text/plain", {"text": "Watched resource content"}),
}
TEMPLATE = re.compile(r"test://template/([^/]+)/data")


async def read_resource(ctx: Any, params: Any) -> Json:
    uri = str(params.uri)
    match = TEMPLATE.fullmatch(uri)
    if match is not None:
        made = json.dumps({"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"})
        mime, held = "application/json", {"text": made}
    elif uri in RESOURCES:
        mime, held = RESOURCES[uri]
    else:
        raise MCPError(-32602 if ctx.protocol_version >= MODERN else -32002, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": mime, **held}]}


def prompt(name: str, *arguments: str) -> Callable[[Answer], Answer]:
    def register(answer: Answer) -> Answer:
        prompts[name] = (list(arguments), answer)
        return answer

    return register


def says(*blocks: Json) -> Json:
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


@prompt("test_simple_prompt")
async def simple_prompt(ctx: Any, params: Any) -> Json:
    return says(text("This is a simple prompt for testing."))


@prompt("test_prompt_with_arguments", "arg1", "arg2")
async def prompt_with_arguments(ctx: Any, params: Any) -> Json:
    given = params.arguments or {}
    return says(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))


@prompt("test_prompt_with_embedded_resource", "resourceUri")
async def prompt_with_resource(ctx: Any, params: Any) -> Json:
    held = embedded(params.arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
    return says(held, text("Please process the embedded resource above."))


@prompt("test_prompt_with_image")
async def prompt_with_image(ctx: Any, params: Any) -> Json:
    return says(image(), text("Please analyze the image above."))


@prompt("test_input_required_result_prompt")
async def prompt_that_asks(ctx: Any, params: Any) -> Json:
    def step(answers: Json, state: str | None, can: Json) -> Json:
        if "user_context" in answers:
            return {"resultType": "complete", **says(text(json.dumps(answers["user_context"])))}
        return ask(user_context=form("Which context?", schema(("context",), context=WORDS)))

    return await play(ctx, step, params)


# The server.


def hinted(answer: Answer) -> Answer:
    """With the hints of a cacheable result; the SDK leaves them out for handshake clients."""

    async def run(ctx: Any, params: Any) -> Json:
        made = await answer(ctx, params)
        return (
            made if "resultType" in made else {"resultType": "complete", "ttlMs": 2000, "cacheScope": "public", **made}
        )

    return run


async def list_tools(ctx: Any, params: Any) -> Json:
    listed = {**{name: asked for name, (asked, _) in tools.items()}}
    if "test_sometimes_there" in extra:
        listed["test_sometimes_there"] = schema()
    return {"tools": [{"name": name, "description": name, "inputSchema": asked} for name, asked in listed.items()]}


async def call_tool(ctx: Any, params: Any) -> Json:
    if params.name not in tools:
        raise MCPError(-32602, f"Unknown tool: {params.name}")
    return await tools[params.name][1](ctx, params)


async def list_prompts(ctx: Any, params: Any) -> Json:
    listed = [
        {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in arguments]}
        for name, (arguments, _) in prompts.items()
    ]
    return {"prompts": [*listed, *({"name": name, "description": name} for name in extra & {"sometimes_there"})]}


async def get_prompt(ctx: Any, params: Any) -> Json:
    if params.name not in prompts:
        raise MCPError(-32602, f"Unknown prompt: {params.name}")
    return await prompts[params.name][1](ctx, params)


async def list_resources(ctx: Any, params: Any) -> Json:
    return {
        "resources": [{"uri": uri, "name": uri, "mimeType": mime} for uri, (mime, _) in RESOURCES.items()],
    }


async def list_templates(ctx: Any, params: Any) -> Json:
    return {"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]}


async def complete(ctx: Any, params: Any) -> Json:
    return {
        "completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False},
        "resultType": "complete",
    }


async def accept(ctx: Any, params: Any) -> Json:
    return {}


def make_server() -> Server[Any]:
    handlers: dict[str, Any] = {
        "on_list_tools": hinted(list_tools),
        "on_call_tool": call_tool,
        "on_list_prompts": hinted(list_prompts),
        "on_get_prompt": hinted(get_prompt),
        "on_list_resources": hinted(list_resources),
        "on_list_resource_templates": hinted(list_templates),
        "on_read_resource": hinted(read_resource),
        "on_subscribe_resource": accept,
        "on_unsubscribe_resource": accept,
        "on_subscriptions_listen": ListenHandler(bus),
        "on_completion": complete,
        "on_set_logging_level": accept,
    }
    server: Server[Any] = Server(
        NAME,
        version="1",
        get_tool_input_schema=lambda name: tools[name][0] if name in tools else None,
        **handlers,
    )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


class Remembered(EventStore):
    """Events of one run, so that a stream can be taken up again."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        seen = int(last_event_id)
        stream = self._events[seen - 1][0]
        for number, (owner, message) in enumerate(self._events[seen:], start=seen + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def without_the_modern_era(app: Any) -> Any:
    """Refuses what only a modern client sends, the way servers of the handshake revisions do."""
    refusal = (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}'
    )
    kind = [(b"content-type", b"application/json")]

    async def gate(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        if b"io.modelcontextprotocol/" in body:
            await send({"type": "http.response.start", "status": 400, "headers": kind})
            await send({"type": "http.response.body", "body": refusal})
            return
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return waiting.pop() if waiting else await receive()

        await app(scope, again, send)

    return gate


def main() -> None:
    warnings.simplefilter("ignore")
    era, port = sys.argv[1:]
    app = make_server().streamable_http_app(event_store=Remembered(), retry_interval=100)
    served = app if era == "both" else without_the_modern_era(app)
    uvicorn.run(served, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
