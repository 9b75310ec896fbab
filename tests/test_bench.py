"""`make bench` from what is stored: each part's figures, and a sentence where there are none."""

import importlib

import pytest

import benchmarks.__main__ as bench
from benchmarks import summary

STORED = {
    "encoder_record": dict(
        ratio=9.5, published=[dict(seconds=900.0, interior=1.11, accuracy=0.64)],
        ours={str(s): [dict(seconds=t, interior=i, accuracy=0.65)] for s, t, i in ((0, 90.0, 1.1), (1, 94.0, 1.09), (2, 99.0, 1.12))}),
    "reversal": dict(ratio=4.0, published=dict(seconds=44.0, exact=1.0),
                     ours=[dict(seconds=s, exact=e) for s, e in ((10.0, 1.0), (11.0, 0.995), (15.0, 1.0))]),
    "perceiver_cost": dict(curves={
        name: dict(points=[dict(size=32, skipped="", seconds=9, peak=9), dict(size=8192, skipped=skipped, seconds=s, peak=p * 2**20)])
        for name, s, p, skipped in (("perceiver-64", 0.1, 50, ""), ("full-fused", 2.0, 400, ""), ("full-unfused", None, 0, "too large"))}),
    "tournament": dict(
        runs=[dict(budget=b, contest=c, wiring=w, f1=x, exact=x / 2, bits=x) for b, c, w, x in (
            ("full", "reading", "encoder", 0.75), ("full", "reading", "encoder", 0.25), ("full", "reading", "decoder", 0.625),
            ("short", "reading", "encoder", 1.0), ("full", "rewriting", "encoder", 1.0), ("full", "writing", "encoder", 3.0),
            ("full", "writing", "decoder", 2.0))],
        baselines=dict(reading=dict(majority=dict(f1=0.0), table=dict(f1=0.125)), rewriting=dict(copy=dict(exact=0.0)),
                       writing={"1-gram": dict(bits=4.0), "5-gram": dict(bits=1.5)})),
}


@pytest.fixture
def stored(monkeypatch):
    monkeypatch.setattr(summary, "load_results", STORED.__getitem__)


def test_the_figures_of_every_part(stored):
    text = "\n".join(summary.lines())
    for line in (
        "published recipe, run here: 900 s to an interior loss of 1.110 nats, accuracy 0.640",
        "ours, median of 3 seeds: 94 s to 1.100 nats, accuracy 0.650", "time ratio 9.5",
        "ours, median of 3 seeds: 11.0 s, worst exact match 0.995", "time ratio 4.0",
        "64 latents over 8,192 inputs: 100 ms, 50 MiB at the peak",
        "full attention, fused kernel: 2,000 ms, 400 MiB: 20 times the time, 8.0 times the memory",
        "reading (f1): decoder 0.625, encoder 0.500; best baseline 0.125",
        "rewriting (exact): encoder 0.500; best baseline 0.000", "writing (bits): decoder 2.000, encoder 3.000; best baseline 1.500",
    ):
        assert f"  {line}" in text
    assert "written out" not in text and "1. One block, three wirings" in text and "all together" in text


def test_a_part_without_results_says_how_to_get_them(monkeypatch):
    def missing(name):
        raise ValueError(f"name={name!r} is not a stored result; there are: none yet.")

    monkeypatch.setattr(summary, "load_results", missing)
    lines = list(summary.lines())
    assert sum(line.startswith("  not measured: name=") for line in lines) == 4
    assert all("`python -m benchmarks." in line for line in lines if "not measured" in line)


def test_the_command_measures_only_when_asked(stored, monkeypatch, capsys):
    monkeypatch.setattr(bench.table, "update", lambda: False)
    ran = []

    class Trial:
        @staticmethod
        def main(arguments):
            ran.append(arguments)
            return 3

    monkeypatch.setattr(bench.importlib, "import_module", lambda name: Trial)
    assert bench.main(["--stored"]) == 0 and ran == []
    assert bench.main([]) == 3 and ran == list(bench.BENCHMARKS.values())
    said = capsys.readouterr()
    assert "time ratio 9.5" in said.out and "the table is current" in said.out and "ended with exit code 3" in said.err


def test_every_benchmark_that_is_named_takes_its_options():
    for name, options in bench.BENCHMARKS.items():
        module = importlib.import_module(f"benchmarks.{name}")
        assert callable(module.main), name
        with pytest.raises(SystemExit) as stopped:
            module.main([*options, "--help"])
        assert stopped.value.code == 0
