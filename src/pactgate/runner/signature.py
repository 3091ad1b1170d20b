"""Makes a tool, resource or prompt from a declared function: schemas, the decoder of its arguments, the decoder of its result.

Everything comes from the type hints, as msgspec reads them, and from the docstring. All problems are reported, as sentences.
Must not: call the function. Serves S2/MCP-001 and S2/MCP-005: each call decodes its own arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final, get_args, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from pactgate.core.contract import CONTRACT_KEY, READ_ONLY_CATEGORIES, Contract, Effect
from pactgate.runner.json_types import decoder, encode, schema_of, to_builtins
from pactgate.tool_values import Call, Image
from pactgate.tools import Declaration, Kind

_RESULT: Final = "result"
_IMMUTABLE: Final = (str, int, float, bytes, type(None))
_UNNAMED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_ENTRY: Final = re.compile(r"^(\s*)(?::param\s+)?(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class ServedTool(Struct, frozen=True):
    """A tool that can be called, a resource that can be read, or a prompt that can be got.

    `is_wrapped`: its result is not an object, and is sent as `{"result": ...}`; `has_images`: it is content instead of JSON.
    """

    name: str
    function: Callable[..., Any]
    contract: Contract
    definition: bytes
    arguments: msgspec.json.Decoder[Any]
    names: tuple[str, ...]
    result: msgspec.json.Decoder[Any] | None
    is_async: bool
    is_wrapped: bool
    has_images: bool
    call_parameter: str | None
    kind: Kind
    uri: str
    mime_type: str | None


class _SignatureError(Exception):
    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


def serve(declared: Declaration) -> ServedTool | list[str]:
    """The tool, or all problems of its signature."""
    assert declared.contract is not None, "a declaration with problems has no contract"
    function, is_tool = declared.function, declared.kind == "tool"
    try:
        hints = _hints(function)
        parameters, call_parameter = _parameters(function, hints)
        arguments, input_schema = _arguments(declared, parameters, hints)
        if not is_tool:
            _require_plain(declared, parameters, call_parameter)
        has_images = is_tool and _has_images(hints["return"])
        result, output_schema, is_wrapped = _result(hints["return"] if is_tool and not has_images else type(None))
    except _SignatureError as unusable:
        return unusable.problems
    contract = replace(declared.contract, takes_call=call_parameter is not None)
    if is_tool:
        definition = _tool_definition(declared, contract, input_schema, output_schema)
    elif declared.kind == "resource":
        definition = _resource_definition(declared)
    else:
        definition = _prompt_definition(declared, input_schema)
    return ServedTool(
        name=declared.name,
        function=function,
        contract=contract,
        definition=encode(definition),
        arguments=arguments,
        names=tuple(one.name for one in parameters),
        result=result,
        is_async=inspect.iscoroutinefunction(function),
        is_wrapped=is_wrapped,
        has_images=has_images,
        call_parameter=call_parameter,
        kind=declared.kind,
        uri=declared.uri,
        mime_type=declared.mime_type,
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


def _require_plain(declared: Declaration, parameters: list[inspect.Parameter], call_parameter: str | None) -> None:
    """Raise where a resource or a prompt wants what only a tool can have."""
    problems = [] if call_parameter is None else [f"Only a tool can have a Call; remove {call_parameter!r}."]
    names, given = _VARIABLE.findall(declared.uri), [one.name for one in parameters]
    if declared.kind == "resource" and sorted(names) != sorted(given):
        problems.append(f"Its parameters are {given}, but its URI has {names}: each {{name}} is a parameter.")
    if problems:
        raise _SignatureError(problems)


def _has_images(hint: Any) -> bool:
    return hint is Image or any(map(_has_images, get_args(hint)))


def _arguments(
    declared: Declaration, parameters: list[inspect.Parameter], hints: dict[str, Any]
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
    struct = msgspec.defstruct(declared.name, fields, forbid_unknown_fields=True, kw_only=True)
    try:
        schema = schema_of(struct)
    except TypeError as problem:
        raise _SignatureError([f"Its parameters can't be described: {problem}."]) from None
    schema.pop("title", None)
    described = _parameter_texts(declared.function)
    defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    for member, about in schema.get("properties", {}).items():
        if member in described:
            about.setdefault("description", described[member])
        if member in defaults:
            about.setdefault("default", to_builtins(defaults[member]))
    return decoder(struct, takes_text=declared.kind != "tool"), schema


def _field(default: Any, hint: Any) -> Any:
    """A mutable default is copied for each call."""
    if default is NODEFAULT or isinstance(default, _IMMUTABLE):
        return msgspec.field(default=default)
    text, kind = encode(default), decoder(hint)
    return msgspec.field(default_factory=lambda: kind.decode(text))


def _type_problem(hint: Any) -> str | None:
    try:
        schema_of(hint)
        decoder(hint)
    except TypeError as problem:
        reason = str(problem).strip().splitlines()[-1]
        return f"has a type that can't be written as JSON: {reason}."
    return None


def _default_problem(default: Any, hint: Any) -> str | None:
    if default is NODEFAULT:
        return None
    try:
        decoder(hint).decode(encode(default))
    except (TypeError, ValueError) as problem:
        return f"has a default that does not fit its type: {problem}."
    return None


def _result(hint: Any) -> tuple[msgspec.json.Decoder[Any] | None, dict[str, Any] | None, bool]:
    if hint is type(None):
        return None, None, False
    problem = _type_problem(hint)
    if problem:
        raise _SignatureError([f"What it returns {problem}"])
    schema = schema_of(hint, is_result=True)
    if schema.get("type") == "object":
        return decoder(hint), schema, False
    wrapper = msgspec.defstruct("Result", [(_RESULT, hint)])
    return decoder(wrapper), {**schema_of(wrapper, is_result=True), "additionalProperties": False}, True


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


def _tool_definition(
    declared: Declaration, contract: Contract, input_schema: dict[str, Any], output_schema: dict[str, Any] | None
) -> dict[str, Any]:
    is_reader = contract.category in READ_ONLY_CATEGORIES
    hints: dict[str, Any] = {"readOnlyHint": is_reader, "idempotentHint": contract.idempotent}
    if is_reader:
        hints["destructiveHint"] = False
    hints["openWorldHint"] = Effect.NETWORK in contract.effects
    return {
        **_named(declared),
        "inputSchema": input_schema,
        **({"outputSchema": output_schema} if output_schema is not None else {}),
        "annotations": hints,
        "_meta": {CONTRACT_KEY: contract},
    }


def _resource_definition(declared: Declaration) -> dict[str, Any]:
    place = {"uriTemplate" if _VARIABLE.search(declared.uri) else "uri": declared.uri}
    return {**place, **_named(declared), **({"mimeType": declared.mime_type} if declared.mime_type else {})}


def _prompt_definition(declared: Declaration, input_schema: dict[str, Any]) -> dict[str, Any]:
    required = input_schema.get("required", ())
    arguments = [
        {
            "name": name,
            **({"description": about["description"]} if "description" in about else {}),
            "required": name in required,
        }
        for name, about in input_schema.get("properties", {}).items()
    ]
    return {**_named(declared), "arguments": arguments}


def _named(declared: Declaration) -> dict[str, Any]:
    title = {"title": declared.title} if declared.title else {}
    return {"name": declared.name, **title, "description": declared.description}
