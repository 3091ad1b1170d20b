"""`@tool`: what a declaration must say, what it must not, and that importing it costs nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from msgspec import UNSET

from pactgate import Call, NotAnswered, Retryable, ToolError, prompt, resource, tool
from pactgate.core.contract import Contract, DeclaredCode, Effect
from pactgate.tools import MARK, Declaration, DeclarationError

GOOD: dict[str, Any] = {"category": "query", "idempotent": True, "effects": []}


class Told:
    """A host that remembers what a call told it."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def progress(self, *words: Any) -> None:
        self.told.append(words)

    def log(self, *words: Any) -> None:
        self.told.append(words)

    def ask(self, question: str, kind: Any) -> Future[Any]:
        raise AssertionError(question)


def declared(function: Callable[..., Any] | None = None, **words: Any) -> Declaration:
    def plain() -> None:
        """Does nothing."""

    found = getattr(tool(**{**GOOD, **words})(function or plain), MARK)
    assert isinstance(found, Declaration)
    return found


def problems(**words: Any) -> str:
    with pytest.raises(DeclarationError) as refused:
        declared(**words)
    return str(refused.value)


def test_a_marked_function_stays_what_it_was() -> None:
    @tool(**GOOD)
    def double(number: int) -> int:
        """Doubles."""
        return 2 * number

    assert double(4) == 8
    assert double.__name__ == "double"


def test_a_declaration_becomes_a_contract() -> None:
    found = declared(
        category="mutation",
        effects=["network", "network", Effect.WRITE],
        errors={"BUSY": Retryable("Later."), "GONE": "Not there.", "SERVICE_UNAVAILABLE": "Down."},
        cache_ttl_ms=5,
        name="other",
        title="Other",
        description="Something else.",
    )
    assert (found.name, found.title, found.description) == ("other", "Other", "Something else.")
    assert found.contract == Contract(
        "mutation",
        True,
        (Effect.NETWORK, Effect.WRITE),
        (
            DeclaredCode("BUSY", "Later.", True),
            DeclaredCode("GONE", "Not there."),
            DeclaredCode("SERVICE_UNAVAILABLE", "Down.", True),
        ),
        5,
    )


@pytest.mark.requirement("S2/MCP-004")
def test_a_tool_that_says_nothing_of_itself_counts_as_one_that_may_do_anything_and_be_done_once() -> None:
    @tool
    def bare() -> None:
        """Something."""

    contract = getattr(bare, MARK).contract
    assert (contract.category, contract.idempotent, contract.effects) == ("mutation", False, tuple(Effect))
    assert contract.assumed == ("category", "idempotent", "effects")
    query = declared(category="query", effects=UNSET).contract
    assert query is not None
    assert query.effects == (Effect.READ, Effect.NETWORK, Effect.PROCESS)
    assert query.assumed == ("effects",)


def test_everything_that_is_wrong_with_a_tool_is_said_at_once_where_it_is_imported() -> None:
    with pytest.raises(DeclarationError) as refused:

        @tool(category="read", effects=["nothing"])
        def Odd() -> None:  # noqa: N802
            pass

    said = str(refused.value)
    assert __file__ in said
    for word in ("'Odd'", "no category", "no effect", "docstring"):
        assert word in said


@pytest.mark.parametrize(("uri", "is_good"), [("notes://all", True), ("notes://{number}", True), ("notes", False)])
def test_a_resource_has_a_uri_and_only_reads(uri: str, is_good: bool) -> None:
    def notes() -> str:
        """Notes."""
        return ""

    if is_good:
        found = getattr(resource(uri)(notes), MARK)
        assert (found.kind, found.uri, found.contract.effects) == ("resource", uri, (Effect.READ, Effect.NETWORK))
    else:
        with pytest.raises(DeclarationError, match="is no URI"):
            resource(uri)(notes)


def test_a_prompt_needs_no_words() -> None:
    @prompt
    def review() -> str:
        """Review."""
        return ""

    assert getattr(review, MARK).kind == "prompt"


@pytest.mark.requirement("S2/MCP-004")
def test_no_error_of_a_tool_that_is_not_idempotent_may_be_retried() -> None:
    assert "BUSY can't be Retryable" in problems(idempotent=False, errors={"BUSY": Retryable("Later.")})
    assert "RATE_LIMITED" in problems(idempotent=False, errors={"RATE_LIMITED": "Later."})
    assert declared(idempotent=False, errors={"BUSY": "Never again."}).contract is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"category": "read"}, "no category"),
        ({"idempotent": "yes"}, "True or False"),
        ({"effects": "network"}, "effects is a list"),
        ({"effects": ["netwrok"]}, "did you mean 'network'"),
        ({"effects": ["filesystem.write"]}, "changes nothing"),
        ({"category": "scan", "effects": ["state"]}, "changes nothing"),
        ({"errors": ["A"]}, "mapping"),
        ({"errors": {"lower": "x"}}, "can't be an error code"),
        ({"errors": {"A" * 65: "x"}}, "can't be an error code"),
        ({"errors": {"GONE": " "}}, "needs a description"),
        ({"errors": {"NOT_FOUND": Retryable("x")}}, "not retryable"),
        ({"errors": {f"C{number}": "x" for number in range(51)}}, "more than 50"),
        ({"cache_ttl_ms": 0}, "at least 1"),
        ({"cache_ttl_ms": True}, "at least 1"),
        ({"idempotent": False, "cache_ttl_ms": 5}, "remove cache_ttl_ms"),
        ({"name": "Bad-Name"}, "can't be its name"),
        ({"name": "n" * 65}, "can't be its name"),
        ({"description": " "}, "needs a description"),
        ({"description": "d" * 1025}, "1025 characters"),
    ],
)
def test_what_is_wrong_or_contradicts_itself_is_refused(words: dict[str, Any], said: str) -> None:
    assert said in problems(**words)


def test_the_description_is_the_docstring_up_to_its_parameters() -> None:
    def documented(a: int) -> None:
        """Does a thing.

        In two paragraphs.

        Args:
            a: What.
        """

    assert declared(documented).description == "Does a thing.\n\nIn two paragraphs."


def test_a_call_made_by_hand_tells_nobody_and_waits_for_nobody() -> None:
    call = Call()
    call.progress(1, 2, "half")
    assert not call.wait(0)
    call.cancel()
    assert call.is_cancelled
    assert call.wait(60)


async def test_progress_may_be_awaited() -> None:
    host = Told()
    call = Call(host)
    await call.progress(1)
    call.log("half")
    call.cancel()
    call.progress(2)
    call.log("never")
    assert host.told == [(1, None, None), ("info", "half")]


def test_a_call_made_by_hand_can_ask_nobody() -> None:
    with pytest.raises(NotAnswered) as told:
        Call().ask("How many?", int)
    assert told.value.reason == "unavailable"


def test_an_error_carries_its_code_and_its_own_details() -> None:
    details = {"id": 1}
    error = ToolError("GONE", "Not there.", details)
    details["id"] = 2
    assert (error.code, error.message, error.details) == ("GONE", "Not there.", {"id": 1})


def test_whoever_writes_tools_does_not_load_the_gateway() -> None:
    code = (
        "import sys; from pactgate import tool; print(*(name for name in sys.modules if name.startswith('pactgate.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms == {"tools", "core", "protocol"}
