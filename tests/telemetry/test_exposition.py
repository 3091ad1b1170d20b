"""The two formats of a scrape."""

from __future__ import annotations

from pactgate.telemetry.exposition import Exemplar, Exposition, HistogramSample, accepts_open_metrics

SAMPLE = HistogramSample({"tool": 'a"b\\c\n', "none": ""}, (1, 2, 0), 0.5, {1: Exemplar("ab12", 0.02, 1000.5)})


def written(*, is_open: bool) -> list[str]:
    to = Exposition(is_open=is_open)
    to.counter("x_total", "Things.", [({}, 2)])
    to.histogram("d_seconds", "Time.", ("0.01", "0.1"), [SAMPLE])
    return to.encode().decode().splitlines()


def test_labels_are_escaped_and_empty_ones_left_out() -> None:
    assert written(is_open=False)[5] == 'd_seconds_bucket{tool="a\\"b\\\\c\\n",le="0.01"} 1'


def test_buckets_add_up_and_the_last_is_the_count() -> None:
    numbers = [line.rpartition(" ")[2] for line in written(is_open=False)[5:]]
    assert numbers == ["1", "3", "3", "0.500000", "3"]


def test_only_open_metrics_have_exemplars_an_end_and_counters_named_without_total() -> None:
    plain, opened = written(is_open=False), written(is_open=True)
    assert (plain[1], opened[1]) == ("# TYPE x_total counter", "# TYPE x counter")
    assert next(line for line in opened if " # {" in line).endswith('3 # {trace_id="ab12"} 0.02 1000.500')
    assert (opened[-1], " # {" in "".join(plain)) == ("# EOF", False)


def test_open_metrics_are_for_those_who_accept_them() -> None:
    assert accepts_open_metrics("application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5")
    assert not accepts_open_metrics("text/plain")
