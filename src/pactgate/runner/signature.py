"""Makes a tool from a declared function: schemas, the decoder of its arguments, the decoder of its result.

Everything comes from the type hints, as msgspec reads them, and from the docstring. All problems are reported, as sentences.
Must not: call the function. Serves S2/MCP-001 and S2/MCP-005: each call decodes its own arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct

from pactgate.core.contract import CONTRACT_KEY, READ_ONLY_CATEGORIES, Contract, Effect
from pactgate.protocol.messages import encode_json
from pactgate.tools import Call, Declaration

_REFERENCE: Final = "#/$defs/{name}"
_RESULT: Final = "result"
_IMMUTABLE: Final = (str, int, float, bytes, type(None))
_UNNAMED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
_ENTRY: Final = re.compile(r"^(\s*)(?::param\s+)?(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class ServedTool(Struct, frozen=True):
    """A tool that can be called. `is_wrapped`: its result is not an object, and is sent as `{"result": ...}`."""

    name: str
    function: Callable[..., Any]
    contract: Contract
    definition: bytes
    arguments: msgspec.json.Decoder[Any]
    names: tuple[str, ...]
    result: msgspec.json.Decoder[Any] | None
    is_async: bool
    is_wrapped: bool
    call_parameter: str | None


class _SignatureError(Exception):
    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


def serve(declared: Declaration) -> ServedTool | list[str]:
    """The tool, or all problems of its signature."""
    assert declared.contract is not None, "a declaration with problems has no contract"
    function = declared.function
    try:
        hints = _hints(function)
        parameters, call_parameter = _parameters(function, hints)
        arguments, input_schema = _arguments(declared.name, function, parameters, hints)
        result, output_schema, is_wrapped = _result(hints["return"])
    except _SignatureError as unusable:
        return unusable.problems
    return ServedTool(
        declared.name,
        function,
        declared.contract,
        encode_json(_definition(declared, declared.contract, input_schema, output_schema)),
        arguments,
        tuple(one.name for one in parameters),
        result,
        inspect.iscoroutinefunction(function),
        is_wrapped,
        call_parameter,
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _SignatureError(["It is a generator; return one value, and tell how far it is with `call.progress`."])
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as unknown:
        raise _SignatureError([f"A type hint can't be understood: {unknown}."]) from None


def _parameters(function: Callable[..., Any], hints: dict[str, Any]) -> tuple[list[inspect.Parameter], str | None]:
    problems = []
    kept: list[inspect.Parameter] = []
    calls: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _UNNAMED:
            problems.append(f"The parameter {parameter.name!r} can't be given by name; clients name every argument.")
        elif parameter.name not in hints:
            problems.append(f"The parameter {parameter.name!r} has no type hint.")
        elif hints[parameter.name] is Call:
            calls.append(parameter.name)
        else:
            kept.append(parameter)
    if len(calls) > 1:
        problems.append("Only one parameter can be the Call.")
    if "return" not in hints:
        problems.append("It has no type hint for what it returns; write `-> None` where that is nothing.")
    if problems:
        raise _SignatureError(problems)
    return kept, calls[0] if calls else None


def _arguments(
    name: str, function: Callable[..., Any], parameters: list[inspect.Parameter], hints: dict[str, Any]
) -> tuple[msgspec.json.Decoder[Any], dict[str, Any]]:
    """The arguments are the fields of a closed struct: unknown arguments are refused."""
    problems: list[str] = []
    fields = []
    for one in parameters:
        default = NODEFAULT if one.default is inspect.Parameter.empty else one.default
        problem = _type_problem(hints[one.name]) or _default_problem(default, hints[one.name])
        if problem:
            problems.append(f"The parameter {one.name!r} {problem}")
        if not problem:
            fields.append((one.name, hints[one.name], _field(default, hints[one.name])))
    if problems:
        raise _SignatureError(problems)
    struct = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)
    schema = _object_schema(struct)
    schema.pop("title", None)
    described = _parameter_texts(function)
    defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    for member, about in schema.get("properties", {}).items():
        if member in described:
            about.setdefault("description", described[member])
        if member in defaults:
            about.setdefault("default", msgspec.to_builtins(defaults[member]))
    return msgspec.json.Decoder(struct), schema


def _field(default: Any, hint: Any) -> Any:
    """A mutable default is copied for each call."""
    if default is NODEFAULT or isinstance(default, _IMMUTABLE):
        return msgspec.field(default=default)
    text, kind = encode_json(default), msgspec.json.Decoder(hint)
    return msgspec.field(default_factory=lambda: kind.decode(text))


def _type_problem(hint: Any) -> str | None:
    try:
        msgspec.json.schema_components((hint,), ref_template=_REFERENCE)
        msgspec.json.Decoder(hint)
    except TypeError as problem:
        reason = str(problem).strip().splitlines()[-1]
        return f"has a type that can't be written as JSON: {reason}."
    return None


def _default_problem(default: Any, hint: Any) -> str | None:
    if default is NODEFAULT:
        return None
    try:
        msgspec.json.decode(encode_json(default), type=hint)
    except (TypeError, ValueError) as problem:
        return f"has a default that does not fit its type: {problem}."
    return None


def _result(hint: Any) -> tuple[msgspec.json.Decoder[Any] | None, dict[str, Any] | None, bool]:
    if hint is type(None):
        return None, None, False
    problem = _type_problem(hint)
    if problem:
        raise _SignatureError([f"What it returns {problem}"])
    schema = _object_schema(hint)
    if schema.get("type") == "object":
        return msgspec.json.Decoder(hint), schema, False
    wrapper = msgspec.defstruct("Result", [(_RESULT, hint)])
    return msgspec.json.Decoder(wrapper), {**_object_schema(wrapper), "additionalProperties": False}, True


def _object_schema(hint: Any) -> dict[str, Any]:
    """The schema with its own definition at the root, as MCP wants it, and the others beside it."""
    (schema,), components = msgspec.json.schema_components((hint,), ref_template=_REFERENCE)
    name = schema.get("$ref", "").rpartition("/")[2]
    if name not in components:
        return {**schema, **({"$defs": components} if components else {})}
    is_recursive = encode_json(f"#/$defs/{name}") in encode_json(components)
    root = dict(components[name] if is_recursive else components.pop(name))
    return {**root, **({"$defs": components} if components else {})}


def _parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Descriptions of parameters: `Args:` with indented entries, or `:param name: text`."""
    found: dict[str, str] = {}
    is_listing, current, indent = False, "", 0
    for line in (inspect.getdoc(function) or "").splitlines():
        entry = _ENTRY.match(line)
        if re.fullmatch(r"\s*(Args|Arguments|Parameters):\s*", line):
            is_listing, current = True, ""
        elif re.fullmatch(r"\s*(Returns|Raises|Yields|Examples?):\s*", line):
            is_listing, current = False, ""
        elif entry and (
            line.lstrip().startswith(":param") or (is_listing and (not current or len(entry[1]) <= indent))
        ):
            current, indent = entry[2], len(entry[1])
            found[current] = entry[3]
        elif current and line.strip():
            found[current] = f"{found[current]} {line.strip()}".strip()
        else:
            current = "" if not line.strip() and not is_listing else current
    return {name: text for name, text in found.items() if text}


def _definition(
    declared: Declaration, contract: Contract, input_schema: dict[str, Any], output_schema: dict[str, Any] | None
) -> dict[str, Any]:
    is_reader = contract.category in READ_ONLY_CATEGORIES
    hints: dict[str, Any] = {"readOnlyHint": is_reader, "idempotentHint": contract.idempotent}
    if is_reader:
        hints["destructiveHint"] = False
    hints["openWorldHint"] = Effect.NETWORK in contract.effects
    return {
        "name": declared.name,
        **({"title": declared.title} if declared.title else {}),
        "description": declared.description,
        "inputSchema": input_schema,
        **({"outputSchema": output_schema} if output_schema is not None else {}),
        "annotations": hints,
        "_meta": {CONTRACT_KEY: contract},
    }
