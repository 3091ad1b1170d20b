"""Units of measure: how many of the dimension's first unit one of each is, and temperatures with their zero points."""

from __future__ import annotations

from typing import Final

from pactgate.demo.tools import BadInputError

_LINEAR: Final[dict[str, dict[str, float]]] = {
    "length": {
        "m": 1,
        "km": 1e3,
        "cm": 1e-2,
        "mm": 1e-3,
        "mi": 1609.344,
        "yd": 0.9144,
        "ft": 0.3048,
        "in": 0.0254,
        "nmi": 1852,
    },
    "mass": {"kg": 1, "g": 1e-3, "mg": 1e-6, "t": 1e3, "lb": 0.45359237, "oz": 0.028349523125, "st": 6.35029318},
    "volume": {
        "l": 1,
        "ml": 1e-3,
        "m3": 1e3,
        "gal": 3.785411784,
        "qt": 0.946352946,
        "pt": 0.473176473,
        "floz": 0.0295735295625,
    },
    "speed": {"m/s": 1, "km/h": 1 / 3.6, "mph": 0.44704, "kn": 1852 / 3600},
    "time": {"s": 1, "ms": 1e-3, "min": 60, "h": 3600, "d": 86400, "wk": 604800},
    "energy": {"J": 1, "kJ": 1e3, "cal": 4.184, "kcal": 4184, "Wh": 3600, "kWh": 3.6e6},
    "data": {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3},
}
_TEMPERATURE: Final[dict[str, tuple[float, float]]] = {"K": (1, 0), "C": (1, 273.15), "F": (5 / 9, 459.67 * 5 / 9)}
"""Kelvin = value * scale + offset."""

DIMENSIONS: Final[dict[str, tuple[str, ...]]] = {
    **{dimension: tuple(units) for dimension, units in _LINEAR.items()},
    "temperature": tuple(_TEMPERATURE),
}


def convert(value: float, source: str, target: str) -> tuple[float, str]:
    """The value in the other unit, and the dimension both measure."""
    dimension, other = _dimension_of(source), _dimension_of(target)
    if dimension != other:
        raise BadInputError(f"{source} measures {dimension} and {target} measures {other}: one can't become the other.")
    if dimension == "temperature":
        (scale_in, offset_in), (scale_out, offset_out) = _TEMPERATURE[source], _TEMPERATURE[target]
        kelvin = value * scale_in + offset_in
        if kelvin < -1e-9:
            raise BadInputError(f"{value:g} {source} is below absolute zero.")
        return (kelvin - offset_out) / scale_out, dimension
    factors = _LINEAR[dimension]
    return value * factors[source] / factors[target], dimension


def _dimension_of(unit: str) -> str:
    for dimension, units in DIMENSIONS.items():
        if unit in units:
            return dimension
    known = "; ".join(f"{dimension}: {', '.join(units)}" for dimension, units in DIMENSIONS.items())
    raise BadInputError(f"I don't know the unit {unit!r}. I know {known}.")
