"""Types beyond those of msgspec: paths, pydantic models, and choices in the order of their author."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from pactgate.runner.json_types import convert, decoder, encode, schema_of


class Size(Enum):
    SMALL = "small"
    LARGE = "large"
    HUGE = "huge"


class Street(BaseModel):
    name: str = Field(min_length=1, description="Its name.")


class Person(BaseModel):
    age: int = Field(ge=0, alias="years")
    streets: list[Street] = []


@dataclass
class Parcel:
    to: Person
    size: Size
    unit: Annotated[Literal["m", "cm", "mm"], Meta(description="Of what.")] = "cm"


class Node(BaseModel):
    next: Node | None = None


class Foreign:
    pass


def test_choices_stay_in_the_order_of_their_author() -> None:
    schema = schema_of(Parcel)
    assert schema["$defs"]["Size"]["enum"] == ["small", "large", "huge"]
    assert schema["properties"]["unit"]["enum"] == ["m", "cm", "mm"]
    assert schema_of(Literal[3, 1, 2])["enum"] == [3, 1, 2]


def test_a_model_is_its_own_schema_with_its_definitions_at_the_root() -> None:
    schema = schema_of(Parcel)
    assert schema["properties"]["to"]["properties"]["years"]["minimum"] == 0
    assert schema["properties"]["to"]["properties"]["streets"]["items"] == {"$ref": "#/$defs/Street"}
    assert schema["$defs"]["Street"]["properties"]["name"]["minLength"] == 1
    assert schema_of(Node)["$defs"]["Node"]["type"] == "object"


def test_models_and_paths_go_there_and_back() -> None:
    class Held(Struct):
        person: Person
        places: dict[str, Path]

    data = b'{"person":{"years":3,"streets":[{"name":"High"}]},"places":{"a":"/tmp"}}'
    held = decoder(Held).decode(data)
    assert held.person.streets[0].name == "High"
    assert held.places == {"a": Path("/tmp")}
    assert encode(held) == data
    assert convert("/tmp", Path) == Path("/tmp")
    assert schema_of(Path) == {"type": "string", "format": "path"}


def test_what_a_model_refuses_is_said_without_the_value() -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        decoder(list[Person]).decode(b'[{"years":-77}]')
    assert str(refused.value) == "years: Input should be greater than or equal to 0 - at `$[0]`"
    with pytest.raises(msgspec.ValidationError, match="Expected `str`, got `int`"):
        decoder(Path).decode(b"1")


def test_text_becomes_a_number_only_where_there_is_nothing_but_text() -> None:
    assert decoder(int, takes_text=True).decode(b'"7"') == 7
    with pytest.raises(msgspec.ValidationError):
        decoder(int).decode(b'"7"')


def test_what_nobody_can_write_as_json_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        schema_of(Foreign)
    with pytest.raises(TypeError, match="Foreign can't be written"):
        encode([Foreign()])


def test_two_models_of_one_name_are_refused() -> None:
    other: Any = type("Street", (BaseModel,), {"__annotations__": {"number": int}})
    outer: Any = type("Outer", (BaseModel,), {"__annotations__": {"streets": list[other]}})
    with pytest.raises(TypeError, match="two of its models are called Street"):
        schema_of(dict[str, tuple[Person, outer]])
