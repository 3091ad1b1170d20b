"""Loads a file of tools: every tool that it declares, or every problem with it, each with file and line.

Loading runs the file's code, so the runner does it in a separate thread and stays responsive. A reload also reloads the modules
beside the file. Must not: serve half a file. Enforces the refusals of S2/MCP-002 to S2/MCP-004.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Final

from msgspec import Struct

from pactgate.runner.signature import ServedTool, serve
from pactgate.tools import MARK, Declaration, collected

MAX_TOOLS: Final = 500
MODULE: Final = "pactgate_tools_file"
MAX_WATCHED: Final = 64


class LoadProblem(Struct, frozen=True):
    """`line` is 0 for a problem of the whole file."""

    file: str
    line: int
    tool: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.tool}: {self.message}" if self.tool else f"{place}: {self.message}"


class LoadError(Exception):
    """The file can't be served, for all these reasons."""

    def __init__(self, problems: Iterable[LoadProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class LoadedTools(Struct, frozen=True):
    """What a file offers: its tools and prompts by name, its resources and templates by URI. `files` are those whose change requires
    a reload."""

    tools: dict[str, ServedTool]
    prompts: dict[str, ServedTool]
    resources: dict[str, ServedTool]
    templates: dict[str, ServedTool]
    about: str
    files: tuple[str, ...]


def load(path: Path) -> LoadedTools:
    """Run the file and collect its tools. Raises LoadError, and whatever the file's own code raises."""
    forget(path)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise LoadError([LoadProblem(str(path), 0, "", "This is not a Python file; its name must end with .py.")])
    module = importlib.util.module_from_spec(spec)
    declared: list[Declaration] = []
    token = collected.set(declared)
    sys.modules[MODULE] = module
    try:
        spec.loader.exec_module(module)
    finally:
        collected.reset(token)
    served = _take(module, declared, path)
    return LoadedTools(
        tools={one.name: one for one in served if one.kind == "tool"},
        prompts={one.name: one for one in served if one.kind == "prompt"},
        resources={one.uri: one for one in served if one.kind == "resource" and not one.names},
        templates={one.uri: one for one in served if one.kind == "resource" and one.names},
        about=(module.__doc__ or "").strip(),
        files=tuple(neighbours(path)),
    )


def problems_of(error: BaseException, path: Path) -> tuple[LoadProblem, ...]:
    """The problems of a failed load, for the author of the file."""
    if isinstance(error, LoadError):
        return error.problems
    if isinstance(error, SyntaxError):
        return (LoadProblem(error.filename or str(path), error.lineno or 0, "", f"SyntaxError: {error.msg}."),)
    if isinstance(error, FileNotFoundError) and error.filename == str(path):
        return (LoadProblem(str(path), 0, "", "There is no such file."),)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = (frames[-1].lineno or 0) if frames else 0
    return (LoadProblem(str(path), line, "", f"{type(error).__name__}: {error}"),)


def forget(path: Path) -> None:
    """Drop the modules of this folder, so that they are imported again."""
    importlib.invalidate_caches()
    folder = str(path.parent)
    for name, module in [*sys.modules.items()]:
        if _is_beside(module, folder):
            del sys.modules[name]


def neighbours(path: Path) -> list[str]:
    """The file, and the modules of its folder that it imports."""
    folder = str(path.parent)
    beside = [str(module.__file__) for module in [*sys.modules.values()] if _is_beside(module, folder)]
    return list(dict.fromkeys([str(path), *beside]))[:MAX_WATCHED]


def _is_beside(module: ModuleType, folder: str) -> bool:
    """Whether a module is an installed package below the folder, as in a virtual environment: it does not change with the file."""
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__" or not isinstance(file, str) or "site-packages" in file:
        return False
    return os.path.dirname(file) == folder or os.path.dirname(os.path.dirname(file)) == folder


def _take(module: ModuleType, declared: list[Declaration], path: Path) -> list[ServedTool]:
    """The declarations of the file, and those it imported."""
    own = [one for one in declared if one.file == str(path)]
    known = {id(one) for one in own}
    marked = (getattr(value, MARK, None) for value in vars(module).values())
    taken = [one for one in marked if isinstance(one, Declaration) and id(one) not in known]
    served: list[ServedTool] = []
    problems: list[LoadProblem] = []
    seen: dict[tuple[str, str], Declaration] = {}
    for one in (*own, *taken):
        key = one.uri or one.name
        first = seen.setdefault((one.kind, key), one)
        if first is not one:
            called = "URI" if one.uri else "name"
            problems.append(_problem(one, f"There is a {one.kind} of this {called} already, in line {first.line}."))
        problems += [_problem(one, text) for text in one.problems]
        offer = serve(one) if not one.problems else []
        if isinstance(offer, ServedTool):
            served.append(offer)
        else:
            problems += [_problem(one, text) for text in offer]
    if not seen:
        problems.append(LoadProblem(str(path), 0, "", "It declares no tool: mark a function with @tool."))
    if len(seen) > MAX_TOOLS:
        problems.append(LoadProblem(str(path), 0, "", f"It declares {len(seen)} tools; {MAX_TOOLS} are allowed."))
    if problems:
        raise LoadError(problems)
    return served


def _problem(declared: Declaration, text: str) -> LoadProblem:
    return LoadProblem(declared.file, declared.line, declared.name, text)
