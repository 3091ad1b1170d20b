"""The contract of a tool, and how a call kept it: operations it did not declare, the error code it failed with.

The gateway reads a contract only from its own servers; from any other server it is foreign `_meta`. The functions take and return values.
Must not: believe an upstream about itself, or let data from a runner grow beyond its bounds.
Enforces S2/MCP-002 (observed), S2/MCP-003 and the declared half of S2/MCP-004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from pactgate.core.contract import (
    CONTRACT_KEY,
    ERROR_KEY,
    MAX_OPERATIONS,
    MAX_OUTPUT_ERRORS,
    MAX_TARGET_CHARS,
    OPERATIONS_KEY,
    OUTPUT_ERRORS_KEY,
    Contract,
    ContractError,
    Operation,
    OutputError,
    Report,
    ToolFault,
    covers,
)
from pactgate.core.display import cut, flat
from pactgate.core.failures import RETRYABLE_ERRORS, ErrorCode
from pactgate.core.values import Tool
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json

DECLARED: Final = "declared"
OBSERVED: Final = "observed"
UNKNOWN: Final = "unknown"
_SHOWN_OPERATIONS: Final = 20
_MESSAGE_CHARS: Final = 2000
_REPORT_CHARS: Final = 4000
_STANDARD: Final = frozenset(code.value for code in ErrorCode)

_contract: Final = msgspec.json.Decoder(Contract)
_operations: Final = msgspec.json.Decoder(list[Operation])
_error: Final = msgspec.json.Decoder(ContractError)
_output_errors: Final = msgspec.json.Decoder(list[OutputError])
_report: Final = msgspec.json.Decoder(Report)


class ContractResult(Struct, frozen=True):
    """A result without the data meant for the gateway, and that data. `operations` is None where the call was not observed."""

    result: bytes
    operations: tuple[Operation, ...] | None = None
    fault: ToolFault | None = None
    output_errors: tuple[OutputError, ...] = ()


def read_contract(definition: bytes) -> Contract | str | None:
    """The contract in a definition of one of our servers: None where there is none, the reason where it can't be read."""
    meta = messages.members(definition).get("_meta")
    if meta is None or not bytes(meta).startswith(b"{"):
        return None
    held = messages.members(bytes(meta)).get(CONTRACT_KEY)
    if held is None:
        return None
    try:
        return _contract.decode(held)
    except msgspec.DecodeError as problem:
        return f"its contract can't be read: {problem}"


def without_contract(definition: bytes, *, announces_output: bool = True) -> bytes:
    """The definition as clients see it: a contract is for the gateway, and a thousand of them would fill a client's list.

    An output schema is not announced where results that do not fit are passed on: the SDKs refuse such results.
    """
    members = messages.members(definition)
    if not announces_output:
        members.pop("outputSchema", None)
    meta = messages.members(bytes(members["_meta"]))
    meta.pop(CONTRACT_KEY, None)
    if meta:
        members["_meta"] = Raw(encode_json(meta))
    else:
        del members["_meta"]
    return encode_json(members)


def declared_level(tool: Tool) -> str:
    """At which level the effects of a tool are known before it runs (D12)."""
    return DECLARED if tool.contract is not None or tool.traits.is_known else UNKNOWN


def undeclared_operations(contract: Contract, operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """The operations that the contract does not allow."""
    return tuple(one for one in operations if one.kind and not covers(contract.effects, one.kind))


def masked(operations: tuple[Operation, ...], mask: Callable[[str], str]) -> tuple[Operation, ...]:
    """The operations with secrets masked: a command line or a path may hold one that the tool was given (D18)."""
    return tuple(replace(one, target=mask(one.target)) for one in operations)


def take_contract_result(contract: Contract, result: bytes) -> ContractResult:
    """Split the result of a tool with a contract into the data for the gateway and the result for the client."""
    members = messages.members(result)
    raw = members.get("_meta")
    if raw is None or not bytes(raw).startswith(b"{"):
        return ContractResult(result)
    meta = messages.members(bytes(raw))
    operations, error = meta.pop(OPERATIONS_KEY, None), meta.pop(ERROR_KEY, None)
    misfits = meta.pop(OUTPUT_ERRORS_KEY, None)
    if operations is None and error is None and misfits is None:
        return ContractResult(result)
    if meta:
        members["_meta"] = Raw(encode_json(meta))
    else:
        del members["_meta"]
    return ContractResult(
        encode_json(members),
        None if operations is None else _read_operations(operations),
        None if error is None else _read_fault(contract, error),
        () if misfits is None else tuple(_output_errors.decode(misfits)[:MAX_OUTPUT_ERRORS]),
    )


def read_report(params: bytes | None) -> Report | None:
    """The report of one of our runners outside of a response, within bounds; None where it can't be read."""
    try:
        report = _report.decode(params or b"{}")
    except msgspec.DecodeError:
        return None
    return Report(
        flat(report.what, 40), flat(report.tool, 128), cut(report.text, _REPORT_CHARS), _bounded(report.operations)
    )


def output_errors_member(errors: tuple[OutputError, ...], max_bytes: int) -> bytes:
    """The member of the envelope with the places that do not fit, within a bound."""
    for count in range(len(errors), 0, -1):
        text = b'"outputErrors":%b,' % encode_json(errors[:count])
        if len(text) <= max_bytes:
            return text
    return b""


def envelope_members(operations: tuple[Operation, ...], violations: tuple[Operation, ...], max_bytes: int) -> bytes:
    """The members of the envelope that show operations and violations, within a bound: a part of the list, and how many more."""
    shown = _SHOWN_OPERATIONS
    while shown:
        text = b"".join(
            b'"%b":%b,' % (name, encode_json(_shortened(held, shown)))
            for name, held in ((b"operations", operations), (b"violations", violations))
            if held
        )
        if len(text) <= max_bytes:
            return text
        shown //= 2
    return b'"violations":[{"more":%d}],' % len(violations) if violations else b""


def _shortened(operations: tuple[Operation, ...], count: int) -> tuple[Operation, ...]:
    if len(operations) <= count:
        return operations
    return (*operations[:count], Operation(more=sum(one.more or 1 for one in operations[count:])))


def _read_operations(raw: Raw) -> tuple[Operation, ...]:
    try:
        return _bounded(_operations.decode(raw))
    except msgspec.DecodeError:
        return ()


def _bounded(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    held = [
        Operation(flat(one.kind, 40), flat(one.target, MAX_TARGET_CHARS), one.refused, max(0, one.more))
        for one in operations
    ]
    return _shortened(tuple(held), MAX_OPERATIONS)


def _read_fault(contract: Contract, raw: Raw) -> ToolFault | None:
    try:
        error = _error.decode(raw)
    except msgspec.DecodeError:
        return None
    code, message = error.code, cut(error.message, _MESSAGE_CHARS)
    declared = contract.declared(code)
    undeclared = error.undeclared_code or (code if declared is None and code not in _STANDARD else None)
    if undeclared:
        kept = code if code in _STANDARD else ErrorCode.OPERATION_FAILED.value
        return ToolFault(kept, message, kept in RETRYABLE_ERRORS, error.details, flat(undeclared, 64))
    is_transient = declared.retryable if declared is not None else code in RETRYABLE_ERRORS
    return ToolFault(code, message, is_transient, error.details)
