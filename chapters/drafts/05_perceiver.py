# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5. Cross-attention as an interface: Perceiver and Perceiver IO
#
# **The question.** A page of text, a small photograph and a quarter of a second of sound are thousands of elements each, and self-attention pays for every pair of them. Does it have to?
#
# **What you will be able to do.**
#
# - let a fixed number of learned vectors read an input of any length, and ask them for an output of any length;
# - show that such a reader cannot tell an input from its permutation, and repair it in two ways;
# - measure a cost curve properly: median and spread, peak memory, operations counted by formula, fitted exponents, and the point below which the saving saves nothing;
# - say what a bottleneck costs in quality, with seeds, and where the information was lost;
# - recognise the same part in models that see, and say when a simpler interface does the job.
#
# **Builds on** attention and masks (chapter 1), masked language modelling (chapter 2) and cross-attention (chapter 4). Three letters mean something in this chapter only: $N$ inputs, $M$ latents, $O$ output queries. $D$ is the width and $H$ the number of heads, as everywhere.

# %% tags=["setup", "hide-cell"] jupyter={"source_hidden": true}
# @title Set-up
import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from d2lmini import (Block, Config, Encoder, FeedForward, MaskedBatch, MultiHeadAttention, Perceiver, PerceiverIO, RMSNorm,
                     TextPerceiver, claim, evaluate, fit, fourier_positions, linear_decay, load_corpus, load_results,
                     make_optimizers, masked_batches, masked_loss, random_windows, say, seed_everything, windows)
from d2lmini.costs import encoder_flops, forward_case, perceiver_flops
from d2lmini.diagrams import arrow, box, canvas
from d2lmini.plotting import BLUE, GREEN, GREY, INK, ORANGE, PALETTE, PURPLE, RED, SKY, figure, show
from d2lmini.timing import crossover, exponent, peak_memory, sweep

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# @title Start the clock
chapter_began = time.perf_counter()

# %% [markdown]
# ## 5.1 Latents that read
#
# In chapter 4 the queries of cross-attention came from one sequence and the keys and values from another. Nothing in the formula asks for the first sequence. Let the queries come from $M$ vectors that belong to no sequence at all: parameters of the model, learned like any weight, the same for every input. They are called **latents**. Write $Z_0$ for the $M\times D$ matrix of them and $X$ for the $N$ inputs:
#
# $$A = \operatorname{softmax}\!\left(\frac{(Z_0W^Q)(XW^K)^\top}{\sqrt{d_k}}\right)\in\mathbb R^{M\times N}, \qquad Z_1 = Z_0 + A\,(XW^V)\,W^O .$$
#
# > **In words.** Each latent asks the whole input one question per head, always the same question, and adds the answer to itself. There are $M$ rows of weights, not $N$: the table has $MN$ entries where self-attention has $N^2$.
#
# Then the latents talk among themselves, by the ordinary block of chapter 1 with no mask, at a cost of $M^2$ that no longer knows how long the input was. That is a **Perceiver** (Jaegle et al. 2021): one read, a few blocks.
#
# By hand first, with all four projections the identity, width 4 and so $\sqrt{d_k}=2$. Two latents read three inputs. Keys and values would both be the whole vector; to keep the arithmetic short the first two numbers of an input serve as its key, the last two as its value.
#
# | input | key | value | latent $a$ asks $(2,0)$: score, exponential, weight | latent $b$ asks $(0,2)$ |
# |---|---|---|---|---|
# | 1 | $(0,\ \ln 3)$ | $(6,\ 0)$ | $0,\ 1,\ 1/6$ | $\ln 3,\ 3,\ 3/5$ |
# | 2 | $(\ln 2,\ 0)$ | $(0,\ 6)$ | $\ln 2,\ 2,\ 2/6$ | $0,\ 1,\ 1/5$ |
# | 3 | $(\ln 3,\ 0)$ | $(6,\ 6)$ | $\ln 3,\ 3,\ 3/6$ | $0,\ 1,\ 1/5$ |
#
# > **Prediction.** Latent $a$ reads $\tfrac16(6,0)+\tfrac26(0,6)+\tfrac36(6,6)$. Work out both answers. Then exchange inputs 1 and 3: which of your numbers change?

# %%
latents = torch.tensor([[2.0, 0], [0, 2]])  # M = 2
keys = torch.tensor([[0, math.log(3)], [math.log(2), 0], [math.log(3), 0]])  # N = 3
values = torch.tensor([[6.0, 0], [0, 6], [6, 6]])


def read(keys, values):
    weights = (latents @ keys.T / 2).softmax(dim=-1)  # (M, N)
    return weights @ values  # (M, 2)


swap = [2, 1, 0]
print("as given ", read(keys, values).double().round(decimals=4).tolist())
print("exchanged", read(keys[swap], values[swap]).double().round(decimals=4).tolist())

# %% [markdown]
# The answers are $(4,5)$ and $(4.8,2.4)$, and exchanging two inputs changes nothing. Keep that in mind; section 5.2 comes back to it.
#
# Now the whole module. It needs nothing new: the multi-head attention of chapter 1 with a context, and a feed-forward, each with a norm in front and a residual connection around it. Inputs may have another width than the latents, so the context has a norm and a width of its own.

# %%
class MiniRead(nn.Module):
    """A few queries read a context."""

    def __init__(self, d_model, num_heads, d_ff, d_context):
        super().__init__()
        self.query_norm, self.context_norm = RMSNorm(d_model), RMSNorm(d_context)
        self.attention = MultiHeadAttention(d_model, num_heads, d_context=d_context)
        self.ff_norm, self.feed_forward = RMSNorm(d_model), FeedForward(d_model, d_ff)

    def forward(self, z, context):               # (B, M, D), (B, N, d_context)
        z = z + self.attention(self.query_norm(z), self.context_norm(context))
        return z + self.feed_forward(self.ff_norm(z))   # (B, M, D)


# %%
class MiniPerceiver(nn.Module):
    def __init__(self, d_input, num_latents, d_model=256, num_heads=4, num_layers=2):
        super().__init__()
        d_ff = round(8 * d_model / 3)
        self.latents = nn.Parameter(0.02 * torch.randn(num_latents, d_model))
        self.reader = MiniRead(d_model, num_heads, d_ff, d_input)
        self.blocks = nn.ModuleList(Block(d_model, num_heads, d_ff)
                                    for _ in range(num_layers))
        self.norm = RMSNorm(d_model)

    def forward(self, inputs):                   # (B, N, d_input)
        z = self.reader(self.latents.expand(len(inputs), -1, -1), inputs)
        for block in self.blocks:
            z = block(z)                         # M x M, whatever N was
        return self.norm(z)                      # (B, M, D)


# %%
seed_everything(0)
mini = MiniPerceiver(d_input=256, num_latents=64).eval()
inputs = torch.randn(1, 4096, 256)
with torch.no_grad():
    out = mini(inputs)
print(tuple(inputs.shape), "->", tuple(out.shape))

# %% [markdown]
# Four thousand vectors in, sixty-four out, and the 64 would be 64 for any $N$. The package's `Perceiver` is the same with argument checks, a mask for padded inputs and a trace for the weights. Copy the weights over and compare; with a trace asked for, the attention weights are built one by one instead of staying inside PyTorch's fused kernel, so this also compares those two paths.

# %%
package = Perceiver(256, 64, d_model=256, num_heads=4, num_layers=2).eval()
package.load_state_dict(mini.state_dict())
trace = {}
with torch.no_grad():
    fused, built = package(inputs), package(inputs, trace=trace)
print({name: tuple(weights.shape) for name, weights in trace.items()})

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("perceiver-agrees", "the Perceiver built here and the package's agree within 1e-5, weights built or not",
      max((fused - out).abs().max(), (built - out).abs().max()), at_most=1e-5)

# %% [markdown]
# ## 5.2 What it cannot see
#
# > **Prediction.** Shuffle the 4,096 inputs into random order and read them again. By how much do the latents change?

# %%
order = torch.randperm(4096, generator=torch.Generator().manual_seed(1))
with torch.no_grad():
    moved = (mini(inputs[:, order]) - mini(inputs)).abs().max().item()

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("order-is-invisible", "shuffling the inputs moves no latent by more than 1e-5: the minimal Perceiver cannot tell an "
      "input from its permutation", moved, at_most=1e-5)

# %% [markdown]
# Not by anything but rounding. A latent's answer is a sum over the inputs, and a sum has no order. Self-attention over the inputs has the same blindness (chapter 1), but there each output at least stands next to its input; here nothing stands next to anything. To this model a text is a bag of letters and a picture a bag of pixels.
#
# > **Check your sources.** The minimal Perceiver of the published lab that this chapter follows is timed on random vectors and never trained, so it does not matter there that it has no positions. As a model it would be useless, and no timing can show that.
#
# So the positions must be *in the inputs*. Two ways, both older than the Perceiver:
#
# - a **learned table** with one row per place, as in BERT;
# - **Fourier features**: the coordinate $x\in[-1,1]$ of the place, and sines and cosines of it at $K$ frequencies between one half-turn and the fastest that the grid can carry,
#
# $$p(x) = \bigl[x,\ \sin(\pi f_1x),\dots,\sin(\pi f_Kx),\ \cos(\pi f_1x),\dots,\cos(\pi f_Kx)\bigr],\qquad f_k \text{ evenly spaced from } 1 \text{ to } N/2 .$$
#
# > **In words.** Each place gets a row of clock hands that turn at different speeds as you walk along the input. Near places have similar hands on the slow clocks; the fastest changes sign from one place to the next, and tells neighbours apart.
#
# On a picture the features are made for each axis and put side by side; that is `fourier_positions((height, width), K)`.

# %%
def fourier(length, num_bands):
    x = torch.linspace(-1, 1, length)[:, None]
    angles = math.pi * x * torch.linspace(1, length / 2, num_bands)  # (N, K)
    return torch.cat((x, angles.sin(), angles.cos()), dim=-1)  # (N, 2K + 1)


places = fourier(4096, 32)
same = (places == fourier_positions((4096,), 32)).all()
print(tuple(places.shape), "equal to the package's:", bool(same))
with torch.no_grad():
    reader = MiniPerceiver(d_input=256 + places.shape[1], num_latents=64).eval()
    there = reader(torch.cat((inputs, places[None]), dim=-1))
    shuffled = reader(torch.cat((inputs[:, order], places[None]), dim=-1))
moved = (shuffled - there).abs().max().item()

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("order-becomes-visible", "with Fourier positions beside the inputs, the same shuffle moves a latent by at least 0.001, "
      "before any training", moved, at_least=1e-3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Figure: two kinds of places
seed_everything(0)
codes, table = fourier(64, 32), torch.randn(64, 65)
slow = torch.cat((codes[:, :5], codes[:, 33:37]), dim=1)                  # the coordinate and the four slowest frequencies
fig, axes = figure(1, 4, width=6.8, height=2.2)
axes[0].imshow(codes, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
axes[0].set_title("Fourier features", fontsize=9)
axes[0].set(xlabel="feature", ylabel="place")
for ax, part, title in zip(axes[1:], (codes, slow, table), ("all features", "slow ones only", "fresh table")):
    unit = F.normalize(part, dim=-1)
    ax.imshow(unit @ unit.T, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_title(title, fontsize=9)
    ax.set(xlabel="place", yticks=[])
for ax in axes:
    ax.grid(False)
show(fig, "First panel: Fourier features of 64 places, slow waves to fast waves. Second: likeness between places by all features: "
          "the diagonal alone. Third: by the slow features only: a soft band around the diagonal. Fourth: a freshly drawn table: "
          "the diagonal and noise, no neighbourhoods.")

# %% [markdown]
# **Reading it.** First panel, one row per place: the coordinate itself, then sines from slow to fast, then cosines. The other three show how alike two places look (red alike, blue opposite). By all features a place resembles only itself (and, in the corners, the two ends resemble each other: clocks that make whole turns agree there, and only the coordinate tells them apart); by the slow ones, itself and its neighbourhood. A query chooses by its weights which clocks to listen to, so it can look at one place or at a region. A fresh table offers no such choice: "next to" has to be learned, row by row, from data. Against that a table can learn what no formula foresaw.
#
# | | Fourier features | learned table |
# |---|---|---|
# | parameters | none | one row per place |
# | neighbourhood | in the slow features | to be learned |
# | longer inputs than in training | defined, if coarser | no row there |
# | two axes, three axes | the same formula | rows for every combination |
#
# Section 5.5 trains with both.

# %% [markdown]
# ## 5.3 What a read costs
#
# Count multiplications and additions in matrix products, and nothing else. A product of an $a\times b$ with a $b\times c$ matrix is $2abc$ of them. With $F$ the inner width of the feed-forward, one block over $N$ vectors takes
#
# $$\underbrace{8ND^2}_{W^Q,W^K,W^V,W^O} + \underbrace{4N^2D}_{\text{scores, weighted sum}} + \underbrace{6NDF}_{\text{feed-forward}},$$
#
# and a read of $N$ inputs of width $D$ by $M$ latents
#
# $$\underbrace{4ND^2}_{W^K,W^V} + \underbrace{4MD^2}_{W^Q,W^O} + \underbrace{4MND}_{\text{scores, weighted sum}} + \underbrace{6MDF}_{\text{feed-forward}} .$$
#
# > **In words.** In the block the input's length appears squared. In the read it appears once in every term: each further input must be turned into a key and a value and be compared with $M$ latents, and that is all. What comes after the read does not contain $N$.
#
# PyTorch can count what it really executes. One trap: its counter knows the fused attention kernels of GPUs and not the one that runs on a CPU, whose products it leaves out. So let it count the path that builds the weights: the same products, in the open.

# %%
def counted(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


shape = dict(d_model=256, num_layers=2)
full = forward_case(512, design="full", fused=False)
reads = forward_case(512, design="perceiver", num_latents=64, fused=False)
print("two blocks over 512 inputs, formula = counter:   ",
      encoder_flops(512, **shape) == counted(full))
print("64 latents reading 512 inputs, formula = counter:",
      perceiver_flops(512, 64, **shape) == counted(reads))
for n in (64, 512, 8192):
    ratio = encoder_flops(n, **shape) / perceiver_flops(n, 64, **shape)
    print(f"N = {n:5,d}: blocks over everything need {ratio:5.2f} times the operations")

# %% [markdown]
# At $N=64$ the bottleneck is as wide as the input, and the Perceiver does *more*: it has the same two blocks over 64 vectors and the read on top.
#
# Operations are not seconds. Memory has to be moved, small products do not fill a processor, and self-attention that builds its weights writes and reads $HN^2$ numbers. So measure. Four rules keep the measurement honest:
#
# 1. a first call warms up and is not counted;
# 2. fast points are repeated many times, slow ones once or twice, and the **median** is shown with its quartiles;
# 3. all runs use one thread, and the clock counts what this process computed, not what it waited for: the curve is about arithmetic, not about how two cores share it or who else is at work;
# 4. peak memory is read in a fresh process per point: its largest resident size during the call, minus the largest before it.
#
# A point that would take too long or not fit into memory is left out, with a sentence that says so.
#
# > **Prediction.** Double $N$ again and again. The time grows like $N^e$; what is $e$ at the long end for two blocks over everything, and what for 64 latents that read and two blocks over them? And at $N=8{,}192$, how many times slower is the first than the second: 5, 50, 500?

# %%
SIZES = [2**k for k in range(7, 14)]  # 128 ... 8,192
CASES = {
    "self-attention, weights built": (SIZES[:-1], dict(design="full", fused=False)),
    "self-attention, fused": (SIZES, dict(design="full")),
    "Perceiver, M = 64": (SIZES, dict(design="perceiver", num_latents=64)),
}
threads = torch.get_num_threads()
torch.set_num_threads(1)
live = {name: sweep(forward_case, sizes, budget=0.3, kwargs=how,
                    clock=time.process_time)
        for name, (sizes, how) in CASES.items()}
torch.set_num_threads(threads)

# %% tags=["nbval-ignore-output"]
for name, points in live.items():
    for p in points[-3:]:
        print(f"{name:30s} N = {p.size:5,d}: {1000 * p.seconds:8.1f} ms  "
              f"(quartiles {1000 * p.low:.1f}, {1000 * p.high:.1f}; {p.repeats} times)"
              if p.seconds else p.skipped)

# %% [markdown]
# And the memory of one call at $N=4{,}096$, each in a process of its own:

# %% tags=["nbval-ignore-output"]
for name, (_, how) in CASES.items():
    peak = peak_memory(forward_case, 4096, **how)
    print(f"{name:30s}", "not measured on this system" if peak is None
          else f"{peak / 2**20:8.1f} MiB")

# %% [markdown]
# The sweep above is short, so that you need not wait. A longer one, from 32 to 16,384 inputs and with three numbers of latents, is stored with the command that made it, `python -m benchmarks.perceiver_cost`.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: time and memory against length
stored = load_results("perceiver_cost")
LOOK = {"full-unfused": ("self-attention, weights built", RED, "s"), "full-fused": ("self-attention, fused", BLUE, "o"),
        "perceiver-64": ("Perceiver, M = 64", PURPLE, "^")}


def stored_curve(key, field):
    kept = [p for p in stored["curves"][key]["points"] if p[field] is not None]
    return np.array([p["size"] for p in kept]), np.array([p[field] for p in kept])


rate = max(f / p["seconds"] for c in stored["curves"].values() for f, p in zip(c["flops"], c["points"]) if p["seconds"])
fig, axes = figure(1, 2, width=6.4, height=3.5)
for key, (label, color, marker) in LOOK.items():
    sizes, seconds = stored_curve(key, "seconds")
    low, high = stored_curve(key, "low")[1], stored_curve(key, "high")[1]
    axes[0].fill_between(sizes, 1e3 * low, 1e3 * high, color=color, alpha=0.25, lw=0)
    axes[0].plot(sizes, 1e3 * seconds, color=color, label=label)
    axes[0].plot([p.size for p in live[label] if p.seconds], [1e3 * p.seconds for p in live[label] if p.seconds], marker,
                 color=color, ms=4, mfc="none")
    if key != "full-unfused":
        axes[0].plot(stored["sizes"], [1e3 * f / rate for f in stored["curves"][key]["flops"]], color=color, lw=1, ls=":")
    sizes, peak = stored_curve(key, "peak")
    axes[1].plot(sizes, peak / 2**20, color=color, marker=marker, ms=3)
axes[0].set(xscale="log", yscale="log", xlabel="inputs N", ylabel="time of one pass (ms)", title="Time")
axes[1].set(xscale="log", yscale="log", xlabel="inputs N", ylabel="peak memory of one pass (MiB)", title="Memory")
for ax in axes:
    ax.set_xticks([32, 128, 512, 2048, 8192], ["32", "128", "512", "2,048", "8,192"])
    ax.minorticks_off()
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
sizes, blue = stored_curve("full-fused", "seconds")
purple = stored_curve("perceiver-64", "seconds")[1]
cross = crossover(sizes, blue, purple[:len(sizes)])
show(fig, "Log-log curves of time and peak memory against the number of inputs. Self-attention bends upwards and ends one "
          "to two orders of magnitude above the Perceiver in time; with built weights its memory reaches gigabytes, while "
          "the fused kernel and the Perceiver stay far below. At the short end the Perceiver is the slower one.")

# %% [markdown]
# **How to read it.** On log–log axes a power law is a straight line, and its slope is the exponent. Solid lines are the stored sweep (bands: quartiles), open markers are the run you have just seen, dotted lines are the operations of the formula, divided by the best rate that any point of the sweep reached. The closer a solid line runs to its dotted one, the more its time is arithmetic. Follow a solid line to the left, where it leaves the dotted one and goes flat: there, time is the cost of starting some dozens of small operations, and length hardly matters.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Measured: exponents, gap, crossover
def slope(name, last=2):
    points = [p for p in live[name] if p.seconds]
    return exponent([p.size for p in points], [p.seconds for p in points], last=last)


slopes = {name: slope(name) for name in live}
seconds = {name: {p.size: p.seconds for p in points if p.seconds} for name, points in live.items()}
full, perceiver = (seconds[name] for name in ("self-attention, fused", "Perceiver, M = 64"))
gap = full[8192] / perceiver[8192]
built_gap = seconds["self-attention, weights built"][4096] / full[4096]
long_slope = {key: exponent(*stored_curve(key, "seconds"), last=2) for key in LOOK}
say(f"Over the last two doublings of this run the time of self-attention grows with exponent "
    f"**{slopes['self-attention, fused']:.2f}** (fused) and {slopes['self-attention, weights built']:.2f} (weights built), that "
    f"of the Perceiver with **{slopes['Perceiver, M = 64']:.2f}**. In the stored sweep, which goes one doubling further, they "
    f"are {long_slope['full-fused']:.2f}, {long_slope['full-unfused']:.2f} and {long_slope['perceiver-64']:.2f}. The formulas, "
    f"over this run's sizes, say {exponent(SIZES, [encoder_flops(n, **shape) for n in SIZES], last=2):.2f} and "
    f"{exponent(SIZES, [perceiver_flops(n, 64, **shape) for n in SIZES], last=2):.2f}. At 8,192 inputs the fused "
    f"self-attention takes **{gap:.0f} times** as long as the Perceiver. Building the weights makes it {built_gap:.1f} times slower "
    f"again at 4,096. In the stored sweep the Perceiver is the faster one from about {round(cross, -1):.0f} inputs on; by the "
    f"count of operations it would be from {next(n for n in range(1, 999) if perceiver_flops(n, 64, **shape) < encoder_flops(n, **shape))}.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claims
claim("self-attention-exponent", "fused self-attention over the full input grows with an exponent of at least 1.5 over the "
      "last two doublings up to 8,192 inputs", slopes["self-attention, fused"], at_least=1.5,
      published="1.77 from 2,048 to 8,192 inputs on a GPU (2.80, 9.46, 34.79 ms)")
claim("perceiver-exponent", "64 latents that read the same inputs grow with an exponent of at most 1.15",
      slopes["Perceiver, M = 64"], at_most=1.15, published="0.15 on the same GPU (1.40, 1.35, 1.72 ms)",
      why="a GPU is not yet filled by a read of 8,192 inputs, so its time hardly grows; one CPU core is filled by a few hundred")
claim("gap-at-8192", "at 8,192 inputs self-attention takes at least 10 times as long as the Perceiver, fused kernel or not",
      gap, at_least=10, published="20 times on a GPU (34.79 ms against 1.72 ms)")

# %% [markdown]
# Neither exponent is 2, and neither is a failure of the theory. Two blocks over everything cost $L(8D^2+6DF)\,N + 4LD\,N^2$: at $D=256$ the two terms are equal at about 1,500 inputs, so at 8,192 the straight part still counts. The Perceiver's cost has a constant in it, the blocks over 64 latents, so its exponent comes up to 1 from below.
#
# The red and the blue line compute the same numbers. The fused kernel goes through the keys in slices and keeps a running softmax, so it never holds the $N\times N$ table: its *memory* is linear, its arithmetic is not. Two different cures: the kernel makes self-attention affordable in memory, the latents make it affordable in operations.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: how many latents
fig, ax = figure(height=2.9)
for (m, color) in ((16, SKY), (64, PURPLE), (256, ORANGE)):
    sizes, mine = stored_curve(f"perceiver-{m}", "seconds")
    ax.plot(sizes, stored_curve("full-fused", "seconds")[1] / mine, color=color, marker="o", ms=3, label=f"M = {m}")
    ax.plot(stored["sizes"], [a / b for a, b in zip(stored["curves"]["full-fused"]["flops"], stored["curves"][f"perceiver-{m}"]["flops"])],
            color=color, lw=1, ls=":")
ax.axhline(1, color=INK, lw=0.8)
ax.text(14000, 0.8, "below: the bottleneck costs more than it saves", ha="right", va="top", fontsize=8, color=GREY)
ax.set(xscale="log", yscale="log", xlabel="inputs N", ylabel="self-attention / Perceiver")
ax.set_xticks([32, 128, 512, 2048, 8192], ["32", "128", "512", "2,048", "8,192"])
ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
ax.minorticks_off()
ax.legend(loc="upper left")
show(fig, "Time of fused self-attention divided by the time of a Perceiver with 16, 64 and 256 latents, against the number of "
          "inputs. The ratios start below 1, cross it between about one hundred and a few hundred inputs, later for more "
          "latents, and end between about ten and one hundred.")

# %% [markdown]
# **Reading it.** Above the line at 1 the Perceiver wins, below it the plain encoder does; solid is time, dotted is operations. More latents move the crossing to the right and lower the gain at the far end: at 256 latents the read does four times the comparing, and the blocks over the latents cost more than four times as much.
#
# > **What this does not show.** Speed alone. Everything in this section was timed on random numbers: a function that returned 64 zeros would have won every race. What 64 vectors still know about 4,096 is the subject of section 5.5. And these are forward passes at batch size 1, where a GPU would be mostly idle.
#
# ## 5.4 Queries that ask for outputs
#
# A Perceiver ends in $M$ latents, and $M$ is nobody's output format. **Perceiver IO** (Jaegle et al. 2022) uses the same trick a second time, in the other direction: $O$ **output queries** read the latents. One query per thing that you want to know:
#
# | task | output queries |
# |---|---|
# | classify the input | one learned vector |
# | predict the character at every position | one per position: its position code |
# | colour every pixel, or only a few of them | one per pixel asked for |
# | estimate the motion at every pixel | one per pixel, made of its position and its own colours |
#
# $$Y = \operatorname{read}\bigl(\text{queries},\ \operatorname{blocks}(\operatorname{read}(Z_0, X))\bigr),\qquad \text{cost } \mathcal O(MN + LM^2 + OM).$$
#
# > **In words.** The input writes into the latents, the latents think, and each question is answered from the latents alone. Input length and output length never meet in a product: neither is multiplied by the other.
#
# No new part is needed. The module that read the input reads the latents:

# %%
class MiniPerceiverIO(nn.Module):
    def __init__(self, d_input, num_latents, d_model=256):
        super().__init__()
        self.perceiver = MiniPerceiver(d_input, num_latents, d_model)
        self.writer = MiniRead(d_model, 4, round(8 * d_model / 3), d_model)
        self.norm = RMSNorm(d_model)

    def forward(self, inputs, queries):          # (B, N, d_input), (O, D)
        latents = self.perceiver(inputs)         # (B, M, D)
        queries = queries.expand(len(inputs), -1, -1)
        return self.norm(self.writer(queries, latents))  # (B, O, D)


# %%
seed_everything(0)
mini_io = MiniPerceiverIO(256, 64).eval()
package_io = PerceiverIO(256, 64, d_model=256).eval()
package_io.load_state_dict(mini_io.state_dict())
with torch.no_grad():
    for num_outputs in (1, 10, 4096):
        queries = torch.randn(num_outputs, 256)
        answers = mini_io(inputs, queries)
        same = bool((package_io(inputs, queries) - answers).abs().max() < 1e-5)
        print(f"O = {num_outputs:5,d}: {tuple(answers.shape)}, as the package: {same}")

# %% [markdown]
# The outputs do not see each other, so a query gets the same answer alone or among thousands: ask in batches, ask for a subset, ask again later from stored latents.
#
# **The cost, verified.** If the cost is $\mathcal O(MN+LM^2+OM)$, then one more input must cost the same no matter how many outputs there are, and the other way round.

# %%
def io_flops(n, m, o):
    model = PerceiverIO(256, m, d_model=256).eval().requires_grad_(False)
    x, queries = torch.randn(1, n, 256), torch.randn(o, 256)
    return counted(lambda: model(x, queries, trace={}))


print("formula = counter at (N, M, O) = (512, 64, 100):",
      io_flops(512, 64, 100) == perceiver_flops(512, 64, 100, **shape))
for o in (1, 1000):
    more = io_flops(513, 64, o) - io_flops(512, 64, o)
    print(f"one more input, with {o:5,d} outputs: {more:9,d} operations")
for n in (512, 2048):
    more = io_flops(n, 64, 101) - io_flops(n, 64, 100)
    print(f"one more output, with {n:5,d} inputs: {more:9,d} operations")

# %% [markdown]
# ### When to ask the input itself
#
# Why have latents at all? The $O$ queries could read the $N$ inputs directly. That is a `Perceiver` too, with $O$ latents and no blocks. Leave out everything but the comparing: through the latents it costs $M(N+O)$, directly $NO$, so the detour pays when
#
# $$M(N+O) < NO \quad\Longleftrightarrow\quad \frac1M > \frac1N + \frac1O .$$
#
# > **In words.** Only when the bottleneck is narrower than both ends, and clearly narrower than the smaller end. With one output query per class label, read the input directly; with one per pixel, do not.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Figure: through the latents, or directly
grid = [2**k for k in range(4, 15)]
ratio = np.array([[perceiver_flops(n, o, d_model=256, num_layers=0) / perceiver_flops(n, 64, o, **shape) for n in grid]
                  for o in grid])
fig, ax = figure(width=5.2, height=3.7)
mesh = ax.pcolormesh(grid, grid, np.log10(ratio), cmap="PuOr", vmin=-1.3, vmax=1.3, shading="nearest")
ax.contour(grid, grid, np.log10(ratio), [0], colors=[INK], linewidths=1.4)
n = np.array([x for x in np.geomspace(64.5, 2**14, 200)])
ax.plot(n, 64 * n / (n - 64), color=INK, lw=1, ls="--")
ax.set(xscale="log", yscale="log", xlabel="inputs N", ylabel="output queries O", xlim=(13, 2**14.5), ylim=(13, 2**14.5))
for axis in (ax.xaxis, ax.yaxis):
    axis.set_ticks([16, 64, 256, 1024, 4096, 16384], ["16", "64", "256", "1,024", "4,096", "16,384"])
ax.minorticks_off()
ax.grid(False)
bar = fig.colorbar(mesh, ticks=[-1, 0, 1])
bar.ax.set_yticklabels(["1/10", "1", "10"])
bar.set_label("operations, direct / through 64 latents")
show(fig, "Operations of reading the input directly, divided by those through 64 latents, for 16 to 16,384 inputs and outputs. "
          "The detour through the latents is cheaper only in the upper right, where both numbers are in the many "
          "hundreds; it is dearer wherever either is small.")
say(f"With {grid[-1]:,} inputs and as many outputs the detour saves a factor {ratio[-1, -1]:.0f}; with {grid[-1]:,} inputs and 16 "
    f"outputs it costs {1 / ratio[0, -1]:.1f} times the direct way, with 16 of each {1 / ratio[0, 0]:.0f} times.")

# %% [markdown]
# **How to read it.** Purple: through the latents is cheaper; orange: asking directly is. On the solid line both take the same number of operations, everything counted; the dashed line is the rule of thumb. They part where the fixed work, two blocks over the latents, has to be earned back first.
#
# > **What this does not show.** The two ways do not compute the same thing. Asked directly, every query gets one look and no thought: no latent has compared one part of the input with another before answering. The latents also think once for all questions, so whoever asks many times about one input (a stored document, a game state) pays for the thinking once.

# %% [markdown]
# ## 5.5 The price of a bottleneck
#
# Train one. The input is 256 characters of *The Tide Clock*, of which 15% are hidden behind `<mask>`, as in chapter 2. The output queries are the 256 positions: the code $p_t$ of the place and nothing else, so that whatever a query answers has been through the latents.
#
# The model must name the character at **every** position. That asks two questions at once, and they are scored apart:
#
# - **seen** characters need only be remembered. To an encoder without a bottleneck this is nothing: each stands right there in its own column. To a Perceiver it is the test of what fits through;
# - **hidden** characters must be inferred from the others: what chapter 2's encoder learned.
#
# How much can fit? A latent has 128 numbers and four heads, and each head brings back one weighted average of the input. Counting averages, 64 latents could hold 256 characters. But what is put in must also be got out: if a latent holds four characters, a query must say which one it means, and it can only say so by its position.
#
# > **Prediction.** With 32, 64, 128 and 256 latents, which share of the seen characters does the model give back? Is it $4M/N$, as the heads suggest, or $M/N$, one character per latent, or something in between? And how do the hidden characters fare?

# %%
corpus = load_corpus("tide_clock")
vocab, MASK, N = corpus.vocab, corpus.vocab.ids["<mask>"], 256


def recall_loss(model, batch):
    """-log p(x_t | inputs) at every position, hidden or seen."""
    logits = model(batch.inputs, batch.mask)     # (B, N, V)
    return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(),
                           reduction="none")


@torch.no_grad()
def score(model, batches):
    """Share of right answers among hidden and among seen characters."""
    right = torch.cat([model(b.inputs).argmax(-1) == b.targets for b in batches])
    hidden = torch.cat([b.chosen for b in batches])
    return right[hidden].float().mean().item(), right[~hidden].float().mean().item()


always = dict(replace=1.0, shuffle=0.0)          # a chosen character becomes <mask>
held_out = list(masked_batches(iter(windows(corpus.valid, N).split(32)), MASK, seed=7,
                               fraction=0.15, **always))

# %% [markdown]
# ### A start without a place is a bad start
#
# One thing first, which no timing of an untrained model can show. Fresh latents are random vectors. Each compares itself with 256 inputs, finds all of them about equally interesting, and reads nearly the same average; each output query finds all latents equally interesting and gets the average of averages. To improve, a query must prefer a latent that prefers its place: **two** preferences, neither of which is of any use without the other. At a point where both are missing, the gradient of each is close to zero.
#
# The remedy is to give every latent a place to begin with: its initial value is the position code of a place, the places are spread evenly over the input, and keys and queries start from the same matrix, so that a code scores highest with its like:
#
# $$Z_0[m] \leftarrow p(x_m)\,W,\qquad W^K \leftarrow W^Q,\qquad W^Q \leftarrow 10\,W^Q .$$
#
# > **In words.** Latent $m$ begins by looking around place $x_m$, sharply, and whoever asks about that place begins by looking at latent $m$. It is only a start: every number in it is trained. Object detectors met the same difficulty; giving each of DETR's queries an explicit anchor in the picture shortened its training from 500 epochs to 50 (Liu et al. 2022, DAB-DETR).
#
# `PerceiverIO.place_latents` is these three assignments, for both reads; `TextPerceiver` wraps a Perceiver IO with a token table, position codes and a head tied to the table. The stored runs have 300 steps of four windows each; the live one has 120.

# %%
seed_everything(0)
model = TextPerceiver(len(vocab), N, num_latents=128, num_layers=1)
batches = masked_batches(random_windows(corpus.train, N, 4, seed=0), MASK, seed=1,
                         fraction=0.15, **always)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
history = fit(model, recall_loss, batches, steps=120, schedule=linear_decay(),
              optimizers=make_optimizers(model, lr=0.02), evaluate_every=20,
              evaluation=lambda m: score(m, held_out), desc="Perceiver IO")

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: with and without a place
quality = load_results("perceiver_quality")


def runs_of(kind):
    return [r for r in quality["runs"] if r["kind"] == kind]


def final(kind, field):
    return np.array([r[field] for r in runs_of(kind)])


fig, axes = figure(1, 2, width=6.4, height=2.9, sharey=True)
for ax, part, title in ((axes[0], "hits_seen", "seen characters"), (axes[1], "hits_hidden", "hidden characters")):
    for kind, label, color in (("128", "placed, Fourier", PURPLE), ("table", "placed, learned table", GREEN),
                               ("unplaced", "without a place", RED)):
        for i, run in enumerate(runs_of(kind)):
            ax.plot([s for s, _ in run["curve"]], [e[part] for _, e in run["curve"]], color=color, lw=1.2,
                    label=label if i == 0 else None)
    ax.set(xlabel="training step", title=title, ylim=(0, 1.02))
    column = 1 if part == "hits_seen" else 0
    ax.plot([s for s, _ in history.evaluations], [e[column] for _, e in history.evaluations], "o", color=PURPLE, mfc="none",
            ms=4, label="this run")
axes[0].set_ylabel("share named correctly")
axes[0].legend(loc="upper left")
show(fig, "Share of characters named correctly against training step, three seeds per curve. Placed latents, with Fourier or "
          "learned positions, climb from the first tens of steps on; latents without a place stay near the level of always "
          "guessing the commonest character for a long time.")
say(f"At the end of the stored runs, placed latents name {final('128', 'hits_seen').mean():.0%} of the seen and "
    f"{final('128', 'hits_hidden').mean():.0%} of the hidden characters (Fourier; learned table {final('table', 'hits_seen').mean():.0%} and "
    f"{final('table', 'hits_hidden').mean():.0%}); without a place it is {final('unplaced', 'hits_seen').mean():.0%} and "
    f"{final('unplaced', 'hits_hidden').mean():.0%}. The live run, {history.steps} steps in {history.seconds:.0f} s, reached "
    f"{history.evaluations[-1][1][1]:.0%} and {history.evaluations[-1][1][0]:.0%}.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("a-place-to-start", "in every stored run, latents that start with a place give back at least 20 percentage points more of the seen "
      "characters than any run without", final("128", "hits_seen").min() - final("unplaced", "hits_seen").max(), at_least=0.2)

# %% [markdown]
# **How to read it.** Both panels share their axes; three lines of a colour are three seeds, open circles the run of this page. About a fifth is what you get for always answering with a space.
#
# ### Quality against the number of latents
#
# Now the figure that this section is named after: four sizes of bottleneck, and beside them an encoder with as many parameters and no bottleneck, each with three seeds, from `python -m benchmarks.perceiver_quality`.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: the price of a bottleneck
MS = [32, 64, 128, 256]
commonest = (torch.cat([b.targets for b in held_out]) == vocab.ids[" "]).float().mean().item()
fig, axes = figure(1, 2, width=6.4, height=3.2, sharey=True)
for ax, part, title in ((axes[0], "seen", "Remembering: seen characters"), (axes[1], "hidden", "Inferring: hidden characters")):
    hits = np.array([final(str(m), f"hits_{part}") for m in MS])
    ax.plot(MS, hits.mean(1), color=PURPLE, label="Perceiver IO")
    ax.plot(np.repeat(MS, hits.shape[1]), hits.ravel(), "o", color=PURPLE, ms=4, mfc="none")
    reference = final("full", f"hits_{part}")
    ax.axhspan(reference.min(), reference.max(), color=BLUE, alpha=0.3, lw=0)
    ax.axhline(reference.mean(), color=BLUE, label="encoder, no bottleneck")
    ax.axhline(commonest, color=GREY, lw=1, ls=":", label="always a space")
    ax.set(xscale="log", xlabel="latents M", title=title, ylim=(0, 1.04))
    ax.set_xticks(MS, MS)
    ax.minorticks_off()
m = np.linspace(28, 256, 200)
axes[0].plot(m, m / N + (1 - m / N) * commonest, color=INK, lw=1, ls="--", label="one character per latent")
axes[0].set_ylabel("share named correctly")
axes[0].legend(loc="center left", bbox_to_anchor=(0, 0.72))
seen, hidden = ({m: final(str(m), f"hits_{p}").mean() for m in MS} for p in ("seen", "hidden"))
show(fig, "Share of characters named correctly against the number of latents, three seeds. Left, seen characters: the Perceiver follows "
          "the dashed line of one character per latent up to nearly all at 256 latents; the encoder names all. Right, hidden "
          "characters, with the encoder's level and the share of the space for comparison.")
say("Share of seen characters given back at M = 32, 64, 128, 256: **" + ", ".join(f"{seen[m]:.0%}" for m in MS) +
    f"** (encoder {final('full', 'hits_seen').mean():.0%}); of hidden ones inferred: **" + ", ".join(f"{hidden[m]:.0%}" for m in MS) +
    f"** (encoder {final('full', 'hits_hidden').mean():.0%}, always a space {commonest:.0%}). Training took " +
    ", ".join(f"{final(str(m), 'seconds').mean():.0f}" for m in MS) + f" s, the encoder {final('full', 'seconds').mean():.0f} s.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
law = {m: m / N + (1 - m / N) * commonest for m in MS}
claim("one-character-per-latent", "for every number of latents and every seed, the share of seen characters given back is within 0.05 of "
      "'one character per latent, and a space for the rest'",
      max(abs(final(str(m), "hits_seen") - law[m]).max() for m in MS), at_most=0.05)

# %% [markdown]
# **Reading it.** Left: circles are single runs, the dashed line is what you would get if every latent carried exactly one character and all others were answered by a space. The runs lie on it. So the answer to the prediction is $M/N$, not $4M/N$: at $M=N$ everything comes back, and then there is no bottleneck. Right: the characters that nobody saw. In the same number of steps the encoder has begun to infer some of them; the Perceivers have not, not even the one with a latent per character, which remembers everything. That part of the price is not about capacity. The encoder is told by its rotary positions which neighbour is one step to the left; for a latent, "the latent that holds the character to the left" is one more thing to find out.
#
# > **What this does not show.** A law of nature. These runs are short, one block deep and started at one place per latent. Packing a second character into a latent pays only once the writer can tell the two apart by the position asked for, and telling them apart pays only once there are two: the same kind of trap that the places freed us from, one level up. Longer training, several reads and other starts do pack more; published Perceivers are trained for weeks. What the figure does show is that the width of a bottleneck is an upper bound on paper, and that what gets through in practice is settled by training.
#
# ### What the latents look at
#
# For each of the 128 latents of the live model: how much of its reading goes to which of the 256 positions, averaged over heads and over the held-out windows. And for three of them, what they take from one stretch of text.
#
# > **Prediction.** The latents started two characters apart. After training, does each still read there? Only there? And do the four heads of a latent read four different characters?

# %%
reading = 0
with torch.no_grad():
    for batch in held_out:
        trace = {}
        model.latents(batch.inputs, trace=trace)
        reading = reading + trace["perceiver.read"].mean(1).sum(0)  # (M, N)
reading = reading / sum(len(b.inputs) for b in held_out)
sample = held_out[0].targets[:1]                 # nothing hidden
trace = {}
with torch.no_grad():
    model.latents(sample, trace=trace)
one = trace["perceiver.read"][0]                 # (H, M, N)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: what the latents read
shown, first, last = (40, 47, 54), 72, 120
fig, axes = figure(2, 1, width=6.4, height=4.9, height_ratios=(1.15, 1))
axes[0].imshow(reading[:64, :128], cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
axes[0].set(xlabel="position in the text", ylabel="latent", title="The first 64 latents, averaged over held-out text")
rows = torch.stack([one[h, m, first:last] for m in shown for h in range(4)])
axes[1].imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
axes[1].set_xticks(range(last - first), vocab.decode(sample[0, first:last]).replace(" ", "␣"), fontsize=7)
axes[1].set_yticks(range(12), [f"latent {m}, head {h + 1}" for m in shown for h in range(4)], fontsize=7)
axes[1].set_title("Three latents, head by head, on one passage")
for ax in axes:
    ax.grid(False)
for y in (3.5, 7.5):
    axes[1].axhline(y, color=GREY, lw=0.8)
start = (torch.arange(128) + 0.5) * 2
centre = (reading * torch.arange(N)).sum(-1)
peak = reading.argmax(-1)
within = torch.stack([reading[m, max(0, int(start[m]) - 8):int(start[m]) + 9].sum() for m in range(128)])
sharp = (one.max(-1).values > 0.5).float().mean().item()
show(fig, "Top: read weights of 64 latents over the first 128 positions: a diagonal of single spots, every second position. Bottom: "
          "three latents, head by head, on one passage: all four heads of a latent read the same single character.")
favourite = one.argmax(-1)                       # (H, M)
agree = (favourite == favourite.mode(0).values).float().mean().item()
skipped = N - len(favourite.unique())
say(f"On average {within.mean():.0%} of a latent's reading lies within eight characters of where it started. In the passage, {sharp:.0%} "
    f"of all heads put more than half of their weight on a single character; {agree:.0%} of the heads of a latent share its favourite; "
    f"and {skipped} of the {N} characters are no head's favourite.")

# %% [markdown]
# **Reading it.** Top, one row per latent: a single dot each, where it started, at every second position. Bottom, four rows per latent, one per head, against the letters of the passage: the four heads agree on one character. That is why the count of averages was the wrong count: four averages of the same character hold one character. And it shows *which* characters are lost, namely those in between.
#
# > **What this does not show.** A weight says where a latent looks, not what it does with it (chapter 4). Here the check is cheap: the characters that no head picks are the ones that the model cannot give back.
#
# ### A second question to the same latents
#
# The latents were trained to give back characters. Freeze them, and ask something about the passage as a whole: *does a rare letter (j, q, x or z) stand anywhere in it?* One new output query and a new reading head are trained on stored latents. The 128 vectors do not change, so the first head's answers stay what they were: the interface can grow new outputs.
#
# > **Prediction.** The latents keep about half of the characters. If a passage holds exactly one rare letter, in how many of them can the new query find it?

# %%
RARE = torch.tensor([vocab.ids[c] for c in "jqxz"])


def passages(ids, stride):
    text = windows(ids, N, stride)
    with torch.no_grad():
        stored = torch.cat([model.latents(part) for part in text.split(64)])
    return stored, torch.isin(text, RARE).sum(1)  # (n, M, D), and how many rare letters


class SecondHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(1, 128))
        self.read, self.yes = MiniRead(128, 4, 128, 128), nn.Linear(128, 1)

    def forward(self, latents):                  # (B, M, D)
        query = self.query.expand(len(latents), -1, -1)
        return self.yes(self.read(query, latents))[:, 0, 0]


# %%
def yes_loss(head, batch):
    latents, count = batch
    truth = (count > 0).float()
    return F.binary_cross_entropy_with_logits(head(latents), truth, reduction="none")


seed_everything(0)
known, counts = passages(corpus.train, 200)
new, new_counts = passages(corpus.valid, 100)
head = SecondHead()
picks = (torch.randint(len(known), (32,)) for _ in range(300))
optimizer = torch.optim.AdamW(head.parameters(), 2e-3, weight_decay=0.1)
_ = fit(head, yes_loss, ((known[i], counts[i]) for i in picks), steps=300,
    schedule=linear_decay(), optimizers=optimizer, desc="second head")
with torch.no_grad():
    says_yes = head(new) > 0

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Measured: the second head
shares = [says_yes[new_counts == k].float().mean().item() for k in (0, 1)]
several = says_yes[new_counts > 1].float().mean().item()
say(f"The new query says yes to **{shares[0]:.0%}** of the passages without a rare letter, to **{shares[1]:.0%}** of those with exactly one, "
    f"and to {several:.0%} of those with more. The live model's latents give back {history.evaluations[-1][1][1]:.0%} of the characters "
    f"seen.")

# %% [markdown]
# **Reading it.** A query that reads the latents of a passage with one rare letter can find it only if its latents kept it, so there is a ceiling near the share of characters that came through, plus the false alarms. With two or more rare letters, one that was kept is enough. New questions to old latents cost almost nothing; what the latents dropped, no question brings back.
#
# ## 5.6 The same class on pictures
#
# An interface earns its name when something else plugs in. Here are pictures of $16\times16$ pixels, made by code: a lying bar, a standing bar or a square, somewhere, under noise so strong that no single pixel can be trusted. Two kinds of question about each:
#
# - *which shape is it?* One learned output query.
# - *is there ink here?* One output query per place; in training only 64 of the 256 are asked, because nobody has to ask them all.

# %%
SIDE, SHAPES = 16, ("lying bar", "standing bar", "square")
line = torch.linspace(-1, 1, SIDE)
Y, X = torch.meshgrid(line, line, indexing="ij")


def pictures(count, generator, noise=0.5):
    label = torch.randint(3, (count,), generator=generator)
    x, y, size = torch.rand(3, count, 1, 1, generator=generator)
    half = (0.35 + 0.35 * size).sqrt() / 2       # every shape has the same area
    stretch = torch.tensor([2.0, 0.5, 1.0])[label, None, None]
    dx, dy = (X - (x - 0.5)).abs(), (Y - (y - 0.5)).abs()
    ink = (dx < half * stretch) & (dy < half / stretch)
    ink = ink.flatten(1).float()                 # (B, 256)
    noisy = ink + noise * torch.randn(ink.shape, generator=generator)
    return noisy[..., None], ink, label


# %% [markdown]
# Around the unchanged `PerceiverIO` goes what belongs to the modality, and it is little: a pixel is lifted to width $D$, a place gets two-axis Fourier features, and the answers get a head each. The latents start on a grid, with a softer look than for text, since a shape is wider than a pixel.

# %%
class PictureReader(nn.Module):
    def __init__(self, d=64, grid=5):
        super().__init__()
        self.register_buffer("table", fourier_positions((SIDE, SIDE), 4))  # (256, 18)
        self.lift, self.project = nn.Linear(1, d), nn.Linear(18, d, bias=False)
        nn.init.normal_(self.project.weight, std=1 / 3)
        self.blocks = PerceiverIO(d, grid * grid, 1, d_model=d, num_layers=1)
        rows = ((torch.arange(grid) + 0.5) * SIDE / grid).long()
        places = (rows[:, None] * SIDE + rows).flatten()
        self.blocks.place_latents(self.project(self.table[places]), sharpness=2.0)
        self.ink, self.label = nn.Linear(d, 1), nn.Linear(d, 3)

    def latents(self, pixels, trace=None):       # (B, 256, 1) -> (B, M, D)
        inputs = self.lift(pixels) + self.project(self.table)
        return self.blocks.perceiver(inputs, trace=trace)

    def paint(self, latents, codes):             # (O, 18) -> (B, O)
        return self.ink(self.blocks.write(latents, self.project(codes)))[..., 0]

    def classify(self, latents, trace=None):     # -> (B, 3)
        return self.label(self.blocks.write(latents, trace=trace)[:, 0])


# %%
def picture_loss(model, batch):
    pixels, ink, label = batch
    latents, asked = model.latents(pixels), torch.randperm(SIDE * SIDE)[:64]
    painted = F.binary_cross_entropy_with_logits(
        model.paint(latents, model.table[asked]), ink[:, asked], reduction="none")
    named = F.cross_entropy(model.classify(latents), label, reduction="none")
    return painted.mean(-1) + 0.3 * named


def picture_stream(seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield pictures(16, generator)


seed_everything(0)
painter = PictureReader()
picture_history = fit(painter, picture_loss, picture_stream(0), steps=400,
                      schedule=linear_decay(), desc="pictures",
                      optimizers=make_optimizers(painter, lr=0.02, adam_lr=0.005))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Measured: pictures
def overlap(guess, truth):
    return ((guess & truth).sum() / (guess | truth).sum()).item()


test_pixels, test_ink, test_label = pictures(500, torch.Generator().manual_seed(100))
with torch.no_grad():
    test_latents = painter.latents(test_pixels)
    painted = painter.paint(test_latents, painter.table) > 0
    named = (painter.classify(test_latents).argmax(-1) == test_label).float().mean().item()
iou = overlap(painted, test_ink > 0)
one_pixel = max(overlap(test_pixels[..., 0] > t, test_ink > 0) for t in torch.linspace(0, 1.5, 31))
say(f"After {picture_history.steps} steps ({picture_history.seconds:.0f} s), on 500 new pictures: the shape is named correctly in **{named:.0%}** "
    f"(guessing: 33%). The ink painted and the true ink overlap by **{iou:.2f}** (pixels in both, divided by pixels in either); the best "
    f"rule that looks at one pixel at a time reaches {one_pixel:.2f}.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("same-class-on-pictures", "the class that read text, unchanged, names the shape in at least 75% of new pictures "
      "(guessing: a third)", named, at_least=0.75)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: what is read, what is answered
def codes_at(side):
    """The 18 features of every place of a finer grid: the same frequencies, places in between."""
    x = torch.linspace(-1, 1, side)
    angles = math.pi * x[:, None] * torch.linspace(1, SIDE / 2, 4)
    axis = torch.cat((x[:, None], angles.sin(), angles.cos()), dim=-1)
    return torch.cat((axis[:, None].expand(-1, side, -1), axis[None].expand(side, -1, -1)), dim=-1).flatten(0, 1)


assert torch.allclose(codes_at(SIDE), painter.table, atol=1e-5)
picks = [int((test_label == k).nonzero()[i]) for k, i in ((0, 0), (1, 1), (2, 2))]
fig, axes = figure(3, 4, width=6.4, height=5.0)
with torch.no_grad():
    for row, pick in zip(axes, picks):
        trace = {}
        z = painter.latents(test_pixels[pick:pick + 1], trace=trace)
        guess = painter.classify(z, trace=trace).softmax(-1)[0]
        first, then = (trace[name][0].mean(0) for name in ("perceiver.read", "perceiver.write"))  # (M, N), (1, M)
        fine = painter.paint(z, codes_at(64))[0].sigmoid().reshape(64, 64)
        for ax, image, cmap in zip(row, (test_pixels[pick, :, 0], painter.paint(z, painter.table)[0].sigmoid(), fine,
                                         (then @ first)[0]), ("Greys", "Greys", "Greys", "Blues")):
            side = int(math.sqrt(image.numel()))
            ax.imshow(image.reshape(side, side), cmap=cmap)
            ax.set(xticks=[], yticks=[])
            ax.grid(False)
        row[0].set_ylabel(SHAPES[test_label[pick]])
        row[3].set_xlabel(f"answer: {SHAPES[guess.argmax()]}, {guess.max():.2f}", fontsize=8)
for ax, title in zip(axes[0], ("input, 256 pixels", "256 queries: ink?", "4,096 queries", "1 query: shape?")):
    ax.set_title(title, fontsize=9)
show(fig, "Three rows, one per shape. From left to right: the noisy input, the ink painted at its 256 places, the ink asked for on "
          "a four times finer grid, and where the shape query's attention reaches in the input by way of the latents. The painted "
          "shapes stand out cleanly where the input is barely readable.")

# %% [markdown]
# **How to read it.** First column: what goes in. Second: one query per pixel, the answer as grey. Third: the *same latents*, asked at 4,096 places between the pixels. No layer was added and nothing was trained again; whoever can write down the code of a place can ask about it. (What comes out between the pixels is interpolation, not knowledge: the frequencies are those of the coarse grid.) Fourth: how much of each pixel reaches the shape's query, the read weights of all latents, weighted by how much the query takes from each latent.
#
# > **What this does not show.** A product of two averaged attention maps is a rough account of where an answer comes from: it leaves out the values, the block between the two reads, and the differences between heads (chapter 4 made a habit of checking such maps by intervention).
#
# ## 5.7 The same part elsewhere
#
# Learned queries that read by cross-attention are the standard way of joining a model that sees to a model that writes.
#
# | model | who asks | whom | what happens to the answers |
# |---|---|---|---|
# | **Flamingo's resampler** (Alayrac et al. 2022) | 64 latents | features of any number of frames of a picture or a video, from a frozen vision model | a fixed 64 vectors, which layers inserted into a frozen language model read by cross-attention |
# | **BLIP-2's Q-Former** (Li et al. 2023) | 32 queries | the output of a frozen vision transformer | projected, and put in front of the text as 32 tokens; the queries are trained first, against captions, with text in the same self-attention |
# | **DETR** (Carion et al. 2020) | 100 object queries | the encoded picture | each query becomes one box and one class, or "nothing"; training matches queries to objects one to one |
# | **a projection, patch by patch** (LLaVA, Liu et al. 2023) | nobody | – | every patch's vector goes through the same small network and becomes one token of the language model |
#
# The first three are sections 5.1 and 5.4: the first two stop at the latents, the third has queries that are outputs. The last has no queries and no bottleneck: $N$ patches stay $N$ tokens, 576 of them in LLaVA-1.5. It is the simplest of the four, it loses nothing and keeps every patch in its place; in exchange the language model's self-attention pays for all of them, in every layer. Section 5.5 is the argument for it, section 5.3 the argument against it. With pictures of a few hundred patches the projection is the usual choice today; with video, where $N$ runs into the tens of thousands, something has to compress.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Diagram: four ways into a model that writes or points
fig, ax = canvas(6.4, 3.5)
columns = [
    ("resampler", "64 latents\nread", "64 vectors", "frozen LM reads them\nby cross-attention", PURPLE),
    ("Q-Former", "32 queries\nread", "32 tokens", "language model,\nin front of the text", PURPLE),
    ("DETR", "100 object queries\nread", "100 answers", "box and class,\nor nothing", PURPLE),
    ("projection", "same small network\non each patch", "N tokens", "language model,\nin front of the text", ORANGE),
]
for i, (name, how, what, where, color) in enumerate(columns):
    x = 0.83 + 1.58 * i
    ax.text(x, 3.33, name, ha="center", va="center", fontsize=10, weight="bold", color=INK)
    bottom = box(ax, x, 0.25, "N patch vectors", width=1.36)
    middle = box(ax, x, 1.15, how, width=1.36, height=0.52, color=GREEN if color is PURPLE else color, size=8.5)
    top = box(ax, x, 1.98, what, width=1.36, color=color)
    end = box(ax, x, 2.8, where, width=1.44, height=0.52, size=8)
    arrow(ax, bottom.top, middle.bottom)
    arrow(ax, middle.top, top.bottom)
    arrow(ax, top.top, end.bottom)
    if color is PURPLE:
        ax.text(x + 0.09, 0.66, "keys, values", fontsize=7.5, color=GREY, va="center")
show(fig, "Four columns from N patch vectors upwards. Resampler, Q-Former and DETR: learned queries read the patches and give 64, 32 "
          "and 100 vectors, whatever N is. Projection: the same small network on each patch gives N tokens.")

# %% [markdown]
# ## 5.8 What to keep
#
# - Queries need not come from a sequence. $M$ learned ones read $N$ inputs at $\mathcal O(MN)$ and think at $\mathcal O(M^2)$; $O$ more ask for answers at $\mathcal O(OM)$. Below $N\approx M$ this costs more than it saves.
# - A fused kernel makes the *memory* of self-attention linear, not its arithmetic; latents make both linear in $N$.
# - Order must be in the inputs. Without positions the whole model is a function of the bag.
# - A bottleneck is paid for, first in what was merely seen. $M$ latents of $H$ heads *could* hold $MH$ averages; trained briefly on text they held $M$ characters. Pictures of one shape, which have far fewer than 256 things to say, went through 25 latents.
# - Training needs a start from which a preference pays off: give queries a place.
#
# Chapter 6 returns to the plain block and asks where its norm should go; chapter 7 lets the wirings compete.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title How long this took
say(f"This run of the chapter took {time.perf_counter() - chapter_began:.0f} s.")
