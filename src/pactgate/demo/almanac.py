"""The almanac: dates and units. An MCP server of the legacy era, on stdio: a client begins with `initialize`."""

from __future__ import annotations

import datetime
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from pactgate.demo.stdio_server import INVALID_PARAMS, INVALID_REQUEST, Json, McpTool, OpenCall, RpcError, StdioServer
from pactgate.protocol.versions import LATEST_LEGACY

_FACTORS: Final[dict[str, dict[str, float]]] = {
    "length": {"m": 1, "km": 1000, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254},
    "mass": {"kg": 1, "g": 0.001, "lb": 0.45359237, "oz": 0.028349523125},
    "time": {"s": 1, "min": 60, "h": 3600, "d": 86400},
}
"""What one of each unit is in the first unit of its dimension."""


class DateQuery(Struct, forbid_unknown_fields=True):
    date: Annotated[datetime.date | UnsetType, Meta(description="As YYYY-MM-DD. Default: today (UTC).")] = UNSET


class DateFacts(Struct, rename="camel"):
    date: datetime.date
    weekday: str
    iso_week: Annotated[str, Meta(description="For example 2026-W47. Its year can differ from the date's.")]
    day_of_year: int


def date_facts(given: DateQuery) -> DateFacts:
    """Weekday, ISO week and day of the year of a date."""
    day = datetime.datetime.now(datetime.UTC).date() if given.date is UNSET else given.date
    year, week, _ = day.isocalendar()
    return DateFacts(day, f"{day:%A}", f"{year}-W{week:02}", day.timetuple().tm_yday)


class Period(Struct, forbid_unknown_fields=True):
    start: Annotated[datetime.date, Meta(description="The first day, as YYYY-MM-DD.")]
    end: Annotated[datetime.date, Meta(description="The day after the last one counted, as YYYY-MM-DD.")]


class Days(Struct):
    days: int
    weeks: float


def days_between(given: Period) -> Days:
    """How many days and weeks lie between two dates. Negative when the end comes first."""
    days = (given.end - given.start).days
    return Days(days, round(days / 7, 2))


class Conversion(Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    value: Annotated[float, Meta(ge=-1e100, le=1e100, description="How many of the first unit.")]
    from_: Annotated[str, Meta(max_length=16, description="The unit the value is in, such as mi.")]
    to: Annotated[str, Meta(max_length=16, description="The unit to convert to, such as km.")]


class Converted(Struct):
    result: float
    dimension: str


def convert_units(given: Conversion) -> Converted:
    """Converts a value from one unit to another of the same dimension: length, mass or time."""
    for dimension, factors in _FACTORS.items():
        if given.from_ in factors and given.to in factors:
            result = given.value / factors[given.to] * factors[given.from_]
            return Converted(float(f"{result:.12g}"), dimension)
    known = "; ".join(f"{dimension}: {', '.join(units)}" for dimension, units in _FACTORS.items())
    raise ValueError(f"Can't convert {given.from_} to {given.to}; the units are {known}")


class Almanac(StdioServer):
    """The legacy protocol: no tools before `initialize`."""

    def __init__(self) -> None:
        super().__init__(
            McpTool("Facts about a date", date_facts),
            McpTool("Days between two dates", days_between),
            McpTool("Convert units", convert_units),
        )
        self._is_initialized = False

    def answer(self, method: str, params: Json, call: OpenCall) -> Json:
        if method == "ping":
            return {}
        if method == "initialize":
            if self._is_initialized or not isinstance(params.get("protocolVersion"), str):
                raise RpcError(INVALID_PARAMS, "Send initialize once, with a protocolVersion.")
            self._is_initialized = True
            info = {"name": "almanac", "title": "Almanac", "version": "1.0.0"}
            return {"protocolVersion": LATEST_LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
        if method.startswith("tools/") and not self._is_initialized:
            raise RpcError(INVALID_REQUEST, "Send initialize first.")
        return super().answer(method, params, call)


if __name__ == "__main__":
    Almanac().serve()
