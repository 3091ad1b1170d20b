"""Types of parameters and results that msgspec does not know by itself: paths, and pydantic models where pydantic is installed.

Also puts the choices of a schema into the order in which their author wrote them. Must not: import pydantic; who has a model has it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

REFERENCE: Final = "#/$defs/{name}"
_MODEL_REFERENCE: Final = "#/$defs/{model}"
_DEFINITIONS: Final = "$defs"


def schema_of(kind: Any, *, is_result: bool = False) -> dict[str, Any]:
    """The schema of a type with its own definition at the root, as MCP wants it, and the others beside it. Raises TypeError."""
    of_models: dict[str, Any] = {}

    def foreign(one: Any) -> dict[str, Any]:
        if _is_path(one):
            return {"type": "string", "format": "path"}
        if not _is_model(one):
            raise NotImplementedError
        mode = "serialization" if is_result else "validation"
        schema: dict[str, Any] = one.model_json_schema(mode=mode, ref_template=_MODEL_REFERENCE)
        for name, definition in schema.pop(_DEFINITIONS, {}).items():
            if of_models.setdefault(name, definition) != definition:
                raise TypeError(f"two of its models are called {name}")
        return schema

    (schema,), components = msgspec.json.schema_components((kind,), schema_hook=foreign, ref_template=REFERENCE)
    if clash := components.keys() & of_models.keys():
        raise TypeError(f"two of its types are called {min(clash)}")
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in components:
        is_recursive = msgspec.json.encode(REFERENCE.format(name=name)) in msgspec.json.encode(components)
        schema = components[name] if is_recursive else components.pop(name)
    definitions = {**components, **of_models}
    whole = {**schema, **({_DEFINITIONS: definitions} if definitions else {})}
    _put_in_order(whole, {frozenset(map(repr, choices)): choices for choices in _choices(kind, set())})
    return whole


def decoder(kind: Any, *, takes_text: bool = False) -> msgspec.json.Decoder[Any]:
    """`takes_text`: numbers and truth values may come as text."""
    return msgspec.json.Decoder(kind, strict=not takes_text, dec_hook=_from_json)


def convert(value: Any, kind: Any) -> Any:
    """A decoded JSON value as this type. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=_from_json)


def encode(value: Any) -> bytes:
    """Raises TypeError or ValueError for what JSON can't say."""
    return msgspec.json.encode(value, enc_hook=_to_json)


def to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=_to_json)


def _from_json(kind: type, value: Any) -> Any:
    if _is_path(kind):
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
        return kind(value)
    if _is_model(kind):
        return _model(kind, value)
    raise NotImplementedError


def _model(kind: Any, value: Any) -> Any:
    """The model. Raises ValueError without the values, which pydantic's own message repeats."""
    try:
        return kind.model_validate(value)
    except sys.modules["pydantic"].ValidationError as problem:
        found = problem.errors(include_url=False, include_input=False)
        raise ValueError("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)) from None


def _to_json(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if _is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"a {type(value).__name__} can't be written as JSON")


def _is_path(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath | Path)


def _is_model(kind: Any) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _choices(kind: Any, seen: set[int]) -> Iterator[list[Any]]:
    """The choices of every `Enum` and `Literal` in a type, in their own order: msgspec sorts them."""
    if id(kind) in seen:
        return
    seen.add(id(kind))
    if get_origin(kind) is Literal:
        yield list(get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield [member.value for member in kind]
    elif isinstance(kind, type) and (issubclass(kind, Struct) or dataclasses.is_dataclass(kind) or _is_typed(kind)):
        for hint in get_type_hints(kind, include_extras=True).values():
            yield from _choices(hint, seen)
    for argument in get_args(kind):
        yield from _choices(argument, seen)


def _is_typed(kind: type) -> bool:
    """Whether it is a TypedDict or a NamedTuple."""
    return issubclass(kind, dict | tuple) and hasattr(kind, "__annotations__")


def _put_in_order(schema: Any, orders: dict[frozenset[str], list[Any]]) -> None:
    waiting = [schema]
    while waiting:
        held = waiting.pop()
        if isinstance(held, list):
            waiting += held
        elif isinstance(held, dict):
            choices = held.get("enum")
            if isinstance(choices, list):
                held["enum"] = orders.get(frozenset(map(repr, choices)), choices)
            waiting += held.values()
