"""What a scripted MCP server answers: the texts of its script, byte for byte, in either era, over whichever transport.

Writes each message it received and sent to a file, one JSON line each. Must not: import the gateway, or know how messages travel.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pactgate.conformance.gateway.script import ScriptStep, ServerScript, named
from pactgate.conformance.gateway.server_dialogue import (
    LEVELS,
    NOT_ASKED,
    PREFIX,
    STATE,
    Dialogue,
    Question,
    ScriptedCall,
    Send,
    questions_of,
    rounds_done,
)
from pactgate.conformance.gateway.server_log import ServerLog

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_PV: Final = f"{PREFIX}protocolVersion"
_ASK_S: Final = 15.0
_LOOK_S: Final = 0.02
_MAX_LISTENERS: Final = 200


class ScriptedServer:
    """What is the same over both transports: the answers, the listeners, the record."""

    def __init__(self, script: ServerScript) -> None:
        self.script = script
        self.log = ServerLog(script.tag, Path(script.record))
        self._listeners: dict[str, Send] = {}
        """Where notifications about lists go, by the id of a subscription (modern) or of a stream (legacy: it begins with a blank)."""
        self._listening = threading.Lock()
        self._shown = False
        self._dialogue = Dialogue()
        self.stays = False
        """Whether the end of the input and SIGTERM are ignored."""
        self._count = 0
        self._lock = threading.Lock()
        self._tools = {named(tool.name, script.tag): tool for tool in script.tools}
        self._prompts = {named(prompt.name, script.tag): prompt for prompt in script.prompts}
        self._resources = {named(resource.uri, script.tag): resource for resource in script.resources}
        self._info = f'{{"name":"gwp-{script.tag}","version":"1"}}'

    def take(
        self,
        data: str,
        send: Send,
        headers: tuple[tuple[str, str], ...] = (),
        session: str = "",
        is_gone: Callable[[], bool] = lambda: False,
    ) -> tuple[str, int] | None:
        """Act on one message. The response and its HTTP status, or None where there is none to give."""
        exchange = self.next_id()
        try:
            message = json.loads(data)
        except ValueError:
            message = None
        if not isinstance(message, dict) or "method" not in message:
            question = self._dialogue.questions.get(str(message.get("id"))) if isinstance(message, dict) else None
            label = "" if question is None else question.label
            self.log.add(is_sent=False, data=data, label=label, exchange=exchange, headers=headers)
            if question is not None:
                question.answered.set()
            return None
        call = ScriptedCall(
            message,
            _is_modern(message),
            lambda text: self._sent(send, text, label, exchange),
            exchange,
            session,
            is_gone,
        )
        label = call.label
        if call.message["method"] == "notifications/cancelled":
            label = self._dialogue.cancel(call) or label
        if "id" not in message:
            self.log.add(is_sent=False, data=data, label=label, exchange=exchange, headers=headers)
            return None
        self._dialogue.begin(call)
        self.log.add(is_sent=False, data=data, label=label, exchange=exchange, headers=headers)
        try:
            found = self._answer(call)
        finally:
            self._dialogue.end(call)
        if found is not None:
            self.log.add(is_sent=True, data=found[0], label=label, exchange=exchange, status=found[1])
        return found

    def listen(self, key: str, send: Send, begin: Callable[[], None] = lambda: None) -> bool:
        """Open a stream of notifications; whether there is room. Who has seen it begin misses no change that he then causes."""
        with self._listening:
            if len(self._listeners) >= _MAX_LISTENERS:
                return False
            begin()
            self._listeners[key] = send
        return True

    def end_listening(self, key: str) -> None:
        with self._listening:
            self._listeners.pop(key, None)

    def next_id(self) -> str:
        with self._lock:
            self._count += 1
            return f"{os.getpid()}-{self._count}"

    def changed(self) -> None:
        """Notify everybody who listens that the list of tools has changed."""
        self._shown = True
        with self._listening:
            listeners = [*self._listeners.items()]
        for key, send in listeners:
            meta = "" if key.startswith(" ") else f',"params":{{"_meta":{{"{PREFIX}subscriptionId":{key}}}}}'
            data = f'{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"{meta}}}'
            self._sent(send, data, "notifications/tools/list_changed", key)

    def _sent(self, send: Send, data: str, label: str, exchange: str) -> None:
        self.log.add(is_sent=True, data=data, label=label, exchange=exchange)
        try:
            send(data)
        except (OSError, ValueError):  # whoever asked has gone
            self.log.add(is_sent=False, data="", label="gone", exchange=exchange)

    def _answer(self, call: ScriptedCall) -> tuple[str, int] | None:
        era = self.script.era
        if call.is_modern and era == "legacy":
            return _error(call, '{"code":-32601,"message":"no such method"}'), 200
        version = call.meta.get(_PV)
        if era != "legacy" and version != MODERN and (call.is_modern or era == "modern"):
            requested = json.dumps(version)
            data = f'{{"supported":["{MODERN}"],"requested":{requested}}}'
            return _error(call, f'{{"code":-32022,"message":"2026-07-28 only","data":{data}}}'), 400
        method = call.message["method"]
        answer = getattr(self, "_on_" + method.replace("/", "_"), None)
        if answer is None:
            return _error(call, '{"code":-32601,"message":"no such method"}'), 404 if call.is_modern else 200
        found = answer(call)
        return None if found is None else (found, call.status)

    def _on_initialize(self, call: ScriptedCall) -> str:
        asked = call.params.get("protocolVersion")
        version = asked if asked in LEGACY else LEGACY[-1]
        self._dialogue.open(call)
        return _plain(
            call, f'"protocolVersion":"{version}","capabilities":{self._capabilities()},"serverInfo":{self._info}'
        )

    def _on_ping(self, call: ScriptedCall) -> str:
        return _plain(call, "")

    def _on_logging_setLevel(self, call: ScriptedCall) -> str:  # noqa: N802 - the method of the specification
        return _plain(call, "") if self._dialogue.set_level(call) else _no_level(call)

    def _on_server_discover(self, call: ScriptedCall) -> str:
        return self._result(
            call, f'"supportedVersions":["{MODERN}"],"capabilities":{self._capabilities()},{_HINTS}', meta=""
        )

    def _on_tools_list(self, call: ScriptedCall) -> str:
        tag = self.script.tag
        return self._page(
            call, "tools", [t.definition(tag) for t in self.script.tools if self._shown or not t.is_hidden]
        )

    def _on_prompts_list(self, call: ScriptedCall) -> str:
        return self._page(call, "prompts", [f'{{"name":"{n}",{p.members}}}' for n, p in self._prompts.items()])

    def _on_resources_list(self, call: ScriptedCall) -> str:
        return self._page(call, "resources", [f'{{"uri":"{u}",{r.members}}}' for u, r in self._resources.items()])

    def _on_resources_templates_list(self, call: ScriptedCall) -> str:
        return self._page(call, "resourceTemplates", [])

    def _on_prompts_get(self, call: ScriptedCall) -> str:
        prompt = self._prompts.get(call.params.get("name", ""))
        return _unknown(call) if prompt is None else self._result(call, prompt.result)

    def _on_resources_read(self, call: ScriptedCall) -> str:
        resource = self._resources.get(call.params.get("uri", ""))
        if resource is None:
            return _unknown(call)
        return self._result(call, resource.result + (f",{_HINTS}" if call.is_modern else ""))

    def _on_subscriptions_listen(self, call: ScriptedCall) -> str | None:
        """The stream stays open; the transport ends it with the connection."""
        meta = f'"_meta":{{"{PREFIX}subscriptionId":{call.id}}}'
        kept = json.dumps(call.params.get("notifications", {}))
        acknowledged = (
            '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":'
            f"{kept},{meta}}}}}"
        )
        self.listen(call.id, call.send, lambda: call.send(acknowledged))
        return None

    def _on_tools_call(self, call: ScriptedCall) -> str | None:
        tool = self._tools.get(call.params.get("name", ""))
        if tool is None:
            return _unknown(call)
        if call.is_modern and call.meta.get(f"{PREFIX}logLevel", "info") not in LEVELS:
            return _no_level(call)
        for step in tool.steps:
            if (early := self._do(step, call)) is not None:
                return early or None
        if tool.error:
            return _error(call, tool.error)
        return self._result(call, tool.result, tool.meta)

    def _do(self, step: ScriptStep, call: ScriptedCall) -> str | None:
        """One step. A text ends the call: it is the response, or none if it is empty."""
        if step.do == "wait":
            threading.Event().wait(step.seconds)
        elif step.do == "raw":
            for _ in range(step.count):
                call.send(step.data)
        elif step.do in ("show", "stay"):
            self._become(step.do)
        elif step.do == "crash":
            os._exit(3)
        elif step.do == "hang":
            threading.Event().wait(self.script.lifetime_s)
            return ""
        elif step.do == "freeze":
            with self.log.lock:  # nothing is recorded and so nothing is sent, until it is over
                threading.Event().wait(step.seconds or self.script.lifetime_s)
        else:
            return self._converse(step, call)
        return None

    def _converse(self, step: ScriptStep, call: ScriptedCall) -> str | None:
        """The steps in which the client takes part."""
        if step.do == "notify":
            if "@TOKEN@" not in step.data or "progressToken" in call.meta:
                call.send(step.data.replace("@TOKEN@", json.dumps(call.meta.get("progressToken"))))
                threading.Event().wait(step.seconds)
        elif step.do == "log":
            if self._dialogue.takes(call, json.loads(step.data)["level"]):
                call.send(f'{{"jsonrpc":"2.0","method":"notifications/message","params":{step.data}}}')
                threading.Event().wait(step.seconds)
        elif step.do == "until_cancelled":
            return self._until_cancelled(step.seconds, call)
        elif step.do == "ask":
            return self._ask(step.data, call)
        return None

    def _become(self, what: str) -> None:
        if what == "show":
            self.changed()
        else:
            self.stays = True

    def _until_cancelled(self, limit_s: float, call: ScriptedCall) -> str | None:
        """Wait until the client gives the call up. A modern client closes its stream; the record has that as a message without data."""
        ends = time.monotonic() + limit_s
        while time.monotonic() < ends:
            if call.cancelled.wait(_LOOK_S):
                return ""
            if call.is_modern and call.is_gone():
                self.log.add(is_sent=False, data="", label=call.label, exchange=call.exchange)
                return ""
        return None

    def _ask(self, data: str, call: ScriptedCall) -> str | None:
        """Ask the client: in a modern session by an input-required result, in a legacy one by requests."""
        questions = questions_of(data)
        if missing := self._dialogue.missing(call, questions):
            if not call.is_modern:
                text = f'"content":[{{"type":"text","text":"{NOT_ASKED}"}}],"isError":true'
                return self._result(call, text)
            call.status = 400
            needed = json.dumps({"requiredCapabilities": missing})
            return _error(call, f'{{"code":-32021,"message":"{NOT_ASKED}","data":{needed}}}')
        if call.is_modern:
            call.rounds += 1
            if call.rounds <= rounds_done(call):
                return None
            state = json.dumps(f"{STATE}{call.rounds}")
            return self._result(call, f'"inputRequests":{data},"requestState":{state}', kind="input_required")
        asked = {f"ask-{self.next_id()}": request for request in questions.values()}
        waiting = {id_: Question(call.label) for id_ in asked}
        self._dialogue.questions |= waiting
        for id_, request in asked.items():
            call.send(f'{{"jsonrpc":"2.0","id":"{id_}",{bytes(request).decode()[1:]}')
        is_answered = all(question.answered.wait(_ASK_S) for question in waiting.values())
        for id_ in asked:
            del self._dialogue.questions[id_]
        return None if is_answered else _error(call, '{"code":-32603,"message":"the client did not answer"}')

    def _capabilities(self) -> str:
        offered = ['"tools":{"listChanged":true}', '"logging":{}']
        offered += ['"prompts":{}'] if self._prompts else []
        offered += ['"resources":{}'] if self._resources else []
        return f"{{{','.join(offered)}}}"

    def _page(self, call: ScriptedCall, member: str, entries: list[str]) -> str:
        size = self.script.page_size or len(entries) or 1
        cursor = call.params.get("cursor", "page-0")
        number = cursor.removeprefix("page-")
        start = int(number) * size if number.isdigit() else len(entries) + 1
        if start > len(entries):
            return _error(call, '{"code":-32602,"message":"no such cursor"}')
        following = f',"nextCursor":"page-{int(number) + 1}"' if start + size < len(entries) else ""
        hints = f",{_HINTS}" if call.is_modern else ""
        return self._result(call, f'"{member}":[{",".join(entries[start : start + size])}]{following}{hints}')

    def _result(self, call: ScriptedCall, members: str, meta: str = "", kind: str = "complete") -> str:
        if call.is_modern:
            own = f'"{PREFIX}serverInfo":{self._info}'
            return _plain(call, f'{members},"resultType":"{kind}","_meta":{{{own}{"," if meta else ""}{meta}}}')
        return _plain(call, members + (f',"_meta":{{{meta}}}' if meta else ""))


_HINTS: Final = '"ttlMs":0,"cacheScope":"private"'


def _is_modern(message: dict[str, Any]) -> bool:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and _PV in meta


def _plain(call: ScriptedCall, members: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{call.id},"result":{{{members}}}}}'


def _error(call: ScriptedCall, error: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{call.id},"error":{error}}}'


def _unknown(call: ScriptedCall) -> str:
    return _error(call, '{"code":-32602,"message":"there is none of this name"}')


def _no_level(call: ScriptedCall) -> str:
    return _error(call, '{"code":-32602,"message":"there is no such log level"}')
