"""Every way something can go wrong in our sources ends in a failure of the one table, or is caught by name where that is made of it.

All raises and all handlers are walked. A new exception of ours needs a handler that names it; a built-in one needs a line here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_architecture import SOURCES as ALL_SOURCES
from tests.test_architecture import in_source, names, tree

AUTHORS = ("runner/", "demo/pocket.py", "tools.py", "testing.py", "pytest_plugin.py")
"""What runs in the process of whoever writes a tool or a test: there an exception is told to its author, not to a caller."""
SOURCES = [path for path in ALL_SOURCES if not in_source(path).startswith(AUTHORS)]

BUGS_OF_OURS = {"ContextError", "IllegalTransition"}
"""Raised when code of ours breaks an invariant of ours. Nothing catches them but the kernel, which says `internal`."""

BUILT_IN = {
    ("__init__.py", "AttributeError"): "what a module says of a name it does not have",
    ("audit/chain_file.py", "OSError"): "becomes a failure at the start, and later what `audit.onFailure` says",
    ("capture/http_relay.py", "ConnectionResetError"): "an OSError, which ends this connection of the relay",
    ("capture/json_stream.py", "ValueError"): "told to the JSON reader, which makes NotJsonError of it",
    ("capture/recorder.py", "NotImplementedError"): "a message given to what carries requests: a bug of ours",
    ("cli/call.py", "ValueError"): "told to the JSON reader, which makes BadArgumentsError of it",
    ("cli/gateway_client.py", "TimeoutError"): "becomes GatewayProblem a few lines on",
    ("cli/*", "typer.Exit"): "an exit code",
    ("conformance/rule.py", "NotImplementedError"): "a rule without a check is no rule",
    ("conformance/live.py", "OSError"): "a capture that can't be written, told by the command line",
    ("core/frozen.py", "TypeError"): "an attempt to change what is sealed: a bug of ours",
    ("demo/loop.py", "ValueError"): "told to the JSON reader, which makes a parse error of it",
    ("pipeline/kernel.py", "CancelledError"): "a request that was cancelled, as whoever waits for it knows it",
    ("policy/schema/validation.py", "ValueError"): "how the schema engine is told no",
    ("protocol/framing.py", "ValueError"): "an event of ours that can't be written: a bug of ours",
    (
        "protocol/era_bridge.py",
        "ValidationError",
    ): "how a round that can't be read is told; caught where rounds are read",
    ("state/memory_cache.py", "TypeError"): "a value that could change was to be kept: a bug of ours",
    ("state/memory_cache.py", "ValueError"): "limits that contradict each other: a bug of ours",
    (
        "upstreams/process/child_reaper.py",
        "ValueError",
    ): "a group that is no child's was to be signalled: a bug of ours",
    ("upstreams/http/pool.py", "OSError"): "becomes CONNECTION_FAILED where the pool dials",
    ("upstreams/process/launcher.py", "OSError"): "becomes Refusal in the same program",
    ("upstreams/openapi/names.py", "AssertionError"): "two operations with one digest: a bug of ours",
    ("upstreams/rest/response.py", "LookupError"): "becomes UNDECODABLE_RESPONSE a few lines on",
    ("upstreams/process/stdio.py", "RuntimeError"): "a channel was opened twice: a bug of ours",
}
"""Built-in exceptions that may be raised, each with what becomes of it."""

HIDES_BUGS = {"AssertionError", "AttributeError", "NameError", "NotImplementedError", "RuntimeError", "TypeError"}
MAY_CATCH = {
    "library.py": "arguments of a library caller that can't be written as JSON",
    "audit/audit_log.py": "a loop that has ended without waiting for the log",
    "capture/source.py": "the JSON of somebody's file",
    "cli/allocator.py": "a C library without that function",
    "cli/call.py": "the JSON somebody typed",
    "cli/doctor/machine.py": "a Python without pidfd",
    "cli/doctor/servers.py": "a loop that is closed already",
    "cli/server_table.py": "a time another gateway wrote",
    "upstreams/http/refusals.py": "a date somebody's server wrote",
}
"""Where an exception that mostly means a bug of ours may be caught, and whose doing it is there."""


@cache
def classes() -> dict[str, list[str]]:
    """Every class of ours with the names of its bases."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).extend(name for base in node.bases for name in names(base))
    return found


def descends(name: str, root: str) -> bool:
    return name == root or any(descends(base, root) for base in classes().get(name, []) if base != name)


def is_failure(name: str) -> bool:
    return descends(name, "GatewayFailure")


def is_exception_of_ours(name: str) -> bool:
    return name in classes() and any(descends(name, root) for root in ("Exception", "ValueError"))


@cache
def makers() -> dict[str, dict[str, set[str]]]:
    """Functions by name and file, with the names in the annotation of what they return."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in SOURCES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
                said = set(re.findall(r"\w+", ast.unparse(node.returns)))
                found.setdefault(node.name, {}).setdefault(in_source(path), set()).update(said)
    return found


@cache
def imported(file: str) -> dict[str, str]:
    """Names a file imports from others of ours, with the file they come from."""
    path = next(path for path in SOURCES if in_source(path) == file)
    return {
        alias.asname or alias.name: f"{node.module.removeprefix('pactgate.').replace('.', '/')}.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pactgate.")
        for alias in node.names
    }


def made_by(function: str, file: str) -> set[str]:
    """What a function of this name returns: the one of the same file, the one that is imported, else any."""
    places = makers().get(function, {})
    near = places.get(file) or places.get(imported(file).get(function, ""))
    return near or {name for said in places.values() for name in said}


def raised(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, last name and text of whatever is raised."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            options = node.exc.values if isinstance(node.exc, ast.BoolOp) else [node.exc]
            for option in options:
                what = option.func if isinstance(option, ast.Call) else option
                yield node.lineno, names(what)[-1], ast.unparse(what)


def is_declared_failure(name: str, path: Path) -> bool:
    """`raise failure`, where the file says what that is."""
    said = re.findall(rf"\b{name}: (?:[\w.]+\[)?([\w |.]+)", path.read_text(encoding="utf-8"))
    parts = {part.strip() for text in said for part in text.split("|")} - {"None"}
    return bool(parts) and all(is_failure(part) or part.endswith("Error") for part in parts)


@pytest.mark.requirement("S4/R1")
@pytest.mark.parametrize("path", SOURCES, ids=in_source)
def test_whatever_is_raised_is_a_failure_of_the_table_or_becomes_one(path: Path) -> None:
    file = in_source(path)
    for line, name, text in raised(path):
        made = {one for one in made_by(name, file) if one in classes()}
        is_known = (
            is_failure(name)
            or is_exception_of_ours(name)
            or (made and all(is_failure(one) or is_exception_of_ours(one) for one in made))
            or made_by(name, file) == {"Exception"}
            or is_declared_failure(name, path)
            or (file, name) in BUILT_IN
            or (f"{file.split('/')[0]}/*", text) in BUILT_IN
        )
        assert is_known, f"{file}:{line} raises {text}: make it a GatewayFailure, or say in BUILT_IN what becomes of it"


@pytest.mark.requirement("S4/R1")
def test_every_exception_of_ours_is_caught_by_name_somewhere() -> None:
    nodes = [node for path in SOURCES for node in ast.walk(tree(path))]
    groups = {
        name: names(node.value)
        for node in nodes
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Tuple)
        for name in names(node.target)
    }
    handled = [name for node in nodes if isinstance(node, ast.ExceptHandler) for name in names(node.type)]
    caught = {name for one in handled for name in groups.get(one, [one])}
    ours = {name for name in classes() if is_exception_of_ours(name) and not is_failure(name)}
    lost = {name for name in ours if not any(descends(name, one) for one in caught & ours)}
    assert lost == BUGS_OF_OURS


@pytest.mark.requirement("S4/R1")
@pytest.mark.parametrize("path", SOURCES, ids=in_source)
def test_no_handler_swallows_a_cancellation_or_hides_a_bug(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = set(names(node.type))
        if "CancelledError" in caught:
            assert any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), f"line {node.lineno} swallows it"
        if caught & HIDES_BUGS:
            assert in_source(path) in MAY_CATCH, (
                f"line {node.lineno} catches {caught & HIDES_BUGS}: say why in MAY_CATCH"
            )


def test_the_lists_name_nothing_that_is_gone() -> None:
    known = {(in_source(path), name) for path in SOURCES for _, name, _ in raised(path)}
    assert {key for key in BUILT_IN if not key[0].endswith("*")} <= known
    assert set(MAY_CATCH) <= {in_source(path) for path in SOURCES}
