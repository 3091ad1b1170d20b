"""The shape of the house: what may know what, what is written once, and what never stands in the sources."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pactgate"
TESTS = ROOT / "tests"
MAX_LINES = 400

PURE_LAYERS = ("protocol", "core", "conformance/rules")
BROAD_EXCEPT_STANDS_IN = ["pipeline/kernel.py"]
PROVED_END_TO_END = ("cli", "demo")
"""Packages without a test file for each module: they are run as the programs they are."""
WITHOUT_BEHAVIOUR = ("state/ports.py", "upstreams/channel.py", "core/recording.py")
"""Modules of interfaces only: there is nothing in them that a test could break."""
RULES = "conformance/rules/"
"""Each file is one rule, proved by captures that pass and captures that fail; `tests/conformance/test_rules.py` judges them."""

SOURCES = sorted(SOURCE.rglob("*.py"))
TEST_SOURCES = sorted(TESTS.rglob("*.py"))


def in_source(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def in_project(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def names(node: ast.expr | None) -> list[str]:
    """The last part of each name in an expression such as `Exception`, `builtins.Exception` or `(A, b.C)`."""
    if isinstance(node, ast.Tuple):
        return [name for element in node.elts for name in names(element)]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def called(node: ast.AST) -> str | None:
    """`asyncio.sleep(0)` is a call of "sleep"."""
    return next(iter(names(node.func)), None) if isinstance(node, ast.Call) else None


def project_files() -> Iterator[Path]:
    """Everything that belongs to the project: what `.gitignore` names is somebody's own."""
    ignored = {".git", *(line.strip("/") for line in (ROOT / ".gitignore").read_text().split() if line.endswith("/"))}
    for folder, folders, files in os.walk(ROOT):
        inside = Path(folder).relative_to(ROOT)
        folders[:] = [name for name in folders if not {name, (inside / name).as_posix()} & ignored]
        yield from (
            Path(folder) / name for name in sorted(files) if name != ".git"
        )  # a worktree has a file of that name


@pytest.mark.requirement("S4/SIB-4")
def test_the_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-logo"], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [p for p in SOURCES if in_source(p).startswith(PURE_LAYERS)], ids=in_source)
def test_a_pure_layer_neither_waits_nor_touches_the_world(path: Path) -> None:
    waiting = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    touching = {"open", "print", "input", "exec", "eval", "__import__"}
    for node in ast.walk(tree(path)):
        assert not isinstance(node, waiting), f"line {node.lineno} waits"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in touching, f"line {node.lineno} calls {node.func.id}"


@pytest.mark.requirement("S4/R1")
def test_everything_is_caught_in_one_place_only() -> None:
    broad = [
        in_source(path)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.ExceptHandler) and catches_everything(node.type))
        or (isinstance(node, ast.Call) and called(node) == "suppress" and any(map(catches_everything, node.args)))
    ]
    assert broad == BROAD_EXCEPT_STANDS_IN


def catches_everything(what: ast.expr | None) -> bool:
    return what is None or bool({"Exception", "BaseException"} & set(names(what)))


@pytest.mark.parametrize("path", SOURCES, ids=in_source)
def test_a_source_file_can_be_read_in_one_sitting_and_says_what_it_is_for(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", SOURCES, ids=in_source)
def test_a_reader_finds_the_proof_of_a_file_beside_its_name(path: Path) -> None:
    name = in_source(path)
    if path.stem.startswith("__") or name in WITHOUT_BEHAVIOUR or name.split("/")[0] in PROVED_END_TO_END:
        return
    if name.startswith(RULES):
        code = re.sub(r"^([a-z]+)([0-9]+)_.*", r"\1-\2", path.stem).upper()
        captures = TESTS / "conformance" / "fixtures" / code
        assert list(captures.glob("pass_*.json")), f"{in_project(captures)} has no capture that passes"
        assert list(captures.glob("fail_*.json")), f"{in_project(captures)} has no capture that fails"
        return
    proof = TESTS / path.relative_to(SOURCE).with_name(f"test_{path.name}")
    assert proof.is_file(), f"{in_project(proof)} is missing"


@pytest.mark.parametrize("path", SOURCES, ids=in_source)
def test_every_task_has_an_owner(path: Path) -> None:
    groups = {
        name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.withitem) and called(node.context_expr) == "TaskGroup"
        for name in names(node.optional_vars)
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Expr) and called(node.value) in {"create_task", "ensure_future"}:
            assert isinstance(node.value, ast.Call)
            owner = node.value.func
            assert isinstance(owner, ast.Attribute), f"line {node.lineno} drops its task"
            assert set(names(owner.value)) & groups, f"line {node.lineno} drops its task"


@pytest.mark.parametrize("path", TEST_SOURCES, ids=in_project)
def test_no_test_sleeps(path: Path) -> None:
    if is_program(path):
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and called(node) == "sleep":
            yields_only = [ast.dump(argument) for argument in node.args] == [ast.dump(ast.Constant(0))]
            assert yields_only, f"line {node.lineno}: wait on an event, bounded, instead of sleeping"


def is_program(path: Path) -> bool:
    """One that plays an upstream in a process of its own, and may be as slow as it was told to be."""
    runs = (ast.unparse(node) for node in tree(path).body if isinstance(node, ast.Expr | ast.If))
    return not path.name.startswith("test_") and any("__main__" in text or "asyncio.run(" in text for text in runs)


def test_the_project_names_no_place_on_a_machine_and_no_package_registry() -> None:
    hosts = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "yarn" + "pkg.com", "ana" + "conda.org")
    places = (str(ROOT) + "/", "../" + "shared")
    folders = re.compile(r"(?<![\w.])/(?:work|root|(?:home|Users)/\w+)/")
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{in_project(path)}: {word}" for word in (*hosts, *places, *folders.findall(text)) if word in text]
    assert not found
