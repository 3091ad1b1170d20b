"""Lints raises and handlers: a failure is one of the failure table, or is caught by name where it becomes one.

A new exception of the package needs a handler that names it; a built-in exception needs a line in BUILT_IN.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from scripts.lint_sources import Finding, Source, called, handlers, names

AUTHORS = ("runner/", "demo/pocket.py", "tools.py", "tool_values.py", "testing.py", "pytest_plugin.py")
"""Code that runs in the process of the author of a tool or a test: an exception there is meant for the author, not for a client."""

BUGS_OF_OURS = {"ContextError", "IllegalTransitionError"}
"""Raised when code of ours breaks an invariant of ours. Nothing catches them but the kernel, which says `internal`."""

BUILT_IN = {
    ("__init__.py", "AttributeError"): "what a module says of a name it does not have",
    ("audit/chain_file.py", "OSError"): "becomes a failure at the start, and later what `audit.onFailure` says",
    ("capture/http_relay.py", "ConnectionResetError"): "an OSError, which ends this connection of the relay",
    ("capture/json_stream.py", "ValueError"): "told to the JSON reader, which makes NotJsonError of it",
    ("capture/router.py", "NotImplementedError"): "a message given to what carries requests: a bug of ours",
    ("cli/call.py", "ValueError"): "told to the JSON reader, which makes CommandError of it",
    ("cli/gateway_client.py", "TimeoutError"): "becomes GatewayClientError a few lines on",
    ("conformance/rule.py", "NotImplementedError"): "a rule without a check is no rule",
    ("config/file_access.py", "TimeoutError"): "an OSError: a file that can't be written, told by whoever changes it",
    ("conformance/live.py", "OSError"): "a capture that can't be written, told by the command line",
    ("core/frozen.py", "TypeError"): "an attempt to change what is sealed: a bug of ours",
    ("demo/*", "ValueError"): "arguments a tool of the demo refuses, which become a result with isError",
    ("core/script_metadata.py", "ValueError"): "becomes INVALID_CONFIG in upstreams/tool_interpreter.py",
    ("protocol/canonical_json.py", "ValueError"): "told to the decoder, which makes a ValidationError of it",
    ("pipeline/kernel.py", "CancelledError"): "a request that was cancelled, as whoever waits for it knows it",
    ("policy/schema/time_limit.py", "ValueError"): "how the schema engine is told no",
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
    ("upstreams/http/connect.py", "OSError"): "becomes CONNECTION_FAILED a few lines on",
    ("upstreams/http/connect.py", "_ProxyUnreachableError"): "an OSError, becomes CONNECTION_FAILED",
    ("upstreams/http/tunnel.py", "TunnelReplyError"): "an OSError, becomes CONNECTION_FAILED in connect.py",
    ("upstreams/http/tunnel.py", "TunnelRefusedError"): "an OSError, becomes CONNECTION_FAILED in connect.py",
    ("upstreams/process/launcher.py", "OSError"): "becomes LaunchError in the same program",
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
    "cli/bundles.py": "methods and passwords of a zip file that the library does not know",
    "cli/call.py": "the JSON somebody typed",
    "cli/doctor/machine.py": "a Python without pidfd",
    "cli/doctor/servers.py": "a loop that is closed already",
    "core/conditions.py": "values of a call that the operator's condition does not fit",
    "cli/server_table.py": "a time another gateway wrote",
    "upstreams/http/refusals.py": "a date somebody's server wrote",
}
"""Where an exception that mostly means a bug of ours may be caught, and whose doing it is there."""


DRIVES_COROUTINES = {"pipeline/running_request.py"}
"""Where a cancellation ends a coroutine that is stepped by hand, as a task would end it."""

MAX_BUILT_IN_IN_A_TUPLE: Final = 5
"""More built-in exceptions than this in one tuple are a broad `except`, spelt out."""


def lint(sources: Sequence[Source]) -> Iterator[Finding]:
    """Every finding of the rules about raises and handlers."""
    package = _Package([source for source in sources if not source.name.startswith(AUTHORS)])
    yield from package.unknown_raises()
    yield from package.uncaught_classes()
    yield from package.handlers_that_hide()
    yield from package.broad_tuples()
    yield from package.stale_entries()


class _Package:
    """The sources with what is known of their classes and functions."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    # -- the rules

    def unknown_raises(self) -> Iterator[Finding]:
        for source in self._sources:
            for node, name, text in raised(source):
                if not self._is_known(source, name, text):
                    message = f"raises {text}: make it a GatewayFailure, or add what becomes of it to BUILT_IN"
                    yield source.finding(node, message)

    def uncaught_classes(self) -> Iterator[Finding]:
        ours = {name for name in self._bases if self._is_our_exception(name) and not self._is_failure(name)}
        caught = self._caught & ours
        for name in sorted(ours - BUGS_OF_OURS):
            if not any(self._descends(name, one) for one in caught):
                source, node = self._defined[name]
                yield source.finding(node, f"no handler names {name}: catch it where it becomes a failure")
        for name in sorted(BUGS_OF_OURS - ours):
            yield Finding("scripts/lint_failures.py", 1, f"BUGS_OF_OURS names {name}, which does not exist")

    def handlers_that_hide(self) -> Iterator[Finding]:
        for source in self._sources:
            for node in handlers(source):
                caught = set(names(node.type))
                is_passed_on = source.name in DRIVES_COROUTINES or any(
                    isinstance(inner, ast.Raise) for inner in ast.walk(node)
                )
                if "CancelledError" in caught and not is_passed_on:
                    yield source.finding(node, "swallows a cancellation: raise it again")
                if (hidden := caught & HIDES_BUGS) and source.name not in MAY_CATCH:
                    yield source.finding(node, f"catches {', '.join(sorted(hidden))}: add the reason to MAY_CATCH")

    def broad_tuples(self) -> Iterator[Finding]:
        """`except Exception` needs a reason (ruff: BLE001); a way around that is `suppress` or a long tuple of built-ins."""
        for source in self._sources:
            for node in source.nodes:
                if suppresses_everything(node):
                    yield source.finding(node, "suppresses every exception: catch it, with the reason beside it")
                if is_spelt_out(node):
                    yield source.finding(node, "is a broad except, spelt out: write `except Exception` and its reason")

    def stale_entries(self) -> Iterator[Finding]:
        known = {(source.name, name) for source in self._sources for _, name, _ in raised(source)}
        files = {source.name for source in self._sources}
        stale = [
            f"BUILT_IN names {name} in {file}"
            for file, name in BUILT_IN
            if not file.endswith("*") and (file, name) not in known
        ]
        stale += [f"MAY_CATCH names {file}" for file in MAY_CATCH if file not in files]
        for entry in stale:
            yield Finding("scripts/lint_failures.py", 1, f"{entry}, which is gone")

    # -- what is known of the package

    @cached_property
    def _defined(self) -> dict[str, tuple[Source, ast.ClassDef]]:
        return {
            node.name: (source, node)
            for source in self._sources
            for node in source.nodes
            if isinstance(node, ast.ClassDef)
        }

    @cached_property
    def _bases(self) -> dict[str, list[str]]:
        """Every class of the package with the names of its bases."""
        found: dict[str, list[str]] = {}
        for source in self._sources:
            for node in source.nodes:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).extend(name for base in node.bases for name in names(base))
        return found

    @cached_property
    def _returns(self) -> dict[str, dict[str, set[str]]]:
        """Functions by name and file, with the names in the annotation of what they return."""
        found: dict[str, dict[str, set[str]]] = {}
        for source in self._sources:
            for node in source.nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
                    said = set(re.findall(r"\w+", ast.unparse(node.returns)))
                    found.setdefault(node.name, {}).setdefault(source.name, set()).update(said)
        return found

    @cached_property
    def _caught(self) -> set[str]:
        """Every name a handler catches, those in a constant tuple included."""
        groups = {
            name: names(node.value)
            for source in self._sources
            for node in source.nodes
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Tuple)
            for name in names(node.target)
        }
        handled = [name for source in self._sources for node in handlers(source) for name in names(node.type)]
        return {name for one in handled for name in groups.get(one, [one])}

    def _descends(self, name: str, root: str) -> bool:
        return name == root or any(self._descends(base, root) for base in self._bases.get(name, []) if base != name)

    def _is_failure(self, name: str) -> bool:
        return self._descends(name, "GatewayFailure")

    def _is_our_exception(self, name: str) -> bool:
        return name in self._bases and any(self._descends(name, root) for root in ("Exception", "ValueError"))

    def _is_known(self, source: Source, name: str, text: str) -> bool:
        returned = self._returned_by(name, source)
        made = returned & self._bases.keys()
        return (
            self._is_failure(name)
            or self._is_our_exception(name)
            or bool(made and all(self._is_failure(one) or self._is_our_exception(one) for one in made))
            or returned == {"Exception"}
            or self._is_declared_failure(name, source)
            or (source.name, name) in BUILT_IN
            or (f"{source.name.split('/')[0]}/*", text) in BUILT_IN
        )

    def _returned_by(self, function: str, source: Source) -> set[str]:
        """What a function of this name returns: the one of the same file, the one that is imported, else any."""
        places = self._returns.get(function, {})
        near = places.get(source.name) or places.get(imported(source).get(function, ""))
        return near or {name for said in places.values() for name in said}

    def _is_declared_failure(self, name: str, source: Source) -> bool:
        """`raise failure`, where the file declares the type of that name."""
        said = re.findall(rf"\b{name}: (?:[\w.]+\[)?([\w |.]+)", source.text)
        parts = {part.strip() for text in said for part in text.split("|")} - {"None"}
        return bool(parts) and all(self._is_failure(part) or part.endswith("Error") for part in parts)


def suppresses_everything(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or called(node) != "suppress":
        return False
    return bool({"Exception", "BaseException"} & {name for one in node.args for name in names(one)})


def is_spelt_out(node: ast.AST) -> bool:
    return isinstance(node, ast.Tuple) and sum(map(is_built_in, names(node))) > MAX_BUILT_IN_IN_A_TUPLE


def is_built_in(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def imported(source: Source) -> dict[str, str]:
    """Names a file imports from other files of the package, with the file they come from."""
    return {
        alias.asname or alias.name: f"{node.module.removeprefix('pactgate.').replace('.', '/')}.py"
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pactgate.")
        for alias in node.names
    }


def raised(source: Source) -> Iterator[tuple[ast.Raise, str, str]]:
    """Each `raise` with the last name and the text of what it raises."""
    for node in source.nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            options = node.exc.values if isinstance(node.exc, ast.BoolOp) else [node.exc]
            for option in options:
                what = option.func if isinstance(option, ast.Call) else option
                yield node, names(what)[-1], ast.unparse(what)
