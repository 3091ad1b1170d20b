from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.picture import Bar, Panel, draw

SVG = "{http://www.w3.org/2000/svg}"
LOG = ((10.0, "10 us"), (100.0, "100 us"), (1000.0, "1 ms"))


def widths(picture: str) -> list[float]:
    bars = [rect for rect in ElementTree.fromstring(picture).iter(f"{SVG}rect") if rect.get("class") != "card"]
    return [float(rect.get("width", "0")) for rect in bars]


def bars(*values: float) -> tuple[Bar, ...]:
    return tuple(Bar(f"row {value:g}", value, f"{value:g} us", "ours") for value in values)


def test_on_a_logarithmic_scale_ten_times_as_much_is_one_step_more() -> None:
    one, ten = widths(draw([Panel("t", "s", bars(100, 1000), LOG, is_log=True)], "d"))
    assert ten == pytest.approx(2 * one, abs=0.2)


def test_on_a_linear_scale_twice_as_much_is_twice_as_long() -> None:
    half, whole = widths(draw([Panel("t", "s", bars(0.5, 1), ((0.0, "0"), (2.0, "200 %")))], "d"))
    assert whole == pytest.approx(2 * half, abs=0.2)


def test_a_value_beyond_the_scale_stays_in_the_picture_and_one_below_it_is_still_seen() -> None:
    least, most = widths(draw([Panel("t", "s", bars(1, 1e9), LOG, is_log=True)], "d"))
    assert least == 2.0
    assert most < 400


def test_names_are_words_and_not_markup() -> None:
    picture = draw([Panel("<script>", "a & b", (Bar('"x"', 20, "<b>", "other"),), LOG, is_log=True)], "<d>")
    words = [text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert words[:2] == ["<script>", "a & b"]
    assert "<script" not in picture


def test_it_is_drawn_for_light_and_for_dark_pages_and_fetches_nothing() -> None:
    picture = draw([Panel("t", "s", bars(20), LOG, is_log=True)], "d")
    assert "prefers-color-scheme: dark" in picture
    assert 'class="card"' in picture
    assert "href" not in picture
    assert "url(" not in picture
