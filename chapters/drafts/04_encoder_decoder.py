# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4. Encoder–decoder: cross-attention at work
#
# **The question.** A translator reads one text and writes another. When she writes a word, which word of the original is
# she looking at, and may we read that off a model's attention map?
#
# **You will be able to**
#
# - build the decoder block with its three norms and say where queries, keys and values of cross-attention come from;
# - train an encoder–decoder by teacher forcing, and decode with a fixed buffer and with a cache;
# - tell what a cross-attention map shows, what it does not, and which experiment decides;
# - batch texts of different lengths so that padding changes nothing, and recognise the symptoms when a mask is missing;
# - turn any text into a sequence-to-sequence task by span corruption, as T5 does.
#
# **Builds on** chapters 1 to 3: masks, the block, teacher forcing and the key–value cache. The run time is in the table on the
# first page.

# %% tags=["setup", "hide-cell"] jupyter={"source_hidden": true}
# @title Set-up
import math
import time
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from d2lmini import (Block, Cache, Config, EncoderDecoder, FeedForward, MultiHeadAttention, RMSNorm, ToyTask,
                     attention_weights, causal_mask, claim, corrupt_spans, device, evaluate, fit, greedy_decode,
                     linear_decay, load_corpus, load_results, make_optimizers, pair_batch, random_spans,
                     random_windows, restore_spans, say, seed_everything, seq2seq_loss, span_batches, token_losses,
                     windows)
from d2lmini.diagrams import arrow, box, canvas, transformer_block
from d2lmini.plotting import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, attention_map, figure, show

# %% [markdown]
# ## A task whose alignment is known
#
# Nobody can say which French word an English word "comes from" in every sentence. So we take a task where there is no
# doubt: **reverse a string**. Sixteen letters, twelve of them in a row, drawn at random. The target's letter $t$ (counted
# from 0) is the source's letter $11-t$, and no other letter of the source says anything about it. Strings are drawn fresh
# for every step; there are $16^{12} \approx 2.8 \times 10^{14}$ of them, so nothing can be learned by heart.

# %%
task = ToyTask("reverse", length=12, letters=16)
sample = task.batch(2, torch.Generator().manual_seed(0))
for row in range(2):
    print("source ", task.decode(sample.source[row]))
    print("inputs ", task.decode(sample.inputs[row]), " read; ^ is the start token")
    print("targets", task.decode(sample.targets[row]), " written, one place further\n")

# %% [markdown]
# The decoder writes one letter at a time and sees what it has written. In training we do not wait for its own letters: it
# reads the right ones, shifted by one place behind a start token, and all twelve predictions are made in one pass. That is
# **teacher forcing**. The loss is that of chapter 3 with one more thing behind the bar:
#
# $$\mathcal L = -\frac1T\sum_{t=1}^{T} \log p(y_t \mid y_1,\dots,y_{t-1},\, x)$$
#
# > **In words.** The average surprise at each right target token, given the right ones before it and the whole source $x$.
#
# Here $y_1,\dots,y_{t-1}$ are of no use at all: the letters are independent. A model that ignores the source can do no
# better than $\ln 16 = 2.77$ nats. Everything below that came through cross-attention.
#
# > **Check your sources.** The published text of this experiment says that training shows the model about ten million
# > characters. Its settings are 600 steps of 128 strings of 12 letters:

# %%
print(f"{600 * 128 * 12:,} source characters")

# %% [markdown]
# Less than a tenth of that. The conclusion survives (no string repeats), the number does not.
#
# ## The decoder block
#
# An encoder block has two branches, attention and feed-forward. The decoder block of an encoder–decoder has three, each
# with a norm of its own: it reads its own past, then the source, then thinks about both.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Figure: the two towers
fig, ax = canvas(6.4, 4.5)
read = transformer_block(ax, 1.45, 0.62, [("self-attention\n(sees all)", "attention"), ("feed-forward", "feed-forward")], norm="RMSNorm")
write = transformer_block(ax, 4.75, 0.62, [("self-attention\n(causal)", "attention"), ("cross-attention", "cross-attention"),
                                           ("feed-forward", "feed-forward")], norm="RMSNorm")
ax.text(1.45, 0.3, "source $x$  (B, S)", ha="center", va="center")
ax.text(4.75, 0.3, "target so far $y$  (B, T)", ha="center", va="center")
arrow(ax, (1.45, 0.42), read.entry)
arrow(ax, (4.75, 0.42), write.entry)
memory = box(ax, 1.45, read.exit[1] + 0.45, "memory $M$  (B, S, D)", width=1.75)
arrow(ax, read.exit, memory.bottom)
cross = write.boxes["cross-attention"]
arrow(ax, memory.right, (2.9, memory.y), (2.9, cross.y + 0.06), (cross.left[0], cross.y + 0.06))
ax.text(2.84, cross.y + 0.16, "keys, values", ha="right", va="center", fontsize=8)
ax.text(write.exit[0], write.exit[1] + 0.3, "next letter", ha="center", va="center")
arrow(ax, write.exit, (write.exit[0], write.exit[1] + 0.17))
show(fig, "Diagram. Left, the encoder block: norm, self-attention over all positions, norm, feed-forward; its output is the "
          "memory, one vector per source token. Right, the decoder block: norm and causal self-attention, norm and "
          "cross-attention whose keys and values come from the memory, norm and feed-forward; each branch is added back.")

# %% [markdown]
# Write $Y$ (T rows) for the decoder's stream and $M$ (S rows) for the memory, the encoder's output. The two attentions are
# the same formula, fed differently:
#
# $$\text{self:}\quad A = \operatorname{softmax}\!\left(\frac{(YW^Q)(YW^K)^\top}{\sqrt{d_k}} + C\right) \in \mathbb R^{T\times T},\qquad \text{output } A\,(YW^V)$$
#
# $$\text{cross:}\quad A = \operatorname{softmax}\!\left(\frac{(YW^Q)(MW^K)^\top}{\sqrt{d_k}}\right) \in \mathbb R^{T\times S},\qquad \text{output } A\,(MW^V)$$
#
# > **In words.** In self-attention a target token asks the target tokens up to itself; $C$ is 0 where that is allowed and
# > $-\infty$ on the future. In cross-attention it asks every source token: the queries come from the text being written, the
# > keys and values from the text being read. The weights form a rectangle, one row per target token, one column per source
# > token.
#
# There is no causal mask in cross-attention. The source lies there complete before the first letter is written; hiding its
# end would hide, in this task, exactly the letter that is needed first.
#
# **By hand.** Three source letters, a, b, c, with keys $e_1, e_2, e_3$ (one-hot, in $d_k=4$ features, so $\sqrt{d_k}=2$). The
# first target token must fetch c, so let it ask $q = (0, 0, 2\ln 8, 0)$. Its scores are $0, 0, \ln 8$; exponentials
# $1, 1, 8$; weights $0.1, 0.1, 0.8$. The second asks for b.

# %%
keys = torch.eye(4)[:3]
queries = 2 * math.log(8) * torch.eye(4)[[2, 1]]
weights = attention_weights(queries[None, None], keys[None, None])[0, 0]
print(weights.numpy().round(3), "shape", tuple(weights.shape), "= (T, S)")

# %% [markdown]
# Rows sum to 1, columns need not: two target tokens may look at the same source token, and a source token may be looked at
# by none.
#
# ### In code
#
# With all heads, in a function short enough to check line by line:

# %%
def cross_attention(y, memory, w, num_heads, source_mask=None):
    """y (B, T, D) asks memory (B, S, D); w holds the four weight matrices."""
    split = lambda z: z.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    q = split(y @ w["query.weight"].T)        # (B, H, T, d_k): from what is written
    k = split(memory @ w["key.weight"].T)     # (B, H, S, d_k): from what is read
    v = split(memory @ w["value.weight"].T)   # (B, H, S, d_k)
    a = attention_weights(q, k, source_mask)  # (B, H, T, S)
    return (a @ v).transpose(1, 2).flatten(2) @ w["out.weight"].T


torch.manual_seed(0)
B, T, S, D, H = 2, 5, 7, 24, 3
y, memory, layer = torch.randn(B, T, D), torch.randn(B, S, D), MultiHeadAttention(D, H)
ours = cross_attention(y, memory, layer.state_dict(), H)
same = torch.allclose(ours, layer(y, memory), atol=1e-5)
print("output", tuple(ours.shape), "  same as the package's:", same)

# %% [markdown]
# And the block around it, in the order of the figure. The causal mask is made inside, where nobody can forget it.

# %%
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_norm, self.cross_norm = RMSNorm(d_model), RMSNorm(d_model)
        self.ff_norm = RMSNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, y, memory, source_mask=None):
        y = y + self.self_attention(self.self_norm(y), mask=causal_mask(y.shape[1]))
        y = y + self.cross_attention(self.cross_norm(y), memory, source_mask)
        return y + self.feed_forward(self.ff_norm(y))


block, packaged = DecoderBlock(D, H, 64), Block(D, H, 64, cross=True)
packaged.load_state_dict(block.state_dict())  # same parts, same names
difference = (block(y, memory) - packaged(y, causal_mask(T), memory)).abs().max()
print("our block and the package's agree:", difference.item() < 1e-5)

# %% [markdown]
# The norms stand before each branch (pre-norm), as in chapters 2 and 3; the paper of 2017 put them behind the sum. Chapter 6
# is about that choice. The memory is normed once, at the end of the encoder.
#
# `EncoderDecoder` stacks such blocks beside an encoder and shares one token table among source, target and output head. One
# block on each side is enough for this task. The positions are learned tables, one for each side, as published.

# %%
def make_model(task, seed, **changes):
    seed_everything(seed)
    shape = dict(d_model=128, num_heads=4, num_layers=1, positions="learned") | changes
    config = Config(task.vocab_size, task.target_length, **shape)
    return EncoderDecoder(config).to(device())


model, trace = make_model(task, seed=0), {}
logits = model(sample.source.to(device()), sample.inputs.to(device()), trace=trace)
count = sum(p.numel() for p in model.parameters())
print(f"{count:,} parameters, logits {tuple(logits.shape)}")
for name, weights in trace.items():
    print(f"{name:16s} {tuple(weights.shape)}")

# %% [markdown]
# ## Training
#
# The published recipe is AdamW at a constant rate of 1e-3, 600 steps of 128 strings. It reports a loss of 0.005, 0.001, 0.001
# and 0.000 at steps 100, 200, 400 and 600. Run again on two CPU cores it takes three quarters of a minute and is not as
# smooth as four numbers suggest: at a rate that never falls the loss shoots up now and then (to 0.25 at step 200 in one
# rerun) and recovers.
#
# Ours sees 300 batches of 32 strings, an eighth of the letters. Muon (the optimizer of chapter 2) drives the matrices at
# 0.02, AdamW the tables and gains at 0.01, and both rates fall linearly to zero.
#
# > **Prediction.** The loss starts at the loss of a blind guess, about 2.8. There is little partial credit: until the decoder
# > has found out *where* to look, what it finds there is of no use. Sketch the curve. A straight fall, or a plateau and a
# > cliff?

# %%
def train(model, task, steps=300, batch_size=32, seed=0):
    optimizers = make_optimizers(model, lr=0.02, adam_lr=0.01)
    return fit(model, seq2seq_loss, task.batches(batch_size, seed), steps=steps,
               optimizers=optimizers, schedule=linear_decay(), desc="reversing")


history = train(model, task)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: the loss
stored = load_results("alignment")["variants"]
fig, ax = figure(height=2.8)
for seed, run in stored["published"]["runs"].items():
    ax.plot(128 * np.arange(1, len(run["losses"]) + 1), run["losses"], color=ORANGE, lw=0.8, alpha=0.6,
            label="published settings, stored seeds" if seed == "0" else None)
ax.plot(32 * np.arange(1, history.steps + 1), history.losses, color=GREEN, label="ours, this run")
ax.plot(128 * np.array([100, 200, 400]), [0.005, 0.001, 0.001], "D", color=INK, ms=4, label="published figures")
ax.axhline(math.log(16), color=GREY, lw=1, ls=":")
ax.text(128 * 600, math.log(16) * 1.15, "blind guess", color=GREY, ha="right", va="bottom", fontsize=8)
ax.set(xlabel="strings seen", ylabel="loss (nats per letter)", yscale="log", ylim=(5e-5, 8))
ax.legend(loc="upper right", bbox_to_anchor=(1, 0.9))
show(fig, "Loss against strings seen, logarithmic. Ours stays at a blind guess for some hundred strings, then falls over a "
          "cliff and ends smoothly below 0.01; the published settings take several times as many strings and show spikes "
          "after they have solved the task.")
settled = next((i for i, x in enumerate(history.losses) if x < 0.05), history.steps - 1)
worst = max(history.losses[settled:])
late = [max(r["losses"][150:]) for r in stored["published"]["runs"].values()]
say(f"The loss is below 0.05 after {settled + 1} steps ({32 * (settled + 1):,} strings) and never above {worst:.2f} from then "
    f"on. Under the published settings the highest loss after step 150 is {min(late):.2f} on the calmest of {len(late)} seeds "
    f"and {max(late):.2f} on the wildest.")

# %% [markdown]
# **Reading it.** The vertical axis is logarithmic, so that 0.001 and 0.0001 can be told apart. A plateau, then a cliff: as long
# as attention is spread evenly, the decoder gets the average of twelve letters, which is worth next to nothing. Once some
# position is looked at a little more than the others, its letter becomes a little more probable, the gradient says "more of
# that", and the rest is quick. The falling rates then take the noise out of the end.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("no-spikes", "after the loss has first fallen below 0.05, no later step is above 0.5", worst, at_most=0.5,
      published="the published recipe, run again: 0.25 at step 200", why="the rates fall to zero instead of staying constant")

# %% [markdown]
# How long did that take, compared with the published recipe on this machine? We need not train it to know: every one of its
# 600 steps costs the same.

# %%
rival = make_model(task, seed=0)
adam = torch.optim.AdamW(rival.parameters(), lr=1e-3)
fit(rival, seq2seq_loss, task.batches(128, 0), steps=2, optimizers=adam)  # warm up
ten = fit(rival, seq2seq_loss, task.batches(128, 0), steps=10, optimizers=adam)
published_seconds = 60 * ten.seconds

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The ratio
say(f"Ours took {history.seconds:.1f} s; 600 steps of batch 128 would take {published_seconds:.0f} s here: "
    f"{published_seconds / history.seconds:.1f} times as long.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("half-the-time", "the published 600 steps of batch 128 take at least twice as long as our training",
      published_seconds / history.seconds, at_least=2, published="600 steps of batch 128")

# %% [markdown]
# `python -m benchmarks.reversal` makes the same comparison the long way: it trains the published recipe, written anew in plain
# PyTorch, for all its steps, and ours with three seeds.
#
# ## Greedy decoding
#
# Teacher forcing gave the decoder the right past. In use it has only its own. **Greedy decoding** takes the likeliest letter
# at each place and feeds it back. The simplest way keeps a buffer of the final size, runs the decoder over all of it at every
# step, and lets the causal mask make sure that what is not written yet cannot matter:

# %%
@torch.no_grad()
def decode_with_buffer(model, source, start_id, length):
    memory = model.encode(source)  # once
    inputs = torch.full((len(source), length + 1), start_id, device=source.device)
    for t in range(length):
        states = model.decode(inputs[:, :length], memory)  # all places, again,
        inputs[:, t + 1] = model.head(states[:, t]).argmax(dim=-1)  # to use one
    return inputs[:, 1:]


@torch.no_grad()
def decode_with_cache(model, source, start_id, length):
    memory, cache = model.encode(source), Cache(length)
    letters = [torch.full((len(source), 1), start_id, device=source.device)]
    for t in range(length):
        states = model.decode(letters[-1], memory, cache=cache)  # one place
        letters.append(model.head(states).argmax(dim=-1))
    return torch.cat(letters[1:], dim=1)

# %% [markdown]
# The cache keeps the keys and values of the letters written so far, as in chapter 3. The cross-attention's keys and values
# are a different case: they depend on the source alone, so they are computed at the first step and never again.
#
# > **Prediction.** The two functions do the same arithmetic. How many of 1,000 fresh strings do they decode differently? And
# > how often does each project the memory to keys? (The third is the package's.)

# %%
model.eval()
fresh = task.batch(1000, torch.Generator().manual_seed(10_000))
asked = (fresh.source.to(device()), task.start_id, task.length)
key_layer, answers, calls = model.decoder.blocks[0].cross_attention.key, {}, []
hook = key_layer.register_forward_hook(lambda *_: calls.append(1))
for decode in (decode_with_buffer, decode_with_cache, greedy_decode):
    calls.clear()
    answers[decode] = decode(model, *asked)
    print(f"{decode.__name__:18s} projects the memory to keys {len(calls)} time(s)")
hook.remove()
alike = (answers[decode_with_buffer] == answers[decode_with_cache]).all(dim=1).sum()
print(f"{alike.item()} of 1000 strings decoded alike, and by the package too:",
      torch.equal(answers[decode_with_cache], answers[greedy_decode]))

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
right = (answers[decode_with_cache].cpu() == fresh.targets).all(dim=1)
claim("reversal-solved", "at least 99% of 1,000 fresh strings are reversed without a single wrong letter",
      right.float().mean(), at_least=0.99, published="1.000 on 1,000 fresh strings")

# %% [markdown]
# ## What the map shows
#
# The decoder's second branch is the only way the letters can have come in. Let us see where it looks.
#
# > **Prediction.** Target letter $t$ is source letter $11-t$. If the map is an alignment, the dark cells run along the
# > anti-diagonal, in every head or at least in the average of the four. Draw what you expect.

# %%
one, trace = task.batch(1, torch.Generator().manual_seed(3)), {}
with torch.no_grad():
    model(one.source.to(device()), one.inputs.to(device()), trace=trace)
heads = trace["decoder.0.cross"][0].cpu()  # (H, T, S)
print(tuple(heads.shape))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: one map per head
fig, axes = figure(1, 4, height=2.3, sharey=True)
for h, ax in enumerate(axes):
    attention_map(ax, heads[h], list(task.decode(one.targets[0])), list(task.decode(one.source[0])), title=f"head {h}",
                  vmax=1)
    ax.set(xlabel="source letter", ylabel="letter to be written" if h == 0 else "")
    ax.tick_params(labelsize=7)
show(fig, "Cross-attention weights of the four heads on one string, the letters to be written down the side, source letters "
          "across: dark cells along the anti-diagonal, more sharply in some heads than in others.")

# %% [markdown]
# **Reading it.** A row is the moment at which one target letter is about to be written (the label is that letter, not the one
# just read). Its twelve cells sum to 1 and say how that head spreads its look over the source.
#
# Two numbers for a whole map, both on the average of the heads: the **hit rate**, how often the largest weight of a row lies on
# the true source position, and the **mass**, the mean weight there. An even spread has a mass of $1/12$.

# %%
def alignment_scores(weights):
    """Averaged weights (B, T, S) -> hit rate and mass on the anti-diagonal."""
    length = weights.shape[-1]
    true = torch.arange(length - 1, -1, -1)
    hit = (weights.argmax(dim=-1) == true).float().mean().item()
    return hit, weights[:, torch.arange(length), true].mean().item()


trace = {}
with torch.no_grad():
    model(fresh.source.to(device()), fresh.inputs.to(device()), trace=trace)
hit, mass = alignment_scores(trace["decoder.0.cross"].cpu().mean(dim=1))

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The live model's scores
say(f"Our model, this run, 1,000 fresh strings: hit rate {hit:.2f}, mass {mass:.2f}.")

# %% [markdown]
# The published reports, one seed each, say 100% and 0.88 in one framework, 92% and 0.87 in another. So the map is the
# anti-diagonal, and cross-attention shows the alignment. Does it always?
#
# The published settings leave one thing open that nobody thinks of as a setting: whether the memory passes through a norm before
# the decoder reads it. Pre-norm stacks end in a norm, so our package has one there; a model put together from blocks alone has
# none. The task does not care. Here is the version without, everything else as published.
#
# > **Prediction.** The same model, eight seeds, which differ in nothing but their random numbers. All of them solve the task.
# > What is the lowest hit rate?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: hit rate and mass over seeds
def last(run):
    return list(run["points"].values())[-1]


def column(name, key):
    runs = stored[name]["runs"].values()
    return np.array([last(r)[key] if key in last(r) else r[key] for r in runs])


hits, exacts = column("published", "hit"), column("published", "exact")
fig, axes = figure(1, 2, height=2.3, sharey=True)
for ax, key, reported in ((axes[0], "hit", (1.0, 0.92)), (axes[1], "mass", (0.88, 0.87))):
    ax.scatter(column("published", key), np.arange(len(hits)), color=ORANGE, s=28)
    for x in reported:
        ax.axvline(x, color=GREY, ls="--", lw=1)
    ax.set(xlim=(-0.03, 1.05), xlabel={"hit": "hit rate", "mass": "mass on the true position"}[key])
axes[0].set(ylabel="seed", yticks=range(len(hits)))
show(fig, f"Hit rate and mass of the averaged map for {len(hits)} seeds of the published settings with the memory left as it "
          f"is. Hit rates run from {hits.min():.2f} to {hits.max():.2f}; dashed lines mark the published values, near the right "
          f"edge.")
say(f"After {stored['published']['steps']} steps the hit rate runs from {hits.min():.2f} to {hits.max():.2f}, the mass from "
    f"{column('published', 'mass').min():.2f} to {column('published', 'mass').max():.2f}. Each seed reverses at least "
    f"{exacts.min():.0%} of 500 fresh strings without an error.")

# %% [markdown]
# **Reading it.** One dot per seed; the dashed lines are the published values. A model can write every letter of the answer and
# hardly look, by this measure, at the letter it writes.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("maps-of-solved-tasks-miss", "with the memory not normed, at least one of eight seeds that solve the task has a hit rate of "
      "at most 0.6", hits.min(), at_most=0.6, published="1.00 and 0.92, one seed each",
      why="one seed shows no spread, and whether the memory is normed is not said")

# %% [markdown]
# ## The intervention
#
# Where does the decoder get a letter from that it does not look at? The map cannot say. An **intervention** can: change one
# source letter, leave everything else as it was, and see which target letters change. Write $p_t$ for the model's distribution
# over target letter $t$ and $p_t^{(s)}$ for the one after source letter $s$ was replaced:
#
# $$E_{ts} = \tfrac12 \sum_{v} \left| p_t^{(s)}(v) - p_t(v) \right|$$
#
# > **In words.** The total variation distance: the share of probability that moves. 0, the letter makes no difference to target
# > $t$; 1, the model is certain before and after, of different letters.

# %%
def moved(before, after):
    return (after - before).abs().sum(dim=-1).mean(dim=0) / 2  # (T,)


def replace_letter(source, place, generator):
    """Another letter at one place of each string, never the same one."""
    shift = torch.randint(1, task.letters, (len(source),), generator=generator)
    other = source.clone()
    other[:, place] = (other[:, place] + shift.to(source.device)) % task.letters
    return other


@torch.no_grad()
def effect_map(model, batch):
    """(T, S): how far target t moves when source letter s is replaced."""
    source, inputs = batch.source.to(device()), batch.inputs.to(device())
    generator = torch.Generator().manual_seed(0)
    before = model(source, inputs).softmax(dim=-1)
    after = [model(replace_letter(source, s, generator), inputs) for s in range(12)]
    return torch.stack([moved(before, a.softmax(dim=-1)) for a in after], dim=1).cpu()

# %% [markdown]
# There is a second place to intervene, between the towers. The encoder's self-attention could have carried a letter to another
# memory vector, and a decoder that looks there would be right. So: replace the letter that target $t$ must write, encode, and
# hand the decoder *one* vector $j$ of the changed memory among eleven of the original. If target $t$ moves, vector $j$ was
# keeping the letter.

# %%
@torch.no_grad()
def keeper_map(model, batch):
    """(T, S): replace target t's letter; how far does vector j alone move it?"""
    source, inputs = batch.source.to(device()), batch.inputs.to(device())
    generator, kept = torch.Generator().manual_seed(0), torch.zeros(12, 12)
    before, memory = model(source, inputs).softmax(dim=-1), model.encode(source)
    for t in range(12):
        changed = model.encode(replace_letter(source, 11 - t, generator))
        for j in range(12):
            mixed = memory.clone()
            mixed[:, j] = changed[:, j]
            logits = model.head(model.decode(inputs, mixed))
            kept[t, j] = moved(before, logits.softmax(dim=-1))[t]
    return kept


few = task.batch(32, torch.Generator().manual_seed(20_000))
effect, keeper = effect_map(model, few), keeper_map(model, few)
anti = torch.arange(11, -1, -1)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The live model under intervention
say(f"The live model: replacing source letter $11-t$ moves target $t$ by {effect[range(12), anti].mean():.2f} on average, replacing "
    f"any other by at most {effect[torch.arange(12)[:, None] != 11 - torch.arange(12)].max():.2f}. Its letters are kept in their own "
    f"memory vectors at {(keeper.argmax(1) == anti).float().mean():.0%} of the places.")

# %% [markdown]
# > **Prediction.** On a seed whose attention map is *not* the anti-diagonal: what does the effect map look like? And the keeper
# > map: were the letters carried away by the encoder?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: looking, bringing, acting, keeping, on a good and a bad seed
def unpack(rows):
    return np.array([[float(x) for x in row.split()] for row in rows]) / 100


runs = stored["published"]["runs"]
order = sorted(runs, key=lambda s: last(runs[s])["hit"])
bad, good = order[0], order[-1]
fig, axes = figure(2, 4, height=3.9, sharex=True, sharey=True)
for row, seed in enumerate((good, bad)):
    run = runs[seed]
    pictures = (np.mean([unpack(head) for head in run["attention"]], axis=0), unpack(run["brings"]), unpack(run["effect"]),
                unpack(run["keeper"]))
    for ax, picture, name in zip(axes[row], pictures, ("looks", "brings", "acts", "keeps")):
        ax.imshow(picture, cmap="Blues", vmin=0, vmax=max(picture.max(), 1e-9))
        ax.set(title=f"seed {seed}: {name}", xticks=range(0, 12, 3), yticks=range(0, 12, 3))
        ax.title.set_fontsize(8)
        ax.grid(False)
for ax in axes[1]:
    ax.set_xlabel("source position")
for ax in axes[:, 0]:
    ax.set_ylabel("target position")
show(fig, f"Four maps for each of two models, averaged over 64 strings. On seed {good} attention, contribution, effect and keeper "
          f"all lie on the anti-diagonal. On seed {bad} the attention map does not, and the effect map does all the same.")
say(f"| | seed {good} | seed {bad} | all eight, lowest |\n|:--|--:|--:|--:|\n" + "\n".join(
    f"| {name} | {value(runs[good]):.2f} | {value(runs[bad]):.2f} | {min(map(value, runs.values())):.2f} |"
    for name, value in (("looks: attention on the true position", lambda r: last(r)["hit"]),
                        ("brings: largest contribution there", lambda r: r["brings_hit"]),
                        ("acts: largest effect there", lambda r: r["effect_hit"]),
                        ("keeps: letter kept there", lambda r: r["kept_at_home"]))))

# %% [markdown]
# **Reading it.** Rows are target positions, columns source positions; *looks* is the attention weight averaged over heads, *acts* the
# effect of a source letter, *keeps* the memory vector that holds the letter. *Brings* weighs each look by what it fetches: the
# length of what source position $s$ adds to the decoder's stream, $\lVert\sum_h A^{(h)}_{ts}\, v^{(h)}_s W^O\rVert$, once the part
# that is the same for all strings is taken off (after Kobayashi et al. 2020). The third column is the alignment, found by
# experiment. Compare the first with it, on both seeds.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("effect-is-the-alignment", "on every one of eight seeds, whatever its map, replacing source letter 11-t moves target letter t "
      "more than replacing any other, for at least 95% of the target positions", column("published", "effect_hit").min(),
      at_least=0.95)

# %% [markdown]
# ## Where the freedom comes from
#
# Two things stand between a letter and its place in the map. The encoder may mix positions before the decoder looks. And a weight
# is not a message: a head may rest a large weight on vectors that bring nothing, as long as some head brings the letter.
#
# How mixed is the memory? Take an untrained model, replace source letter 5, and ask which memory vectors change.

# %%
@torch.no_grad()
def home_share(model, batch, place=5):
    """Share of the squared change that is in the changed letter's own vector."""
    source = batch.source.to(device())
    other = replace_letter(source, place, torch.Generator().manual_seed(0))
    change = (model.encode(other) - model.encode(source)).pow(2).sum(dim=-1).mean(dim=0)
    return (change[place] / change.sum()).item()


@torch.no_grad()
def silence(model):
    """Let the encoder's self-attention begin by adding nothing."""
    for block in model.encoder.blocks:
        block.self_attention.out.weight.zero_()
    return model


untrained = [make_model(task, seed) for seed in range(8)]
shares = [home_share(m, few) for m in untrained]
silent_shares = [home_share(silence(m), few) for m in untrained]

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Whose letter is it?
say(f"Before training, {min(shares):.0%} to {max(shares):.0%} of the change is in the letter's own vector (eight seeds), the rest "
    f"in the eleven others. With the encoder's self-attention silent at the start: {min(silent_shares):.0%}.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("memory-starts-mixed", "before training, on each of eight seeds, at most half of a letter's change is in its own memory "
      "vector", max(shares), at_most=0.5)

# %% [markdown]
# So before the first step a memory vector is mostly *not* about its own letter. That is a matter of sizes. Token and position
# vectors start at a standard deviation of 0.02; the attention branch normalises them first, so what it adds is larger than what it
# is added to, and the same average of all letters for every position.
#
# > **Prediction.** Which of these make the map readable on every seed: (a) no encoder block at all; (b) an encoder in which each
# > position may attend to itself alone; (c) an encoder whose self-attention is merely silent *at the start*; (d) one head instead of
# > four, so that no other head can do the work; (e) a norm on the memory? Which leave seeds that solve the task and miss?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: what removes the freedom
names = [name for name in stored if len(stored[name]["runs"]) >= 8]
fig, ax = figure(height=0.6 + 0.4 * len(names))
for place, name in enumerate(reversed(names)):
    values = column(name, "hit")
    ax.scatter(values, place + np.linspace(-0.22, 0.22, len(values)), s=22, alpha=0.85,
               color=ORANGE if name == "published" else GREEN if name == "ours" else BLUE)
ax.set(xlim=(-0.03, 1.05), xlabel="hit rate of the averaged map", yticks=range(len(names)),
       yticklabels=[stored[name]["says"] for name in reversed(names)])
show(fig, "Hit rate of each seed for each variant. " + "; ".join(
    f"{stored[n]['says'].lstrip('. ')}: {column(n, 'hit').min():.2f} to {column(n, 'hit').max():.2f}" for n in names) + ".")
between = lambda v: f"{v.min():.2f} – {v.max():.2f}"
say("Lowest and highest of the seeds:\n\n| | steps | hit rate | mass | brings | letters kept at home | exact match |\n"
    "|:--|--:|:-:|:-:|:-:|:-:|:-:|\n" + "\n".join(
        f"| {stored[name]['says']} | {stored[name]['steps']} | " + " | ".join(between(column(name, key)) for key in (
            "hit", "mass", "brings_hit", "kept_at_home", "exact")) + " |" for name in names))

# %% [markdown]
# ## Masks in anger
#
# Real texts differ in length. To put them into one batch, the shorter ones are filled up with **padding**, some token id that
# means nothing. Three places must know about it: the encoder's self-attention and the decoder's cross-attention, which must
# not look at padded keys, and the loss, which must not count padded targets. The decoder's self-attention needs no further
# mask: padding stands behind the real tokens, and the causal mask hides it from them.
#
# > **Mask convention.** As everywhere in this book: boolean, True = may attend, here of shape (B, 1, 1, S).
#
# Strings of 4 to 12 letters now. Since their length is no longer known, every target closes with an end token, written `$`.

# %%
ragged = ToyTask("reverse", length=12, min_length=4)
batch = ragged.pairs([ragged.encode(s) for s in ("cafe", "decade", "backbone")])
for row in range(3):
    source_real, target_real = batch.source_mask[row, 0, 0].int(), batch.real[row].int()
    print(ragged.decode(batch.source[row]), source_real.tolist(), "|",
          ragged.decode(batch.targets[row]), target_real.tolist())

# %% [markdown]
# The padding is written with the id 0, which is also the letter a. That is deliberate: an id does not make a token padding, the
# mask does.
#
# > **Prediction.** We train on such batches, then give the model "cafe" in a batch with longer strings, with the mask and
# > without it. Without: will the answer be slightly worse, or completely wrong? Which part of it?

# %% tags=["nbval-ignore-output"]
ragged_model = make_model(ragged, seed=0)
ragged_history = train(ragged_model, ragged, steps=300, seed=0)
ragged_model.eval()


def write(source, mask):
    mask = None if mask is None else mask.to(device())
    return greedy_decode(ragged_model, source.to(device()), ragged.start_id,
                         ragged.target_length, mask, end_id=ragged.end_id)


for name, mask in (("with the mask", batch.source_mask), ("without", None)):
    words = [ragged.decode(row).partition("$")[0] for row in write(batch.source, mask)]
    print(f"{name:14s}", "   ".join(words))

# %% [markdown]
# Now on many strings, and as numbers. First what must not change at all: in a padded batch each string gets the logits that it
# gets alone.

# %%
strings = ragged.batch(200, torch.Generator().manual_seed(5))
source, inputs = strings.source.to(device()), strings.inputs.to(device())
mask = strings.source_mask.to(device())
lengths = strings.source_mask.sum((1, 2, 3)).tolist()


@torch.no_grad()
def farthest_from_alone(mask):
    together, worst = ragged_model(source, inputs, mask), 0.0
    for row, n in enumerate(lengths):
        alone = ragged_model(source[row:row + 1, :n], inputs[row:row + 1, :n + 1])
        worst = max(worst, (together[row, :n + 1] - alone[0]).abs().max().item())
    return worst


def exact(mask):
    answer = write(strings.source, mask).cpu()
    size = answer.shape[1]
    right = answer == strings.targets[:, :size]
    return (right | ~strings.real[:, :size]).all(dim=1)


with_mask, without = exact(mask), exact(None)
padded = torch.tensor(lengths) < 12

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title What the mask is worth
say(f"| on {len(lengths)} ragged strings | with the mask | without |\n|:--|--:|--:|\n"
    f"| largest difference of a logit from the string alone | {farthest_from_alone(mask):.1e} | {farthest_from_alone(None):.1f} |\n"
    f"| reversed exactly, strings with padding | {with_mask[padded].float().mean():.3f} | {without[padded].float().mean():.3f} |\n"
    f"| reversed exactly, strings of full length | {with_mask[~padded].float().mean():.3f} | {without[~padded].float().mean():.3f} |")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("padding-changes-no-logit", "with the mask, every logit of 200 padded strings is within 1e-3 of the string's alone",
      farthest_from_alone(mask), at_most=1e-3)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("padding-mask-needed", "without the mask, at least half of the padded strings that were right come out wrong",
      1 - without[padded & with_mask].float().mean(), at_least=0.5)

# %% [markdown]
# **Reading it.** Differences of the first column are rounding. Without the mask the model takes the padding for letters a and
# reverses them too, so the answers begin with a's that nobody wrote: quite wrong, not slightly. Note what does *not* happen:
# no error, no warning. Strings of full length are right in both columns, so a test on equal lengths finds nothing.
#
# The loss has its own trap. `seq2seq_loss` returns one number per real target token. Suppose we averaged over all places of the
# padded target instead. The same 200 strings, once in a single batch and once grouped by length, so that nothing is padded:

# %%
def mean_losses(model, batches):
    """The mean over real target tokens, and over all places, padding included."""
    everywhere = [replace(b, real=torch.ones_like(b.real)) for b in batches]
    return [evaluate(model, seq2seq_loss, b) for b in (batches, everywhere)]


rows = [strings.source[row, :n] for row, n in enumerate(lengths)]
grouped = [ragged.pairs([r for r in rows if len(r) == n]) for n in sorted(set(lengths))]
one_batch = mean_losses(ragged_model, [strings])
by_length = mean_losses(ragged_model, grouped)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The loss, counted two ways
say(f"| mean loss in nats | all in one batch | grouped by length |\n|:--|--:|--:|\n"
    f"| over real tokens | {one_batch[0]:.4f} | {by_length[0]:.4f} |\n"
    f"| over all places | {one_batch[1]:.4f} | {by_length[1]:.4f} |")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("loss-ignores-batching", "the mean over real tokens differs by at most 1e-4 nats between the two ways to batch",
      abs(one_batch[0] - by_length[0]), at_most=1e-4)

# %% [markdown]
# The second row is not a property of the model but of how its strings were grouped. Training on it is worse than reading it
# wrong: a part of every gradient then teaches the model to write padding, and the more ragged the batch the larger that part.
#
# > **What this does not show.** That padding is free. It changes no result but it is computed: in this batch the share of the
# > source that is padding is work for nothing. That is why real pipelines group texts by length, which the mask makes safe.

# %% [markdown]
# ## Span corruption: a task made from any text
#
# Reversal has a target because we know the rule. T5 (Raffel et al. 2020) makes pairs out of plain text: cut spans out, put a
# **sentinel** (a token that occurs nowhere else) where each was, and ask for what is missing, each span behind its sentinel.
# A last sentinel says that all has been written. Their example:

# %%
words = "Thank you for inviting me to your party last week.".split()
inputs, target = corrupt_spans(words, [(2, 4), (8, 9)], ["<X>", "<Y>", "<Z>"])
print("input ", " ".join(inputs))
print("target", " ".join(target))
print("back  ", " ".join(restore_spans(inputs, target, ["<X>", "<Y>", "<Z>"])))

# %% [markdown]
# Compare chapter 2. There one mask token stood for one hidden character, so the length of a gap was given away, and hidden
# characters were predicted independently of one another. Here a gap has one sentinel whatever its length, and the decoder writes
# the span letter by letter, each with those before it in view. The target is also short: the decoder does not have to repeat
# what the encoder has read.
#
# On the novella, with T5's settings: windows of 64 characters, 15% of them cut out in spans of three on average. The cut is
# fixed in number and total, so all inputs of one window length have the same length and nothing is padded.

# %%
SENTINELS = tuple(f"<{i}>" for i in range(1, 9))
corpus = load_corpus("tide_clock", specials=("<start>", *SENTINELS))
vocab, WINDOW = corpus.vocab, 64
START, sentinel_ids = vocab.ids["<start>"], [vocab.ids[s] for s in SENTINELS]
text = corpus.valid[40:40 + WINDOW]
example = next(span_batches(iter([text[None]]), sentinel_ids, START, seed=1))
print("window", vocab.decode(text))
print("input ", vocab.decode(example.source[0]))
print("target", vocab.decode(example.targets[0]))

# %% [markdown]
# Two encoder blocks and one decoder block, with rotary positions in the two self-attentions. Cross-attention gets no positions
# at all: a sentinel in the target can find its twin in the source by content. In training 30% is cut out, which doubles the
# letters that each pass is scored on; in measuring 15%.
#
# > **Prediction.** A trigram model, which sees the two letters before a gap and nothing else, is our baseline. By how much
# > will reading both sides, the whole window, beat it? And how often will a span be restored *exactly*, length and all: one
# > time in two, in five, in fifty?

# %%
def span_data(ids, seed, fraction, batch_size):
    text_windows = random_windows(ids, WINDOW, batch_size, seed)
    return span_batches(text_windows, sentinel_ids, START, seed, fraction=fraction)


seed_everything(0)
shape = dict(vocab_size=len(vocab), max_len=WINDOW + len(SENTINELS))
filler = EncoderDecoder(Config(num_layers=2, **shape), Config(num_layers=1, **shape))
pairs_of_text = span_data(corpus.train, seed=0, fraction=0.3, batch_size=16)
filler_history = fit(filler.to(device()), seq2seq_loss, pairs_of_text, steps=1000,
                     schedule=linear_decay(),
                     optimizers=make_optimizers(filler), desc="span corruption")

# %% [markdown]
# The held-out chapters, cut into windows that do not overlap; the same cuts for every model. Letters and sentinels are scored
# apart, since knowing when a span ends is a different skill from knowing what stands in it.

# %%
rows = windows(corpus.valid, WINDOW)
held_out = list(span_batches(iter(rows.split(100)), sentinel_ids, START, seed=7))


def span_losses(change=lambda batch: batch):
    """Losses of the hidden letters, and of the sentinels, one number each."""
    losses = [token_losses(filler, seq2seq_loss, [change(b)]) for b in held_out]
    hidden = torch.cat([b.targets[b.real] < START for b in held_out])
    return torch.cat(losses)[hidden], torch.cat(losses)[~hidden]


letter_losses, sentinel_losses = span_losses()
# And once more with another window's source in the place of the right one:
blind_losses, _ = span_losses(lambda b: replace(b, source=b.source.roll(1, dims=0)))

# %% [markdown]
# The baseline is a trigram table over the training text, mixed with bigrams and unigrams so that no letter has probability
# zero, and asked for the same letters with the true two before each in view.

# %%
K = START  # the characters: a to z, space, <unk>
a, b, c = corpus.train[:-2], corpus.train[1:-1], corpus.train[2:]
grams = torch.zeros(K, K, K).index_put((a, b, c), torch.tensor(1.0), accumulate=True)
one, two = grams.sum((0, 1)), grams.sum(0)
unigram = (one + 1) / (one.sum() + K)
bigram = (two + 20 * unigram) / (two.sum(1, keepdim=True) + 20)  # as sure as its data
trigram = (grams + 10 * bigram) / (grams.sum(2, keepdim=True) + 10)

generator, found = torch.Generator().manual_seed(7), []
for row in rows:
    for start, end in random_spans(WINDOW, generator):  # the same cuts as in held_out
        found += [row[i - 2:i + 1] for i in range(max(start, 2), end)]
earlier, before, now = torch.stack(found).T
trigram_loss = -trigram[earlier, before, now].log().mean().item()
unigram_loss = -unigram[now].log().mean().item()

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title What it learned
def spans_of(ids):
    """{sentinel: text} of a target, until the first sentinel that stands twice."""
    found, current = {}, None
    for i in ids.tolist():
        if i in sentinel_ids:
            if i in found:
                break
            current = found.setdefault(i, [])
        elif current is not None:
            current.append(i)
    return {s: vocab.decode(letters) for s, letters in found.items()}


pairs = []  # (reference, written) of every held-out span
for b in held_out:
    written = greedy_decode(filler, b.source.to(device()), START, b.targets.shape[1] + 8).cpu()
    for reference, answer in zip(b.targets, written):
        reference, answer = spans_of(reference), spans_of(answer)
        pairs += [(text, answer.get(s)) for s, text in list(reference.items())[:-1]]
restored = sum(a == b for a, b in pairs) / len(pairs)
right_length = sum(len(a) == len(b or "") for a, b in pairs) / len(pairs)


def trigram_fill(before, length):
    for _ in range(length):
        a, b = vocab.encode(before[-2:].rjust(2))
        before += vocab.tokens[int(trigram[a, b].argmax())]
    return before[len(before) - length:] if length else ""


trigram_pairs, generator = [], torch.Generator().manual_seed(7)
for row in rows:
    text = vocab.decode(row)
    trigram_pairs += [(text[a:b], trigram_fill(text[:a], b - a)) for a, b in random_spans(WINDOW, generator)]
trigram_restored = sum(a == b for a, b in trigram_pairs) / len(trigram_pairs)
say(f"On {len(letter_losses):,} hidden letters of the held-out chapters, after {filler_history.seconds:.0f} s of training:\n\n"
    f"| | nats per hidden letter | spans restored exactly |\n|:--|--:|--:|\n"
    f"| unigram | {unigram_loss:.2f} | |\n"
    f"| trigram (two letters before; told the length) | {trigram_loss:.2f} | {trigram_restored:.1%} |\n"
    f"| **encoder–decoder** (must find the length itself) | **{letter_losses.mean():.2f}** | **{restored:.1%}** |\n"
    f"| the same, given another window's source | {blind_losses.mean():.2f} | |\n\n"
    f"It closes a span at the right length in {right_length:.0%} of the cases; a sentinel costs it {sentinel_losses.mean():.2f} nats.")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("spans-beat-trigram", "on hidden letters the encoder-decoder is at least 0.25 nats better than the trigram model",
      trigram_loss - letter_losses.mean().item(), at_least=0.25)

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("the-source-is-read", "given the source of another window, its loss on hidden letters rises by at least 0.5 nats",
      (blind_losses.mean() - letter_losses.mean()).item(), at_least=0.5)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Completions beside the reference
b = held_out[0]
written = greedy_decode(filler, b.source.to(device()), START, b.targets.shape[1] + 8).cpu()
lines = ["| input | reference | written |", "|:--|:--|:--|"]
shown = lambda text: f"`{text.replace(' ', '␣')}`"
for row in range(0, 60, 10):
    reference, answer = spans_of(b.targets[row]), spans_of(written[row])
    gaps = list(reference)[:-1]
    lines.append(f"| {shown(vocab.decode(b.source[row]))} | {' '.join(shown(reference[s]) for s in gaps)} | "
                 f"{' '.join(shown(answer.get(s) or '∅') for s in gaps)} |")
say("\n".join(lines))

# %% [markdown]
# **Reading it.** Every tenth of the first sixty held-out windows, not the best ones; `␣` is a space, `∅` a span left empty. Short
# gaps inside a word are often right to the letter. Longer ones come out as something that fits at both ends, or at one: greedy
# writing fixes the first letter before it has thought about the last. Wrong answers are mostly pronounceable.
#
# The fourth row of the table is the check that the score comes from reading. The decoder alone knows English letters too; with
# the wrong source it is not merely no better than the trigram model, it is misled.
#
# > **What this does not show.** That the encoder–decoder is the best wiring for this task: the encoder of chapter 2 sees the same
# > context, scores its gaps in one pass, and is told their lengths; a decoder-only model could read the corrupted text as a
# > prefix. Equal parameters, equal data, equal tasks: that is chapter 7.
#
# ## Three models that changed one thing each
#
# | | reads | writes | what it changed |
# |:--|:--|:--|:--|
# | **T5** (Raffel et al. 2020) | text with sentinels, or a task named in words: `translate English to German: …` | the spans, or the answer as text | every task, classification too, becomes text to text; relative positions, norms in front and without bias; one table for all tokens |
# | **BART** (Lewis et al. 2020) | text with a span infilled by a single mask, sentences shuffled | the *whole* original text | the target is the repaired text itself, so the pretrained decoder already writes fluently; strong at summarising |
# | **Whisper** (Radford et al. 2023) | 30 s of sound as a log-mel spectrogram, shortened by two convolutions | text, led by tokens that name language and task, with time stamps | the encoder need not read text at all; cross-attention is the interface between sound and words |
#
# ## Where encoder–decoder still wins
#
# When there is a whole input before there is any output, the two differ in kind, and the input is read once and asked often:
#
# - **translation** and **speech recognition**: source and target have different vocabularies, lengths, even media; the encoder
#   sees the end of the sentence before the first word is written;
# - **summarising** and **rewriting**: a long input, a short output; after the encoder has run, each new token costs one pass
#   through the decoder, and the source's keys and values are already there;
# - **data to text**: tables, code or graphs in, sentences out; the encoder can be built for the input's shape.
#
# A decoder-only model does all this as well, by putting the source in front of the target in one sequence. It reads the source
# with one eye shut (causally), unless it is a prefix-LM, and pays with nothing but that. Why it won all the same is chapter 7.
#
# ## What to take with you
#
# - A decoder block of an encoder–decoder: causal self-attention, cross-attention, feed-forward, a norm for each. Queries from
#   what is written, keys and values from what is read, and those once per source.
# - **A solved task does not prove a readable map.** Weights tell where the decoder looks, not what it finds there. Change the
#   input and watch the output before you call a map an alignment; if you need readable maps, build the model so that a vector
#   cannot stand for anything but its own token, and check that too.
# - Padding is what the mask says, in both attentions that see the source, and in the loss.
# - Span corruption makes a sequence-to-sequence task out of any text.
