"""The almanac: dates, sun, moon and units, computed offline. An MCP server of the legacy era only, on stdio.

It opens with the handshake and speaks every revision from 2024-11-05 to 2025-11-25, each with the fields that revision
has. Methods of the modern era do not exist here: `server/discover` is answered as any unknown method.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from pactgate.demo import loop, measures, rpc, sky
from pactgate.demo.places import PLACES
from pactgate.demo.tools import BadInputError, Exchange, Json, Outcome, Tool, Toolbox, object_schema
from pactgate.protocol.versions import BATCHING_VERSION, LATEST_LEGACY, LEGACY_VERSIONS

SERVER_INFO: Final = {"name": "almanac", "title": "Almanac", "version": "1.0.0"}
INSTRUCTIONS: Final = (
    "Facts about dates, daylight, the moon and units. Everything is computed here: no network, no side effects."
)
_SKY_YEARS: Final = range(1900, 2101)
_SINCE: Final = {
    "annotations": "2025-03-26",
    "title": "2025-06-18",
    "outputSchema": "2025-06-18",
    "structuredContent": "2025-06-18",
}
"""The revision that brought a field: older clients are not sent it."""


def sun_times(arguments: Json, _: Exchange) -> Outcome:
    day = _sky_day(arguments)
    latitude, longitude, zone_name, place = _where(arguments)
    zone_name, zone = _zone(zone_name)
    light = sky.daylight(day, latitude, longitude)
    sunrise = _minute(light.rise.astimezone(zone)) if light.rise else None
    sunset = _minute(light.set.astimezone(zone)) if light.set else None
    facts = {
        "date": day.isoformat(),
        "place": place,
        "timeZone": zone_name,
        "sunrise": sunrise,
        "solarNoon": _minute(light.noon.astimezone(zone)),
        "sunset": sunset,
        "daylightMinutes": round(light.hours * 60),
    }
    if sunrise is None or sunset is None:
        text = f"On {day} the sun never {'sets' if light.hours else 'rises'} at {place}."
    else:
        hours, minutes = divmod(round(light.hours * 60), 60)
        text = (
            f"On {day} at {place} the sun rises at {sunrise[11:16]} and sets at {sunset[11:16]} ({zone_name}): "
            f"{hours} h {minutes} min of daylight."
        )
    return Outcome(text, facts)


def moon_phase(arguments: Json, _: Exchange) -> Outcome:
    day = _sky_day(arguments)
    moon = sky.moon(day)
    percent = round(moon.illuminated * 100)
    facts: Json = {
        "date": day.isoformat(),
        "phase": moon.phase,
        "illuminatedPercent": percent,
        "ageDays": round(moon.age_days, 1),
        "nextNewMoon": _minute(moon.next_new),
        "nextFullMoon": _minute(moon.next_full),
    }
    next_full = facts["nextFullMoon"][:16].replace("T", " ")
    return Outcome(f"Moon on {day}: {moon.phase}, {percent} % lit. Next full moon: {next_full} UTC.", facts)


def date_facts(arguments: Json, _: Exchange) -> Outcome:
    day = _day(arguments)
    year, week, _weekday = day.isocalendar()
    last = date(day.year, 12, 31).timetuple().tm_yday
    of_year = day.timetuple().tm_yday
    facts = {
        "date": day.isoformat(),
        "weekday": f"{day:%A}",
        "isoWeek": f"{year}-W{week:02}",
        "dayOfYear": of_year,
        "daysLeftInYear": last - of_year,
        "quarter": (day.month + 2) // 3,
        "isLeapYear": last == 366,
    }
    return Outcome(f"{day} is a {facts['weekday']}, in ISO week {week} of {year}; day {of_year} of {last}.", facts)


def days_between(arguments: Json, _: Exchange) -> Outcome:
    start, end = date.fromisoformat(arguments["start"]), date.fromisoformat(arguments["end"])
    days = (end - start).days
    whole_weeks, rest = divmod(abs(days), 7)
    first = min(start, end)
    working = whole_weeks * 5 + sum((first.weekday() + offset) % 7 < 5 for offset in range(rest))
    facts = {"days": days, "weeks": round(days / 7, 2), "workingDays": working if days >= 0 else -working}
    return Outcome(f"From {start} to {end} it is {days} days, {facts['workingDays']} of them Monday to Friday.", facts)


def convert_units(arguments: Json, _: Exchange) -> Outcome:
    value, source, target = arguments["value"], arguments["from"], arguments["to"]
    try:
        result, dimension = measures.convert(float(value), source, target)
    except OverflowError:
        raise BadInputError("The argument 'value' is too large.") from None
    if result in (float("inf"), float("-inf")):
        raise BadInputError("The argument 'value' is too large.")
    facts = {"value": value, "from": source, "to": target, "result": float(f"{result:.12g}"), "dimension": dimension}
    return Outcome(f"{value:g} {source} = {result:.6g} {target}", facts)


def _day(arguments: Json) -> date:
    text = arguments.get("date")
    return date.fromisoformat(text) if text is not None else datetime.now(UTC).date()


def _sky_day(arguments: Json) -> date:
    day = _day(arguments)
    if day.year not in _SKY_YEARS:
        raise BadInputError(f"I know the sky from {_SKY_YEARS[0]} to {_SKY_YEARS[-1]} only.")
    return day


def _where(arguments: Json) -> tuple[float, float, str, str]:
    """Latitude, longitude, time zone and what to call the place."""
    place, latitude, longitude = (arguments.get(name) for name in ("place", "latitude", "longitude"))
    if place is not None and latitude is None and longitude is None:
        known = PLACES.get(place.strip().lower())
        if known is None:
            names = ", ".join(name.title() for name in PLACES)
            raise BadInputError(f"I don't know where {place!r} is. Give latitude and longitude, or one of: {names}.")
        return *known, place.strip().title()
    if place is None and latitude is not None and longitude is not None:
        return latitude, longitude, "UTC", f"{latitude:g}, {longitude:g}"
    raise BadInputError("Say where: either 'place', or both 'latitude' and 'longitude'.")


def _zone(name: str) -> tuple[str, Any]:
    """The time zone, or UTC where this machine has no table of them."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return name, ZoneInfo(name)
    except ZoneInfoNotFoundError:
        return "UTC", UTC


def _minute(moment: datetime) -> str:
    return (moment + timedelta(seconds=30)).replace(second=0, microsecond=0).isoformat(timespec="minutes")


_DATE: Final = {"type": "string", "format": "date", "description": "The date as YYYY-MM-DD. Left out: today (UTC)."}
_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
_UNITS: Final = "; ".join(f"{dimension} ({', '.join(units)})" for dimension, units in measures.DIMENSIONS.items())
_MAYBE_TEXT: Final = {"type": ["string", "null"]}

TOOLS: Final = (
    Tool(
        "sun_times",
        "Sunrise and sunset",
        "When the sun rises, stands highest and sets on a date at a place, and how long the day is. "
        "Takes a large city by name, or any latitude and longitude.",
        object_schema(
            [],
            place={"type": "string", "maxLength": 100, "description": "A large city, for example Lisbon."},
            latitude={
                "type": "number",
                "minimum": -90,
                "maximum": 90,
                "description": "Degrees north; with longitude, instead of place.",
            },
            longitude={
                "type": "number",
                "minimum": -180,
                "maximum": 180,
                "description": "Degrees east; with latitude, instead of place.",
            },
            date=_DATE,
        ),
        object_schema(
            ["date", "place", "timeZone", "sunrise", "solarNoon", "sunset", "daylightMinutes"],
            date=_TEXT,
            place=_TEXT,
            timeZone=_TEXT,
            sunrise={**_MAYBE_TEXT, "description": "ISO 8601, or null when the sun does not rise that day."},
            solarNoon=_TEXT,
            sunset={**_MAYBE_TEXT, "description": "ISO 8601, or null when the sun does not set that day."},
            daylightMinutes=_WHOLE,
        ),
        sun_times,
    ),
    Tool(
        "moon_phase",
        "Phase of the moon",
        "The phase of the moon on a date, how much of it is lit, and when the next new and full moons are (UTC).",
        object_schema([], date=_DATE),
        object_schema(
            ["date", "phase", "illuminatedPercent", "ageDays", "nextNewMoon", "nextFullMoon"],
            date=_TEXT,
            phase=_TEXT,
            illuminatedPercent={"type": "integer", "minimum": 0, "maximum": 100},
            ageDays={"type": "number", "description": "Days since the new moon."},
            nextNewMoon=_TEXT,
            nextFullMoon=_TEXT,
        ),
        moon_phase,
    ),
    Tool(
        "date_facts",
        "Facts about a date",
        "Weekday, ISO week, day of the year, quarter and leap year of a date.",
        object_schema([], date=_DATE),
        object_schema(
            ["date", "weekday", "isoWeek", "dayOfYear", "daysLeftInYear", "quarter", "isLeapYear"],
            date=_TEXT,
            weekday=_TEXT,
            isoWeek={"type": "string", "description": "For example 2026-W47. Its year can differ from the date's."},
            dayOfYear=_WHOLE,
            daysLeftInYear=_WHOLE,
            quarter=_WHOLE,
            isLeapYear={"type": "boolean"},
        ),
        date_facts,
    ),
    Tool(
        "days_between",
        "Days between two dates",
        "How many days, weeks and working days (Monday to Friday) lie between two dates. "
        "The end does not count; negative when it comes first.",
        object_schema(
            ["start", "end"],
            start={"type": "string", "format": "date", "description": "The first day, as YYYY-MM-DD."},
            end={
                "type": "string",
                "format": "date",
                "description": "The day after the last one counted, as YYYY-MM-DD.",
            },
        ),
        object_schema(["days", "weeks", "workingDays"], days=_WHOLE, weeks={"type": "number"}, workingDays=_WHOLE),
        days_between,
    ),
    Tool(
        "convert_units",
        "Convert units",
        f"Converts a value from one unit to another of the same dimension. Units, spelt exactly so: {_UNITS}.",
        object_schema(
            ["value", "from", "to"],
            value={"type": "number", "description": "How many of the first unit."},
            **{
                "from": {"type": "string", "maxLength": 16, "description": "The unit the value is in."},
                "to": {"type": "string", "maxLength": 16, "description": "The unit wanted."},
            },
        ),
        object_schema(
            ["value", "from", "to", "result", "dimension"],
            value={"type": "number"},
            result={"type": "number"},
            dimension=_TEXT,
            **{"from": _TEXT, "to": _TEXT},
        ),
        convert_units,
    ),
)


class Almanac:
    """The legacy protocol over these tools: `initialize` chooses the revision, everything after is shaped by it."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._tools = Toolbox(TOOLS)

    def takes_time(self, method: str, params: Json) -> bool:
        return False

    def reads_batches(self) -> bool:
        return self._version == BATCHING_VERSION

    def handle(self, method: str, params: Json, exchange: loop.OpenRequest) -> Json:
        if method == "initialize":
            return self._initialize(params)
        if method == "ping":
            return {}
        if method not in ("tools/list", "tools/call"):
            raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"There is no method {method[:64]!r} here.")
        if self._version is None:
            raise rpc.RpcError(rpc.INVALID_REQUEST, "Send initialize first.")
        if method == "tools/list":
            return {"tools": [_for(self._version, definition) for definition in self._tools.definitions()]}
        return _for(self._version, self._tools.call(params, exchange))

    def _initialize(self, params: Json) -> Json:
        if self._version is not None:
            raise rpc.RpcError(rpc.INVALID_REQUEST, "initialize was sent already.")
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise rpc.RpcError(
                rpc.INVALID_PARAMS, "initialize needs a protocolVersion.", {"supported": list(LEGACY_VERSIONS)}
            )
        self._version = asked if asked in LEGACY_VERSIONS else LATEST_LEGACY
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {}},
            "serverInfo": _for(self._version, dict(SERVER_INFO)),
            "instructions": INSTRUCTIONS,
        }


def _for(version: str, fields: Json) -> Json:
    return {name: value for name, value in fields.items() if version >= _SINCE.get(name, "")}


if __name__ == "__main__":
    loop.serve(Almanac(), "almanac")
