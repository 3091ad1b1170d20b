"""Measures permissions and views in this process: 1,000 tools of ten servers, 200 rules, 50 classes of clients.

`python -m bench policy` prints a row for each goal. Exit code 1 when a goal is missed. What a call costs more is the difference of the
gates `resolve_tool` and `authorize` with and without permissions, the least of several rounds: whatever else the machine does only adds.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from pactgate.app import Gateway, build
from pactgate.catalog.catalog import ServerCatalog
from pactgate.catalog.surfaces import CatalogState, Surfaces, ViewSettings
from pactgate.catalog.views import View
from pactgate.config.model import Config
from pactgate.config.sections.permissions import CallerClass, PermissionRule
from pactgate.config.sections.views import ViewSection
from pactgate.core.context import ExecutionContext
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.principal import Principal
from pactgate.core.values import Caller, Silence, Tool, Traits
from pactgate.pipeline.call import Call
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.policy.permissions.rules import Permissions
from pactgate.protocol.messages import Request, decode, encode_json, encode_request
from pactgate.protocol.versions import LATEST_MODERN, Era

SERVERS: Final = 10
TOOLS: Final = 100
RULES: Final = 200
CLASSES: Final = 50
_TIMES: Final = 2000
_ROUNDS: Final = 15
_CATEGORIES: Final = ("query", "mutation", "scan", "execution")
_GIVEN: Final = {"name": "s3.get_17", "arguments": {"amount": 7, "text": "t" * 32}}
_PARAMS: Final = encode_json(_GIVEN)
_INDIRECT: Final = encode_json({"name": "call_tool", "arguments": _GIVEN})
_LAZY: Final = Config(views={"lazy": ViewSection(tools=("*",), surface="search")})
_WHOLE: Final = Config(views={"whole": ViewSection(tools=("*",))})


class Row(Struct, frozen=True):
    title: str
    value: float
    limit: float
    unit: str

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit


def tools() -> dict[str, ServerCatalog]:
    return {
        f"s{server}": ServerCatalog(tools=tuple(_tool(f"s{server}", number) for number in range(TOOLS)))
        for server in range(SERVERS)
    }


def _tool(server: str, number: int) -> Tool:
    name = f"{'get' if number % 2 else 'set'}_{number}"
    definition = {
        "name": name,
        "description": f"Tool {number} of {server}, which does something. " * 3,
        "inputSchema": {"type": "object"},
    }
    return Tool(
        server,
        name,
        f"{server}.{name}",
        f"{server}__{name}",
        encode_json(definition),
        encode_json({**definition, "name": f"{server}__{name}"}),
        str(number),
        traits=Traits(category=_CATEGORIES[number % 4], is_known=True),
    )


def rules(*, has_condition: bool = False) -> Config:
    """Every kind of selector; all classes have some rules in common and some of their own."""
    callers = {f"c{number}": CallerClass(tokens=(f"t{number}",)) for number in range(CLASSES)}
    made = [
        PermissionRule(
            allow=("category:query", f"s{number % SERVERS}.*"),
            to=(f"c{number % CLASSES}", f"c{(number * 7) % CLASSES}"),
        )
        for number in range(RULES - 21)
    ]
    made += [PermissionRule(deny=(f"s{number % SERVERS}.set_{number}*",), to=("*",)) for number in range(20)]
    condition = "arguments.amount < 500" if has_condition else None
    made.append(PermissionRule(allow=("s3.get_17",), to=("t", "*"), when=condition))
    if has_condition:
        made = [rule for rule in made if rule.allow is None or "s3.*" not in rule.allow]
        made = [*made, *[PermissionRule(allow=("s1.get_1*",), to=("c1",))] * (RULES - len(made))]
    return Config(callers=callers, permissions=tuple(made))


def _state() -> CatalogState:
    by_server = tools()
    return CatalogState(
        by_server=by_server,
        built_in={},
        last=by_server,
        known={},
        reserved=frozenset(by_server),
        missing={},
        instructions={},
        server_info=b"{}",
        own_resources=(),
    )


def measure() -> list[Row]:
    plain = _per_call_us(Config())
    return [
        Row("a call with permissions, more CPU", _per_call_us(rules()) - plain, 0.5, "us"),
        Row(
            "a call with a condition on its arguments, more CPU",
            _per_call_us(rules(has_condition=True)) - plain,
            6.0,
            "us",
        ),
        Row("call_tool over the direct call, more CPU", _per_call_us(_LAZY, "lazy", _INDIRECT) - plain, 15.0, "us"),
        *_compile_rows(),
        _view_row(),
    ]


def _per_call_us(config: Config, view: str | None = None, params: bytes = _PARAMS) -> float:
    """The CPU time of the gates that find the tool, and of the one that permissions are about."""
    gateway = build(config, lambda event: None)
    surfaces = Surfaces(_state(), Permissions(config) if config.permissions else None, _views(config))
    gateway.connections.surfaces = surfaces
    caller = Caller(principal=Principal("t1"), era=Era.MODERN, version=LATEST_MODERN, channel=Silence(), view=view)
    timeouts = TimeoutQueue(FaultBarrier(lambda event: None))
    parse, resolve = gateway.tool_call.gates[:2]
    authorize = next(gate for gate in gateway.tool_call.gates if gate.name == "authorize")
    request = decode(encode_request(b"1", "tools/call", params))
    assert isinstance(request, Request)
    is_guarded = bool(config.permissions)

    def run() -> float:
        calls = [_call(gateway, caller, request, timeouts) for _ in range(_TIMES)]
        started = time.process_time()
        for call in calls:
            parse(call)
            resolve(call)
            if is_guarded:
                authorize(call)
        spent_s = time.process_time() - started
        assert calls[0].tool is not None
        assert calls[0].tool.full_name == _GIVEN["name"]
        return spent_s

    return _least_s(run) / _TIMES * 1e6


def _call(gateway: Gateway, caller: Caller, request: Request, timeouts: TimeoutQueue) -> Call:
    ctx = ExecutionContext("tools/call", caller, 0.0)
    return Call(
        ctx=ctx, request=request, policies=gateway.policies, timeouts=timeouts, limit=gateway.policies.default_limit
    )


def _compile_rows() -> list[Row]:
    state, config = _state(), rules()
    callers = [Principal(f"t{number}") for number in range(CLASSES)]
    whole: list[float] = []
    longest: list[float] = []
    lists: list[float] = []
    for _ in range(5):
        started = time.process_time()
        surfaces = Surfaces(state, Permissions(config))
        pieces = [_timed(partial(surfaces.of_principal, principal)) for principal in callers]
        whole.append(time.process_time() - started)
        longest.append(max(pieces))
        catalog = surfaces.of_principal(callers[1])
        lists.append(_timed(partial(catalog.listing, "tools/list", None, LATEST_MODERN)))
    return [
        Row("compile for 50 classes, in all", min(whole) * 1e3, 200.0, "ms"),
        Row("the longest pause in between", min(longest) * 1e3, 20.0, "ms"),
        Row("tools/list of a class, the first time", min(lists) * 1e3, 1.0, "ms"),
    ]


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _view_row() -> Row:
    """The list of a view of all tools: made when it is first asked for."""
    made = []
    for _ in range(5):
        catalog = Surfaces(_state(), None, _views(_WHOLE)).of_principal(Principal("t1"), "whole")
        made.append(_timed(partial(catalog.listing, "tools/list", None, LATEST_MODERN)))
    return Row("tools/list of a view of 1,000 tools, the first time", min(made) * 1e3, 1.0, "ms")


def _views(config: Config) -> ViewSettings:
    return ViewSettings({name: View(name, one) for name, one in config.views.items()}, config.callers)


def _least_s(work: Callable[[], float]) -> float:
    gc.disable()
    try:
        return min(work() for _ in range(_ROUNDS))
    finally:
        gc.enable()


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench policy", description=__doc__)
    parser.parse_args(words)
    rows = measure()
    for row in rows:
        print(
            f"{row.title:<55} {row.value:9.3f} {row.unit:<3} at most {row.limit:g} {'' if row.is_met else 'MISSED'}".rstrip()
        )
    return 0 if all(row.is_met for row in rows) else 1
