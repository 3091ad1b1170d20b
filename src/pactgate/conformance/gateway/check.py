"""The base classes of checks of the profile. The checks stand under `checks`, by theme; `gateway/__init__.py` says how to add one.

`play` sends and records, with the `Lab` it is given; `judge` looks at the recording and nothing else, so that a run can be judged again
from its file. Must not: touch the world other than through the lab.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Final

from pactgate.conformance.gateway.client import REQUEST_S
from pactgate.conformance.gateway.exact_json import MISSING, at, differences, parse, shown
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, Frame, ScriptedExchange, ScriptedSide
from pactgate.conformance.gateway.script import Scenario, named
from pactgate.conformance.rule import Evidence, RequirementLevel, Rule

PROFILE_VERSION: Final = "0.1"
"""Scores of one version can be compared. It changes with the checks."""
INVALID_PARAMS: Final = -32602
_SHOWN_CHARS: Final = 90


class Family(StrEnum):
    """The groups of checks, in the order of reports."""

    FIDELITY = "fidelity"
    ERAS = "eras"
    NAMES = "names and lists"
    PROGRESS = "progress, cancellation, logging"
    ASKING = "asking back"
    ERRORS = "errors"
    ISOLATION = "isolation"
    FAULTS = "faults behind"
    BAD_INPUT = "bad input before"
    OWNERSHIP = "ownership"
    TRACING = "tracing and auth"


class Check(Rule, Scenario):
    """What all checks have. A check whose level is ADVICE rests on what clients rely on."""

    family: ClassVar[Family]
    level: ClassVar[RequirementLevel] = RequirementLevel.ADVICE
    needs_gateway: ClassVar[bool] = False
    """Whether there is nothing to ask without a gateway between: two eras don't meet, and lists are those of one server."""
    runs_alone: ClassVar[bool] = False
    """Whether it disturbs others: it then runs after them, alone."""

    def __init_subclass__(cls) -> None:
        """A check is of the family whose folder it stands in."""
        folder = cls.__module__.split(".")[-2].upper()
        if folder in Family.__members__:
            cls.family = Family[folder]
        if hasattr(cls, "family"):
            cls.category = cls.family.value

    async def play(self, lab: Lab) -> None:
        """Send what is to be judged. Raises NotApplicableError where this gateway can't be asked."""

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        """Every place that is wrong."""
        return iter(())

    def evidence(self, index: int, pointer: str, message: str, level: RequirementLevel | None = None) -> Evidence:
        return Evidence(exchange=index, pointer=pointer, message=message, level=level or self.level)

    def labels(self) -> set[str]:
        """The names under which the servers record what this check caused."""
        entries = [tool.name for tool in self.tools] + [p.name for p in self.prompts] + [r.uri for r in self.resources]
        return {named(name, tag) for name in entries for tag in self.servers}


class RefusalCheck(Check):
    """What a client asks for under the label `refused` has to be refused as invalid."""

    level = RequirementLevel.SHOULD
    refused: ClassVar[str] = "unknown"

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges(self.refused):
            code = error_code(exchange)
            if code != INVALID_PARAMS:
                instead = "no error" if code is None else f"the code {code}"
                yield self.evidence(
                    exchange.index, "/error/code", f"{exchange.route.era} client: it answers with {instead}"
                )


class FidelityCheck(Check):
    """The first tool is called on every route. What stands under `pointers` of its result, and under `request_pointers` of the
    request's params, must arrive as it was sent; with `as_written`, also its notation and order.

    How to fix
        Pass the text of the result on, instead of a value that was parsed and written again.

    Reference
        Nothing in the specification lets an intermediary change a result; all revisions.
    """

    spec = "server/tools#tool-result"
    arguments: ClassVar[str] = "{}"
    params: ClassVar[str] = ""
    meta: ClassVar[str] = ""
    pointers: ClassVar[tuple[str, ...]] = ()
    request_pointers: ClassVar[tuple[str, ...]] = ()
    as_written: ClassVar[bool] = False
    answer_s: ClassVar[float] = REQUEST_S
    member: ClassVar[str] = "result"
    """`error` for a tool that answers with an error."""

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            client = await lab.client(route)
            tool = lab.exposed(route, self.tools[0].name)
            label = named(self.tools[0].name, route.server)
            await client.call(
                lab.record_on(route),
                tool,
                self.arguments,
                members=self.params,
                meta=self.meta,
                label=label,
                timeout_s=self.answer_s,
            )

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            server, label = exchange.route.server, exchange.request.label
            if self.pointers:
                sent = recording.at_server(server, label, is_sent=True)
                yield from self._compare_response(exchange, [frame for _, frame in sent])
            if self.request_pointers:
                yield from self._compare_request(exchange, recording.at_server(server, label, is_sent=False))

    def _compare_response(self, exchange: ScriptedExchange, sent: list[Frame]) -> Iterator[Evidence]:
        got = value_of(exchange.response)
        if not sent:
            yield self.evidence(
                exchange.index, "", f"{exchange.route}: the server never got the call{_instead(exchange)}"
            )
            return
        if at(got, f"/{self.member}") is MISSING:
            yield self.evidence(exchange.index, "", f"{exchange.route}: no {self.member} came back{_instead(exchange)}")
            return
        if at(got, "/result/isError") is True and at(value_of(sent[-1]), "/result/isError") is not True:
            came = "the result came as an error of the tool"
            yield self.evidence(exchange.index, "/result/isError", f"{exchange.route}: {came}{_instead(exchange)}")
            return
        for pointer in self.pointers:
            place = f"/{self.member}{pointer}"
            one, other = at(value_of(sent[-1]), place), at(got, place)
            for where, how in differences(one, other, place, as_written=self.as_written):
                yield self.evidence(exchange.index, where, f"{exchange.route}: {how}")

    def _compare_request(self, exchange: ScriptedExchange, got: list[tuple[int, Frame]]) -> Iterator[Evidence]:
        """A client of each era calls the same tool; the request that is most like this one counts."""
        sent = value_of(exchange.request)
        if not got:
            yield self.evidence(
                exchange.index, "", f"{exchange.route}: the server never got the call{_instead(exchange)}"
            )
            return
        tried = [list(self._request_differences(exchange, index, sent, value_of(frame))) for index, frame in got]
        yield from min(tried, key=len)

    def _request_differences(
        self, exchange: ScriptedExchange, index: int, sent: object, got: object
    ) -> Iterator[Evidence]:
        for pointer in self.request_pointers:
            place = f"/params{pointer}"
            for where, how in differences(at(sent, place), at(got, place), place, as_written=self.as_written):
                yield self.evidence(index, where, f"{exchange.route}: {how}")


class DefinitionCheck(Check):
    """What stands under `pointers` of the definition of the first tool must be listed as the server wrote it.

    How to fix
        Pass the definition on as the server wrote it; change its name only.
    """

    pointers: ClassVar[tuple[str, ...]] = ()
    as_written: ClassVar[bool] = False

    async def play(self, lab: Lab) -> None:
        for route in lab.routes(self):
            await lab.record_definition(route, self.tools[0])

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for index, frame in enumerate(recording.frames):
            if frame.side is ScriptedSide.CLIENT and frame.route is not None:
                written = next(
                    f for f in recording.frames if f.side is ScriptedSide.SERVER and f.who == frame.route.server
                )
                for pointer in self.pointers:
                    one, other = at(value_of(written), pointer), at(value_of(frame), pointer)
                    for where, how in differences(one, other, pointer, as_written=self.as_written):
                        yield self.evidence(index, where, f"{frame.route}: {how}")


def value_of(frame: Frame | None) -> object:
    """The JSON value of a message, exactly; an empty object for what is none."""
    try:
        return parse(frame.data) if frame is not None else {}
    except ValueError:
        return {}


def error_code(exchange: ScriptedExchange) -> object:
    """The code of the error that came back; None where none came."""
    error = plain_value(exchange.response).get("error")
    return error.get("code") if isinstance(error, dict) else None


def plain_value(frame: Frame | None) -> dict[str, object]:
    """The message as ordinary values, for checks that don't compare numbers."""
    try:
        value = json.loads(frame.data) if frame is not None else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _instead(exchange: ScriptedExchange) -> str:
    """What came instead of a result, for a sentence."""
    response = exchange.response
    if response is None:
        return "; nothing came back"
    if not response.data:
        return f"; {response.label}"
    places = (at(value_of(response), place) for place in ("/error/message", "/result/content/0/text"))
    told = next((shown(text) for text in places if text is not MISSING), response.data[:_SHOWN_CHARS])
    return f"; HTTP {response.status}: {told}"
