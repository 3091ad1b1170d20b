"""Sun and moon against published times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from pactgate.demo import sky


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "latitude", "longitude", "rise", "set_"),
    [
        ("2024-06-21", 51.51, -0.13, "2024-06-21T03:43", "2024-06-21T20:22"),
        ("2024-03-20", 40.71, -74.01, "2024-03-20T10:58", "2024-03-20T23:08"),
        ("2024-06-21", 35.68, 139.69, "2024-06-20T19:26", "2024-06-21T10:00"),
        ("2024-01-01", -33.87, 151.21, "2023-12-31T18:48", "2024-01-01T09:09"),
    ],
)
def test_sunrise_and_sunset_agree_with_the_tables_within_two_minutes(
    day: str, latitude: float, longitude: float, rise: str, set_: str
) -> None:
    light = sky.daylight(date.fromisoformat(day), latitude, longitude)
    assert light.rise is not None
    assert light.set is not None
    assert abs(light.rise - moment(rise)) < timedelta(minutes=2)
    assert abs(light.set - moment(set_)) < timedelta(minutes=2)


@pytest.mark.parametrize(("day", "hours"), [("2024-06-21", 24), ("2024-12-21", 0)])
def test_beyond_the_polar_circle_the_sun_may_not_cross_the_horizon(day: str, hours: float) -> None:
    light = sky.daylight(date.fromisoformat(day), 69.65, 18.96)
    assert (light.rise, light.set, light.hours) == (None, None, hours)


@pytest.mark.parametrize("latitude", [90, -90])
def test_the_poles_have_a_day_too(latitude: float) -> None:
    assert sky.daylight(date(2024, 7, 1), latitude, 0).hours in (0, 24)


@pytest.mark.parametrize(
    ("day", "kind", "expected"),
    [
        ("2024-01-20", "next_full", "2024-01-25T17:54"),
        ("2024-04-01", "next_new", "2024-04-08T18:21"),
        ("2025-03-01", "next_full", "2025-03-14T06:55"),
        ("2026-08-01", "next_new", "2026-08-12T17:37"),
        ("1977-02-01", "next_new", "1977-02-18T03:37"),
    ],
)
def test_new_and_full_moons_agree_with_the_tables_within_a_quarter_of_an_hour(
    day: str, kind: str, expected: str
) -> None:
    found = getattr(sky.moon(date.fromisoformat(day)), kind)
    assert abs(found - moment(expected)) < timedelta(minutes=15)


def test_every_day_has_one_phase_and_each_month_has_four_turning_points() -> None:
    first = date(2026, 1, 1)
    days = [sky.moon(first + timedelta(days=offset)) for offset in range(355)]
    names = [moon.phase for moon in days]
    for turning_point in ("new moon", "first quarter", "full moon", "last quarter"):
        assert 11 <= names.count(turning_point) <= 13
    assert all(0 <= moon.illuminated <= 1 for moon in days)
    assert all(moon.illuminated > 0.98 for moon in days if moon.phase == "full moon")


def test_the_next_moons_are_never_in_the_past_and_at_most_a_month_away() -> None:
    for offset in range(400):
        day = date(2025, 1, 1) + timedelta(days=offset)
        moon = sky.moon(day)
        for when in (moon.next_new, moon.next_full):
            away = when - datetime(day.year, day.month, day.day, tzinfo=UTC)
            assert timedelta() <= away < timedelta(days=30)
