"""What `make bench` prints, from the notebooks' recorded times and the stored results; nothing is measured here."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from d2lmini.results import load_results
from tools import table

PUBLISHED = "perceiver on a GPU, N = 1,024 to 8,192: 0.8 to 20 times (first framework), 1.4 to 37 times (second)"
GAP_AT = 8192


def chapters() -> Iterator[str]:
    """Seconds of each notebook's stored run, as the first page shows them."""
    rows = [row for row in table.chapters() if row["seconds"] is not None]
    for row in rows:
        yield f"{row['seconds']:7.1f} s  {row['title']}"
    yield f"{sum(row['seconds'] for row in rows):7.1f} s  all together"


def encoder() -> Iterator[str]:
    stored = load_results("encoder_record")
    ends = [curve[-1] for curve in stored["ours"].values()]
    theirs = stored["published"][-1]
    yield (f"published recipe, run here: {theirs['seconds']:.0f} s to an interior loss of {theirs['interior']:.3f} nats, "
           f"accuracy {theirs['accuracy']:.3f}")
    yield (f"ours, median of {len(ends)} seeds: {statistics.median(e['seconds'] for e in ends):.0f} s to "
           f"{statistics.median(e['interior'] for e in ends):.3f} nats, "
           f"accuracy {statistics.median(e['accuracy'] for e in ends):.3f}")
    yield f"time ratio {stored['ratio']:.1f}"


def reversal() -> Iterator[str]:
    stored = load_results("reversal")
    theirs, ours = stored["published"], stored["ours"]
    yield f"published recipe, run here: {theirs['seconds']:.1f} s to exact match {theirs['exact']:.3f}"
    yield (f"ours, median of {len(ours)} seeds: {statistics.median(r['seconds'] for r in ours):.1f} s, "
           f"worst exact match {min(r['exact'] for r in ours):.3f}")
    yield f"time ratio {stored['ratio']:.1f}"


def perceiver() -> Iterator[str]:
    """Time and peak memory of full attention over a Perceiver's, at one length that both curves reach."""
    stored = load_results("perceiver_cost")

    def point(curve):
        found = [p for p in stored["curves"][curve]["points"] if p["size"] == GAP_AT and not p["skipped"]]
        return found[0] if found else None

    read = point("perceiver-64")
    yield f"64 latents over {GAP_AT:,} inputs: {1e3 * read['seconds']:.0f} ms, {read['peak'] / 2**20:.0f} MiB at the peak"
    for name, words in (("full-fused", "full attention, fused kernel"), ("full-unfused", "full attention, weights written out")):
        full = point(name) if name in stored["curves"] else None
        if full:
            yield (f"{words}: {1e3 * full['seconds']:,.0f} ms, {full['peak'] / 2**20:,.0f} MiB: "
                   f"{full['seconds'] / read['seconds']:.0f} times the time, {full['peak'] / read['peak']:.1f} times the memory")
    yield f"published, {PUBLISHED}"


def tournament() -> Iterator[str]:
    """Each task's wirings from best to worst, by the mean over seeds after the full budget, and the best baseline."""
    stored = load_results("tournament")
    for contest, (key, best) in {"reading": ("f1", max), "rewriting": ("exact", max), "writing": ("bits", min)}.items():
        scores: dict[str, list[float]] = {}
        for r in stored["runs"]:
            if (r["budget"], r["contest"]) == ("full", contest):
                scores.setdefault(r["wiring"], []).append(r[key])
        means = sorted(((statistics.mean(v), w) for w, v in scores.items()), reverse=best is max)
        bare = best(found[key] for found in stored["baselines"][contest].values())
        yield f"{contest} ({key}): " + ", ".join(f"{w} {m:.3f}" for m, w in means) + f"; best baseline {bare:.3f}"


PARTS = {  # title: (part, the command that stores what it reads)
    "Time of each chapter's stored run, on two CPU cores": (chapters, "make run CH=NN"),
    "Encoder: time to the published quality": (encoder, "python -m benchmarks.encoder --save"),
    "Reversal: time to the published quality": (reversal, "python -m benchmarks.reversal --save"),
    "Perceiver: the gap to full attention": (perceiver, "python -m benchmarks.perceiver_cost --save"),
    "Tournament: four wirings, three tasks, equal parameters and training tokens": (tournament, "python -m benchmarks.tournament"),
}


def lines() -> Iterator[str]:
    """The whole summary; a part whose results are not stored says which command makes them."""
    for title, (part, command) in PARTS.items():
        yield title
        try:
            found = list(part())
        except (ValueError, KeyError) as missing:
            found = [f"not measured: {missing} `{command}` measures it."]
        yield from (f"  {line}" for line in found)
