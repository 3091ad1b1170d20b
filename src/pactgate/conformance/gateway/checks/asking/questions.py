"""What the checks of asking back share: tools that ask, clients that answer, and what arrived of both. Must not: wait without a bound."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct

from pactgate.conformance.gateway.check import Check, plain_value, value_of
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.exact_json import MISSING, Members, at, differences, parse
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, ScriptStep, named
from pactgate.conformance.gateway.server_dialogue import NOT_ASKED
from pactgate.conformance.rule import Evidence

CAPABILITIES: Final = '{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}'
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
ATTRIBUTABLE: Final = ("lh", "mh", "dh", "ms")
"""The servers whose questions say which call they are about. That of a legacy server over stdio does not: GWP-116 asks one alone."""
FORM: Final = (
    '{"method":"elicitation/create","params":{"mode":"form","message":"Which \\u00e9?","requestedSchema":{"type":"object",'
    '"properties":{"b":{"type":"string","title":"B","minLength":1},"a":{"type":"number","minimum":0.5}},"required":["b"]}}}'
)
SAMPLING: Final = (
    '{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"\\u00e9?"}}],'
    '"modelPreferences":{"hints":[{"name":"m"}],"speedPriority":0.25},"systemPrompt":"Be brief.","maxTokens":10,'
    '"stopSequences":[],"metadata":{"n":9007199254740993,"none":null}}}'
)
ASK_ROOTS: Final = '{"method":"roots/list"}'
ANSWERS: Final[Mapping[str, str]] = {
    ELICIT: '"result":{"action":"accept","content":{"b":"\\u00e9","a":1.5}}',
    SAMPLE: '"result":{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m","stopReason":"endTurn"}',
    ROOTS: '"result":{"roots":[{"uri":"file:///gwp","name":"\\u00e9"}]}',
}
_KINDS: Final = (ELICIT, SAMPLE, ROOTS)


class Asked(Struct, frozen=True):
    """One question or one answer, where it was seen. `value` are the params of a question, or the members of an answer's message."""

    index: int
    frame: Frame
    method: str
    value: Any
    key: str
    """The id of the request, or the key in the input-required result."""


def asking(name: str, *rounds: Mapping[str, str] | str) -> ScriptedTool:
    """A tool that asks, in one or several rounds: a question, or several at once by their keys."""
    steps = []
    for number, asked in enumerate(rounds, 1):
        by_key = {f"q{number}": asked} if isinstance(asked, str) else asked
        steps.append(ScriptStep("ask", data="{" + ",".join(f'"{key}":{text}' for key, text in by_key.items()) + "}"))
    return ScriptedTool(name=name, steps=tuple(steps))


async def play_asking(check: Check, lab: Lab, answers: Mapping[str, str], *, capabilities: str = CAPABILITIES) -> None:
    """Call every tool on every route with clients that answer so."""
    async with lab.listeners(check, capabilities=capabilities) as clients:
        for client in clients.values():
            client.answers = answers
        calls = [ask(lab, route, client, tool.name) for route, client in clients.items() for tool in check.tools]
        await lab.in_turn(calls)


async def play_answering(check: Check, lab: Lab, answers: Mapping[str, str]) -> None:
    """The same. Raises NotApplicableError where no client was asked at all: that is the finding of other checks."""
    await play_asking(check, lab, answers)
    came = [frame.data for frame in lab.frames if frame.side is ScriptedSide.CLIENT and not frame.is_sent]
    if not any(kind in data for data in came for kind in _KINDS):
        raise NotApplicableError("No question arrives at all (GWP-100 to GWP-103).")


async def ask(lab: Lab, route: ClientRoute, client: ScriptedClient, name: str) -> None:
    label = named(name, route.server)
    await client.call_and_answer(lab.record_on(route), lab.exposed(route, name), label=label, timeout_s=lab.call_s)


def questions(recording: CheckRecording, side: ScriptedSide) -> Iterator[Asked]:
    """What servers asked, or what clients were asked, in the words of either era."""
    for index, frame in enumerate(recording.frames):
        if frame.side is side and frame.is_sent is (side is ScriptedSide.SERVER):
            message = value_of(frame)
            if isinstance(message, Members) and message.get("method") in _KINDS and "id" in message:
                yield Asked(index, frame, message["method"], message.get("params", Members()), str(message["id"]))
            entries = at(message, "/result/inputRequests")
            for key, entry in entries.items() if isinstance(entries, Members) else ():
                yield Asked(index, frame, str(at(entry, "/method")), entry.get("params", Members()), key)


def answers_at(recording: CheckRecording, server: str, label: str) -> Iterator[Asked]:
    """What reached a server as answers to its questions about this."""
    asked = {
        a.key: a.method
        for a in questions(recording, ScriptedSide.SERVER)
        if a.frame.who == server and a.frame.label == label
    }
    for index, frame in recording.at_server(server, label, is_sent=False):
        message = value_of(frame)
        if at(message, "/method") is MISSING and isinstance(message, Members):
            key = str(message.get("id"))
            yield Asked(index, frame, asked.get(key, "?"), message, key)
        responses = at(message, "/params/inputResponses")
        for key, answer in responses.items() if isinstance(responses, Members) else ():
            yield Asked(index, frame, asked.get(key, "?"), Members(result=answer), key)


def judge_questions(check: Check, recording: CheckRecording) -> Iterator[Evidence]:
    """On every route the client got what the server asked, each member as it was."""
    written = {(a.frame.who, a.frame.label, a.method): a for a in questions(recording, ScriptedSide.SERVER)}
    came = list(questions(recording, ScriptedSide.CLIENT))
    for route, who, label, index in calls(recording):
        sent = [asked for key, asked in written.items() if key[:2] == (route.server, label)]
        if not sent:
            yield check.evidence(index, "", f"{route}: the server could not ask{_instead(recording, who, label)}")
        for one in sent:
            got = [
                a for a in came if a.frame.who == who and a.frame.label in (label, "listen") and a.method == one.method
            ]
            tried = [list(_differences(one.value, other.value)) for other in got]
            if not tried:
                yield check.evidence(index, "", f"{route}: the client was not asked{_instead(recording, who, label)}")
                continue
            best = min(tried, key=len)
            for where, how in best:
                yield check.evidence(got[tried.index(best)].index, f"/params{where}", f"{route}: {how}")


def judge_answers(
    check: Check,
    recording: CheckRecording,
    answers: Mapping[str, str],
    methods: Collection[str],
    *,
    only: Collection[str] = (),
) -> Iterator[Evidence]:
    """On every route the server got the answers of the client, and the client the result of its call.

    With `only`, these members of an answer tell it from the others; that the rest is as it was is for other checks.
    """
    routes: dict[tuple[str, str], int] = {}
    for route, who, label, index in calls(recording):
        routes[route.server, label] = routes.get((route.server, label), 0) + 1
        if not _has_result(recording, who, label):
            yield check.evidence(index, "/result", f"{route}: the call has no result{_instead(recording, who, label)}")
    for (server, label), number in routes.items():
        found = list(answers_at(recording, server, label))
        for method in methods:
            got = [answer for answer in found if answer.method == method]
            if len(got) < number:
                yield check.evidence(0, "", f"{server} got {len(got)} of {number} answers to {method}")
            expected = parse(f"{{{answers[method]}}}")
            member = next(iter(expected))
            if only:
                expected[member] = Members({name: value for name, value in expected[member].items() if name in only})
            for answer in got:
                for where, how in _differences(expected[member], answer.value.get(member, MISSING)):
                    yield check.evidence(answer.index, f"/{member}{where}", f"the answer to {server}: {how}")


def calls(recording: CheckRecording) -> Iterator[tuple[ClientRoute, str, str, int]]:
    """The route, client and label of every call that can be judged, once: further rounds and replies belong to it.

    A gateway that shares a legacy server over stdio among its clients rightly declares no capabilities to it, and is not judged there.
    """
    seen = {
        (frame.route, frame.who, frame.label)
        for frame in recording.frames
        if frame.route is not None and frame.route.server == "ls" and NOT_ASKED in frame.data
    }
    for index, frame in enumerate(recording.frames):
        if (
            frame.side is ScriptedSide.CLIENT
            and frame.is_sent
            and frame.route is not None
            and '"tools/call"' in frame.data
        ):
            call = (frame.route, frame.who, frame.label)
            if call not in seen:
                seen.add(call)
                yield (*call, index)


def _has_result(recording: CheckRecording, who: str, label: str) -> bool:
    last = _last(recording, who, label)
    result = plain_value(last).get("result")
    return isinstance(result, dict) and isinstance(result.get("content"), list) and not result.get("isError")


def _last(recording: CheckRecording, who: str, label: str) -> Frame | None:
    """The last response about a call."""
    frames = [
        f
        for f in recording.frames
        if f.side is ScriptedSide.CLIENT and f.who == who and f.label == label and not f.is_sent
    ]
    return next((frame for frame in reversed(frames) if at(value_of(frame), "/id") is not MISSING), None)


def _instead(recording: CheckRecording, who: str, label: str) -> str:
    """What came instead, for a sentence."""
    message = plain_value(_last(recording, who, label))
    error = message.get("error")
    if isinstance(error, dict):
        return f"; the error {error.get('code')}: {str(error.get('message'))[:80]}"
    result = message.get("result")
    return f"; {str(result)[:90]}" if isinstance(result, dict) else "; nothing came back"


def _differences(sent: Any, got: Any) -> Iterator[tuple[str, str]]:
    """Every member that was sent must have come; what a gateway adds at the top, like `_meta`, is no failure."""
    if not isinstance(sent, Members):
        yield from differences(sent, got)
        return
    for name, value in sent.items():
        yield from differences(value, at(got, f"/{name}"), f"/{name}")


class QuestionCheck(Check):
    """What the tools ask arrives at the client of their call as it was asked.

    How to fix
        Pass the question on as it is; change only how the era of the client spells a question.
    """

    servers: ClassVar[tuple[str, ...]] = ATTRIBUTABLE

    async def play(self, lab: Lab) -> None:
        await play_asking(self, lab, ANSWERS)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_questions(self, recording)


class AnswerCheck(Check):
    """What the client answers to the question `asks` arrives at the server as it was answered."""

    servers: ClassVar[tuple[str, ...]] = ATTRIBUTABLE
    asks: ClassVar[str]
    answer: ClassVar[str]
    """The members of its message."""

    async def play(self, lab: Lab) -> None:
        await play_answering(self, lab, {self.asks: self.answer})

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_answers(self, recording, {self.asks: self.answer}, (self.asks,))
