"""The scores as one picture."""

from __future__ import annotations

from xml.etree import ElementTree

from pactgate.conformance.formats.as_svg import as_svg
from pactgate.conformance.report import ComplianceReport, Score


def test_a_family_is_a_bar_as_long_as_its_score_and_no_name_breaks_the_picture() -> None:
    report = ComplianceReport('<x> & "y"', scores=(Score("fidelity", 1, 2), Score("all", 0, 0)))
    picture = ElementTree.fromstring(as_svg(report))
    texts = ["".join(node.itertext()) for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ['<x> & "y"', "fidelity", "1 of 2", "all", "0 of 0"]
    bars = [
        node.get("width") for node in picture.iter("{http://www.w3.org/2000/svg}rect") if node.get("fill") == "#2563a8"
    ]
    assert bars == ["150", "0"]
