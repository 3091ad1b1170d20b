"""The rules of this project that ruff, mypy and import-linter can't check: one finding per line, `make check` runs it.

A hint is printed and fails nothing. Run it as `python -m scripts.lint_house`.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scripts import lint_failures
from scripts.lint_sources import (
    ROOT,
    TESTS,
    Finding,
    Source,
    called,
    in_project,
    names,
    package_sources,
    test_sources,
)

MANY_LINES: Final = 400
PURE_LAYERS: Final = ("protocol/", "core/", "conformance/rules/")
TOUCHES_THE_WORLD: Final = {"open", "print", "input", "exec", "eval", "__import__"}
BOUNDED_WAITS: Final = "tests/support/eventually.py"
PROVED_END_TO_END: Final = ("cli/", "demo/")
"""Packages without a test file for each module: their tests run them as programs."""
WITHOUT_BEHAVIOUR: Final = ("state/ports.py", "upstreams/channel.py", "core/recording.py")
"""Modules of interfaces only: a test could not break anything in them."""
RULES: Final = "conformance/rules/"
"""Each file is one rule. Captures that pass and captures that fail prove it; `tests/conformance/test_rules.py` judges them."""
CHECKS: Final = "conformance/gateway/checks/"
"""Each check is proved by a recording that passes and one that fails; what they share is proved with them."""
REGISTRIES: Final = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "yarn" + "pkg.com",
    "ana" + "conda.org",
)
PLACES: Final = re.compile(
    "|".join(map(re.escape, (*REGISTRIES, f"{ROOT}/", "../" + "shared")))
    + r"|(?<![\w.])/(?:work|root|(?:home|Users)/\w+)/"
)


def main() -> int:
    sources, tests = package_sources(), test_sources()
    for source in sources:
        if (count := source.text.count("\n")) > MANY_LINES:
            print(f"{source.path}:{MANY_LINES}: hint: {count} lines; does it do more than one thing?")
    found = sorted(findings(sources, tests))
    for finding in found:
        print(finding)
    print(f"house rules: {len(found)} findings in {len(sources) + len(tests)} files")
    return 1 if found else 0


def findings(sources: Sequence[Source], tests: Sequence[Source]) -> Iterator[Finding]:
    for source in sources:
        yield from impure(source)
        yield from dropped_tasks(source)
        yield from unproved(source)
    for test in tests:
        yield from sleeping(test)
    yield from lint_failures.lint(sources)
    yield from named_places(project_files())


def impure(source: Source) -> Iterator[Finding]:
    """The pure layers neither wait nor touch the world: tests give them values and look at values. Imports: `.importlinter`."""
    if not source.name.startswith(PURE_LAYERS):
        return
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await):
            yield source.finding(node, "waits, in a layer that is pure")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TOUCHES_THE_WORLD:
            yield source.finding(node, f"calls {node.func.id}, in a layer that is pure")


def dropped_tasks(source: Source) -> Iterator[Finding]:
    """A task nobody holds may be collected while it runs, and nobody sees its exception. Ruff (RUF006) knows only `asyncio.` and
    loops it has seen being made; this knows every receiver but a task group."""
    groups = {
        name
        for node in source.nodes
        if isinstance(node, ast.withitem) and called(node.context_expr) == "TaskGroup"
        for name in names(node.optional_vars)
    }
    for node in source.nodes:
        if isinstance(node, ast.Expr) and called(node.value) in {"create_task", "ensure_future"}:
            assert isinstance(node.value, ast.Call)
            owner = node.value.func
            if not isinstance(owner, ast.Attribute) or not set(names(owner.value)) & groups:
                yield source.finding(node, "drops its task: keep it, and await or cancel it")


def unproved(source: Source) -> Iterator[Finding]:
    """A reader finds the tests of a module by its name."""
    path = Path(source.name)
    if path.stem.startswith("__") or source.name in WITHOUT_BEHAVIOUR or source.name.startswith(PROVED_END_TO_END):
        return
    if source.name.startswith(RULES):
        code = re.sub(r"^([a-z]+)([0-9]+)_.*", r"\1-\2", path.stem).upper()
        captures = TESTS / "conformance" / "fixtures" / code
        for kind in ("pass", "fail"):
            if not any(captures.glob(f"{kind}_*.json")):
                yield Finding(source.path, 1, f"{in_project(captures)} has no capture {kind}_*.json")
    elif source.name.startswith(CHECKS):
        for code in re.findall(r'^    code = "(GWP-\d{3})"$', source.text, re.MULTILINE):
            recordings = TESTS / "conformance" / "gateway" / "fixtures" / code
            for kind in ("pass", "fail"):
                if not (recordings / f"{kind}.json").is_file():
                    yield Finding(source.path, 1, f"{in_project(recordings)} has no recording {kind}.json")
    elif not (proof := TESTS / path.with_name(f"test_{path.name}")).is_file():
        yield Finding(source.path, 1, f"its tests are missing: {in_project(proof)}")


def sleeping(test: Source) -> Iterator[Finding]:
    """A sleep guesses how busy the machine is. `asyncio.sleep(0)` only lets others run; ruff (ASYNC110) finds it in a loop."""
    if is_program(test) or test.path == BOUNDED_WAITS:
        return
    yields_only = [ast.dump(ast.Constant(0))]
    for node in test.nodes:
        if not isinstance(node, ast.Call) or called(node) != "sleep":
            continue
        if [ast.dump(argument) for argument in node.args] != yields_only:
            yield test.finding(node, "sleeps: wait for an event, or `await eventually(...)`")


def is_program(source: Source) -> bool:
    """Whether a file plays an upstream in a process of its own, which may be as slow as it was told to be."""
    runs = (ast.unparse(node) for node in source.tree.body if isinstance(node, ast.Expr | ast.If))
    name = Path(source.path).name
    return not name.startswith("test_") and any("__main__" in text or "asyncio.run(" in text for text in runs)


def project_files() -> Iterator[Path]:
    """Every file of the project; what `.gitignore` names belongs to somebody's machine."""
    ignored = {".git", *(line.strip("/") for line in (ROOT / ".gitignore").read_text().split() if line.endswith("/"))}
    for folder, folders, files in os.walk(ROOT):
        inside = Path(folder).relative_to(ROOT)
        folders[:] = [name for name in folders if not {name, (inside / name).as_posix()} & ignored]
        yield from (Path(folder) / name for name in sorted(files) if name != ".git")  # a worktree has such a file


def named_places(files: Iterator[Path]) -> Iterator[Finding]:
    for path in files:
        try:
            yield from named_places_in(path, path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue


def named_places_in(path: Path, text: str) -> Iterator[Finding]:
    """The project runs on any machine and with any mirror: no file names a folder of one machine or a package registry."""
    for found in PLACES.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Finding(in_project(path), line, f"names {found.group()}, a place outside the project")


if __name__ == "__main__":
    sys.exit(main())
