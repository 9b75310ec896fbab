# ---
# jupyter:
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---
# %% [markdown]
# # Appendix: why this recipe is so much faster
#
# **The question.** The published encoder of chapter 2 needs 2,000 steps of 64 windows to reach its quality. The recipe of
# this book reaches the same quality, on the same text, by the same measure, in a fraction of the time. Which of its
# ingredients does that, and how would you have found out?
#
# **You will be able to**
#
# - split "faster" into its two factors, loss per character read and seconds per character, and measure each;
# - read an ablation table with its spread, and say which rows are more than noise;
# - name, for each ingredient, the reason that it works and the paper that it comes from.
#
# **Builds on** chapter 2. Nothing is trained on this page: the runs take about an hour, and their results are
# stored in the package, each with the command that made it.

# %% tags=["setup", "hide-cell"] jupyter={"source_hidden": true}
# @title Set-up
import statistics

from d2lmini import claim, load_results, say
from d2lmini.plotting import BLUE, GREY, RED, SKY, figure, show

# %% [markdown]
# ## The bar, fixed beforehand
#
# The text is *The Time Machine*, reduced to 27 characters. Training windows of 64 characters start at characters
# 0 … 99,999, validation windows at 100,000 … 102,999; 15% of the characters are hidden, in five passes. Re-running the
# published recipe gave an **interior** loss (the mean over positions 16 … 47) of 1.118 nats and an accuracy of 0.639. That
# is the bar: both must be met, by the model as it is at the last step of a run whose length was chosen before it started.
# A run that is stopped when it happens to be good does not count.
#
# > **Check your sources.** In this split the last training windows overlap the first validation windows by up to 63
# > characters, and only 3,063 characters are scored. It is used here because the published figures were made with it;
# > chapter 2 measures on whole chapters held out.
#
# > **Prediction.** The published recipe takes 2,000 steps of 64 windows. How many steps of 8 windows will do, and how much
# > of the time?
#
# The two recipes, run one after the other in one process on two threads (`python -m benchmarks.encoder --save`), evaluation
# off the clock:

# %%
record = load_results("encoder_record")
settings = [
    ("", "published", "here"),
    ("blocks", "4", "2"),
    ("positions", "learned table", "rotary"),
    ("optimizer", "AdamW", "Muon in tiles, AdamW on the rest"),
    ("learning rate", "constant", "falls linearly to 0"),
    ("windows a step", "64", "8"),
    ("hidden in training", "15%", "30%"),
]
for row in settings:
    print("  ".join(f"{cell:<20}" for cell in row).rstrip())

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: both curves
fig, ax = figure(height=3.2)
theirs, ours = record["published"], list(record["ours"].values())
ax.plot([p["seconds"] for p in theirs], [p["interior"] for p in theirs], "o-", color=GREY, label="published recipe")
for n, curve in enumerate(ours):
    ax.plot([p["seconds"] for p in curve], [p["interior"] for p in curve], "o-", color=BLUE, ms=4, lw=1.2,
            label=f"this recipe, {len(ours)} seeds" if n == 0 else None)
ax.axhline(1.118, color=RED, lw=1, ls=":")
ax.text(theirs[-1]["seconds"], 1.15, "the bar, 1.118 nats", ha="right", color=RED, fontsize=8)
ax.set(xlabel="seconds of training, two threads", ylabel="interior loss (nats)", ylim=(0.9, 3.1), xlim=(0, None))
ax.legend()
last, ends = theirs[-1], [curve[-1] for curve in ours]
median = {key: statistics.median(end[key] for end in ends) for key in ("seconds", "interior", "accuracy")}
worst = max(end["interior"] for end in ends)
show(fig, f"Interior loss against seconds of training. The published recipe takes {last['seconds']:.0f} s to "
          f"{last['interior']:.2f} nats; the runs of this recipe end at {worst:.2f} or lower after about "
          f"{median['seconds']:.0f} s.")

# %% [markdown]
# **Reading it.** Seconds of training, evaluation off the clock; each blue line is a seed, each dot an evaluation, and the last
# one is scored with the full five passes. What counts is the last dot of each line.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title What was measured
say(f"The published recipe took {last['seconds']:.0f} s for its {last['step']:,} steps and ended at {last['interior']:.3f} nats "
    f"and an accuracy of {last['accuracy']:.3f}. Ours took {median['seconds']:.0f} s (median of {len(ends)} seeds) for "
    f"{ends[0]['step']:,} steps and ended at {median['interior']:.3f} nats (median; worst seed {worst:.3f}) and an accuracy of "
    f"{median['accuracy']:.3f} (worst {min(end['accuracy'] for end in ends):.3f}). That is "
    f"**{record['ratio']:.1f} times** as fast.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("the-record", "the recipe reaches the bar in at most a sixth of the published recipe's time, on the same machine",
      record["ratio"], at_least=6, published="2,000 steps, 825 s on two CPU cores when re-run",
      why="the ingredients that this page takes apart")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("every-seed-reaches-the-bar", "the worst of the seeds has an interior loss of at most 1.118 nats",
      worst, at_most=1.118, published="1.10 published, 1.118 when re-run")

# %% [markdown]
# ## Two factors
#
# Time is (characters read) × (seconds per character). Both recipes read every character through the same kind of block, so
# count first:

# %% tags=["nbval-ignore-output"]
read = {"published": 64 * 64 * last["step"], "here": 64 * 8 * ends[0]["step"]}
spent = {"published": last["seconds"], "here": median["seconds"]}
for name in read:
    print(f"{name:<10} {read[name] / 1e6:5.2f} million characters, {spent[name] / read[name] * 1e6:5.1f} µs each")

# %% [markdown]
# > **In words.** The larger factor is the first: this recipe *reads less text* for the same quality. The second is what
# > two blocks instead of four leave, minus the optimizer's work, which small batches spread over fewer characters.
#
# ## One ingredient at a time
#
# The table takes one ingredient out of the recipe and puts the published choice back (for tiles, which are ours, whole
# matrices), three seeds each
# (`python -m benchmarks.ablation`; one row again: `python -m benchmarks.ablation --row NAME`). Every row reads the same
# number of characters. AdamW gets a rate of its own, 0.003, since Muon's would be no rate for it. The loss is measured on
# every third validation window, in which every character still occurs; time is CPU time on one thread, relative to the
# record's own.
#
# > **Prediction.** Before you look: which of these costs most? Sort them. Ours, written down before the runs: learned
# > positions and AdamW cost most, about half a nat each, because both leave the model on the unigram plateau for a good
# > part of so short a run; 64 windows a step nearly as much, since it leaves an eighth of the updates; a constant rate
# > 0.05; 15% hidden 0.03; four blocks gain a little per character and cost twice the time; whole matrices in Muon
# > cost time and no quality.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The ablation table
ablation = load_results("encoder_ablation")
rows: dict[str, list[dict]] = {}
for run in ablation["runs"]:
    rows.setdefault(run["row"], []).append(run)
base = {key: statistics.mean(run[key] for run in rows["the record"]) for key in ("interior", "cpu_seconds")}
lines = ["| changed | interior (nats) | range over seeds | cost (nats) | accuracy | time | reaches the bar |",
         "|:--|--:|:--|--:|--:|--:|--:|"]
costs = {}
for name, runs in rows.items():
    losses = [run["interior"] for run in runs]
    costs[name] = statistics.mean(losses) - base["interior"]
    bar = sum(run["interior"] <= 1.118 and run["accuracy"] >= 0.639 for run in runs)
    lines.append(f"| {name} | {statistics.mean(losses):.3f} | {min(losses):.3f} … {max(losses):.3f} | {costs[name]:+.3f} | "
                 f"{statistics.mean(run['accuracy'] for run in runs):.3f} | "
                 f"× {statistics.mean(run['cpu_seconds'] for run in runs) / base['cpu_seconds']:.2f} | {bar} of {len(runs)} |")
say("\n".join(lines))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: what each ingredient is worth
names = sorted((n for n in rows if n != "the record"), key=costs.get)
fig, ax = figure(height=0.36 * len(names) + 1.1)
noise = [run["interior"] for run in rows["the record"]]
ax.axvspan(min(noise), max(noise), color=SKY, alpha=0.35, lw=0)
ax.axvline(1.118, color=RED, lw=1, ls=":")
for y, name in enumerate(names):
    losses = [run["interior"] for run in rows[name]]
    ax.plot(losses, [y] * len(losses), "o", color=BLUE, ms=5, alpha=0.8)
ax.set_yticks(range(len(names)), names)
ax.set(xlabel="interior loss (nats); band: the record's seeds, dotted: the bar", ylim=(-0.6, len(names) - 0.4))
show(fig, "One dot per seed for each recipe with one ingredient changed. Worst is "
          f"{names[-1]} ({costs[names[-1]]:+.2f} nats against the record), then {names[-2]} ({costs[names[-2]]:+.2f}).")

# %% [markdown]
# **Reading it.** Every dot is a run. A row whose dots overlap the band shows nothing with three seeds; a row whose dots
# lie right of the dotted line would not have reached the bar.
#
# ## Why, one by one
#
# **Positions that need no learning.** A masked letter is guessed best from its neighbours, so the first useful thing that a
# head can learn is "look one to the left". With a learned table (Devlin et al. 2019) the model must first discover, out of
# 64 unrelated vectors, which two stand side by side; until then it can only know how often each letter occurs, and its loss
# stays at the unigram entropy. Rotary positions (Su et al. 2021, "RoFormer") turn
# queries and keys so that their product depends on the distance alone: one direction in weight space says "one to the
# left" for all 64 positions at once, and every position's gradient pushes it.
#
# **An optimizer that moves in all directions.** Most of a weight matrix's gradient points in a few directions, those in
# which the loss is steepest; a step along it hardly moves the others. Muon (Jordan et al. 2024; chapter 2 writes it out)
# takes the matrix of the gradient apart into directions and strengths, $USV^\top$ (the singular value decomposition), and
# uses nearly $UV^\top$ instead, so that all directions move equally far. It gets there with five rounds of matrix products
# (Newton–Schulz) on every matrix and at every step, whatever the batch.
#
# **Tiles.** So we cut each matrix into tiles of 32 rows, which for queries, keys and values is one head each, and treat
# every tile as a matrix of its own. A product of a tile with its transpose grows with the square of the shorter side, and
# that is now 32. Heads do not share their rows in the forward pass either. The row "whole matrices" says what that saves in
# time and what it costs in nats.
#
# **Many small steps.** A gradient from 64 windows has an eighth of the variance of one from 8. Early in training that is not
# what is missing: the direction is clear and the way is long. Above a **critical batch size** half the batch costs almost
# nothing per step in progress (McCandlish et al. 2018), so the same text buys more steps; below it, half the batch makes half
# the progress, and nothing is gained. Early in training the critical size is small. What ends the game is the work per step
# that does not shrink with the batch: the optimizer's.
#
# **A rate that falls to zero.** At a constant rate the weights keep wandering around the minimum, the further the larger the
# rate. Falling linearly to zero (Defazio et al. 2023) allows the noise where it does no harm, early, and takes it away at
# the end. It only works if the end is known beforehand, which is why the record fixes its step.
#
# **Thirty percent hidden.** Only hidden positions are scored, so hiding 30% gives twice the gradient signal for the same
# forward pass; it also makes each guess harder, with less to see. Wettig et al. (2023) found
# more than 15% to be better for large BERTs too. It is measured at 15% all the same: the bar is the
# published one.
#
# **Two blocks.** Most of what 64 characters tell about a hidden one is in its word and the next. Four blocks know how to
# use more context, per character read; per second, two blocks read twice as much.
#
# > **What this does not show.** One corpus of 100,000 characters, one model size and one bar. An ablation takes one
# > ingredient out of a recipe tuned with all of them present, so it understates what a re-tuned recipe would reach without
# > it: AdamW, for one, would like a smaller rate or a longer run. And costs do not add: two rows together can cost less
# > than their sum.
#
# > **Try it.** `python -m benchmarks.ablation --list` prints the rows. Add one (`benchmarks/ablation.py`, one line in
# > `ROWS`): 40% hidden, say, or a warmup. Predict first.
