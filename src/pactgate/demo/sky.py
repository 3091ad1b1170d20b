"""Where sun and moon stand: sunrise and sunset by NOAA's equations, the moon by the main terms of its longitude.

Pure arithmetic on dates. Good to about a minute for the sun below the polar circles and a quarter of an hour for the
moon, 1900-2100.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from math import acos, asin, atan2, cos, degrees, floor, radians, sin, tan
from typing import Final, NamedTuple

SYNODIC_MONTH_DAYS: Final = 29.530588853
_J2000: Final = datetime(2000, 1, 1, 12, tzinfo=UTC)
_HORIZON_DEGREES: Final = 90.833
"""Zenith distance of the sun's centre when its upper edge touches the horizon, refraction included."""


class Daylight(NamedTuple):
    """`rise` and `set` are None where the sun does not cross the horizon that day; `hours` is then 0 or 24."""

    rise: datetime | None
    noon: datetime
    set: datetime | None
    hours: float


class Moon(NamedTuple):
    phase: str
    illuminated: float
    age_days: float
    next_new: datetime
    next_full: datetime


def daylight(day: date, latitude: float, longitude: float) -> Daylight:
    midnight = datetime.combine(day, time(), UTC)
    noon = midnight + timedelta(minutes=720 - 4 * longitude)
    noon -= timedelta(minutes=_sun(noon)[1])
    half_day = _half_day(noon, latitude)
    if half_day in (0.0, 12.0):
        return Daylight(None, noon, None, 2 * half_day)
    rise, set_ = noon - timedelta(hours=half_day), noon + timedelta(hours=half_day)
    for _ in range(2):  # the sun moves on between noon and the event: ask again at the event's own time
        rise = noon - timedelta(hours=_half_day(rise, latitude))
        set_ = noon + timedelta(hours=_half_day(set_, latitude))
    return Daylight(rise, noon, set_, (set_ - rise) / timedelta(hours=1))


def moon(day: date) -> Moon:
    start = datetime.combine(day, time(), UTC)
    before, middle, after = (_elongation(start + timedelta(hours=hours)) for hours in (0, 12, 24))
    return Moon(
        phase=_phase_name(before, after),
        illuminated=(1 - cos(radians(middle))) / 2,
        age_days=middle / 360 * SYNODIC_MONTH_DAYS,
        next_new=_next(start, 0),
        next_full=_next(start, 180),
    )


def _centuries(moment: datetime) -> float:
    return (moment - _J2000) / timedelta(days=36525)


def _sun(moment: datetime) -> tuple[float, float]:
    """Declination in radians and the equation of time in minutes."""
    t = _centuries(moment)
    mean_longitude = radians((280.46646 + 36000.76983 * t) % 360)
    anomaly = radians(357.52911 + 35999.05029 * t)
    eccentricity = 0.016708634 - 0.000042037 * t
    centre = 1.914602 * sin(anomaly) + 0.019993 * sin(2 * anomaly) + 0.000289 * sin(3 * anomaly)
    node = radians(125.04 - 1934.136 * t)
    apparent = mean_longitude + radians(centre - 0.00569 - 0.00478 * sin(node))
    obliquity = radians(23.439291 - 0.013004 * t + 0.00256 * cos(node))
    y = tan(obliquity / 2) ** 2
    equation = (
        y * sin(2 * mean_longitude)
        - 2 * eccentricity * sin(anomaly)
        + 4 * eccentricity * y * sin(anomaly) * cos(2 * mean_longitude)
        - y * y / 2 * sin(4 * mean_longitude)
        - 1.25 * eccentricity**2 * sin(2 * anomaly)
    )
    return asin(sin(obliquity) * sin(apparent)), 4 * degrees(equation)


def _half_day(moment: datetime, latitude: float) -> float:
    """Hours between noon and the sun's crossing of the horizon; 0 when it never rises, 12 when it never sets."""
    declination, phi = _sun(moment)[0], radians(max(-89.99, min(89.99, latitude)))
    cosine = cos(radians(_HORIZON_DEGREES)) / (cos(phi) * cos(declination)) - tan(phi) * tan(declination)
    return degrees(acos(max(-1.0, min(1.0, cosine)))) / 15


def _elongation(moment: datetime) -> float:
    """How far the moon is ahead of the sun, 0 to 360 degrees: 0 new, 90 first quarter, 180 full."""
    t = (
        _centuries(moment) + 69 / 86400 / 36525
    )  # the theory counts in uniform time, a little over a minute ahead of ours
    d = radians(297.8501921 + 445267.1114034 * t)
    m = radians(357.5291092 + 35999.0502909 * t)
    a = radians(134.9633964 + 477198.8675055 * t)
    f = radians(93.2720950 + 483202.0175233 * t)
    lunar = (
        6.288774 * sin(a)
        + 1.274027 * sin(2 * d - a)
        + 0.658314 * sin(2 * d)
        + 0.213618 * sin(2 * a)
        - 0.185116 * sin(m)
        - 0.114332 * sin(2 * f)
        + 0.058793 * sin(2 * d - 2 * a)
        + 0.057066 * sin(2 * d - m - a)
        + 0.053322 * sin(2 * d + a)
        + 0.045758 * sin(2 * d - m)
        - 0.040923 * sin(m - a)
        - 0.034720 * sin(d)
        - 0.030383 * sin(m + a)
    )
    solar = 1.914602 * sin(m) + 0.019993 * sin(2 * m)
    # 0.0057 degrees: sunlight is eight minutes old
    return (degrees(atan2(sin(d), cos(d))) + lunar - solar + 0.0057) % 360


def _phase_name(before: float, after: float) -> str:
    turned = (after - before) % 360
    for angle, name in ((0, "new moon"), (90, "first quarter"), (180, "full moon"), (270, "last quarter")):
        if (angle - before) % 360 < turned:
            return name
    return ("waxing crescent", "waxing gibbous", "waning gibbous", "waning crescent")[floor(before / 90)]


def _next(start: datetime, angle: int) -> datetime:
    """The first moment from `start` on at which the elongation is this: a guess by the mean motion, then corrected."""
    moment = start + timedelta(days=(angle - _elongation(start)) % 360 / 360 * SYNODIC_MONTH_DAYS)
    for _ in range(6):
        off = (angle - _elongation(moment) + 180) % 360 - 180
        moment += timedelta(days=off / 360 * SYNODIC_MONTH_DAYS)
    return moment if moment >= start else _next(start + timedelta(days=2), angle)
