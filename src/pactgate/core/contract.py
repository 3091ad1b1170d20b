"""What a tool promises beside its schemas: category, idempotency, effects, error codes. And the words for it on the wire.

A contract travels in the `_meta` of a tool's definition, what a call did and how it failed in the `_meta` of its result. Only servers of
ours are believed; who they are is not known here. Pure values. Must not: judge what was done (`policy/contracts.py` does).
Carries S2/MCP-002, S2/MCP-003 and S2/MCP-004.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

CONTRACT_KEY: Final = "dev.pactgate/contract"
OPERATIONS_KEY: Final = "dev.pactgate/operations"
ERROR_KEY: Final = "dev.pactgate/error"
OUTPUT_ERRORS_KEY: Final = "dev.pactgate/outputErrors"
"""In the `_meta` of a result that is passed on although it does not fit: the places, found where the response was read."""
CALLER_KEY: Final = "dev.pactgate/caller"
"""In the `_meta` of a call of a Python tool that wants to know who calls."""
REQUEST_KEY: Final = "dev.pactgate/request"
"""In the `_meta` of a log message of a Python tool: the id of the request that it belongs to."""
REPORT_METHOD: Final = "notifications/dev.pactgate/report"
"""What one of our runners tells the gateway outside of any answer: a crash, a late operation, a file that can't be loaded."""

MAX_OPERATIONS: Final = 100
MAX_TARGET_CHARS: Final = 200
MAX_CODES: Final = 50
MAX_OUTPUT_ERRORS: Final = 10
CODE_PATTERN: Final = "^[A-Z][A-Z0-9_]{0,63}$"
CATEGORIES: Final = ("query", "mutation", "scan", "execution")
READ_ONLY_CATEGORIES: Final = frozenset({"query", "scan"})


class Effect(StrEnum):
    """What a tool may do beside answering."""

    READ = "filesystem.read"
    WRITE = "filesystem.write"
    NETWORK = "network"
    PROCESS = "process"
    STATE = "state"


Code = Annotated[str, Meta(pattern=CODE_PATTERN)]


class DeclaredCode(Struct, frozen=True):
    """One way a tool may fail, in its own word."""

    code: Code
    description: str = ""
    retryable: bool = False


class Contract(Struct, frozen=True, rename="camel"):
    """`effects` is complete: what is not in it must not happen."""

    category: Literal["query", "mutation", "scan", "execution"]
    idempotent: bool
    effects: tuple[Effect, ...]
    error_codes: Annotated[tuple[DeclaredCode, ...], Meta(max_length=MAX_CODES)] = ()
    cache_ttl_ms: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    output_validation: Literal["enforce", "warn", "off"] | UnsetType = UNSET
    """What happens to a result that does not fit what is declared of it; unset where nothing is."""
    assumed: tuple[Literal["category", "idempotent", "effects"], ...] = ()
    """What its author did not say, and is taken for the worst."""
    takes_call: bool = False
    """Whether its function wants to know whose call it answers."""

    def declared(self, code: str) -> DeclaredCode | None:
        return next((one for one in self.error_codes if one.code == code), None)


class Operation(Struct, frozen=True, omit_defaults=True):
    """Something a tool did, or was refused. `more` stands alone: so many did not fit into the list."""

    kind: str = ""
    target: str = ""
    refused: bool = False
    more: int = 0

    def __str__(self) -> str:
        if not self.kind:
            return f"{self.more} more"
        return f"{self.kind} {self.target}".rstrip() + (" (refused)" if self.refused else "")


class OutputError(Struct, frozen=True):
    """One place of a result that does not fit what its tool declares. `path` is the pointer in words."""

    pointer: str = ""
    keyword: str = ""
    message: str = ""
    path: str = ""


class ContractError(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a call of a contract tool failed. `undeclared_code` is what the tool said, where that is no code of its contract."""

    code: str
    message: str
    details: dict[str, Any] = {}
    undeclared_code: str = ""


class ToolFault(Struct, frozen=True):
    """A contract tool's own error in words of its contract. `undeclared` is the code it used without declaring it."""

    code: str
    message: str
    is_transient: bool
    details: dict[str, Any] = {}
    undeclared: str | None = None


class Report(Struct, frozen=True, omit_defaults=True):
    """`what` is crashed, late_operations, reloaded or not_reloaded."""

    what: str
    tool: str = ""
    text: str = ""
    operations: tuple[Operation, ...] = ()


def covers(effects: Collection[str], kind: str) -> bool:
    """Whether a declaration allows a kind of operation. Who may write may read."""
    return kind in effects or (kind == Effect.READ and Effect.WRITE in effects)
