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
# # 6. Where the norm goes
#
# **The question.** Every transformer block adds two branches to a stream and normalises something on the way. In 2017 the norm stood *behind* the sum; since 2019 most models have it *inside* the branch. The weights are the same, their number is the same, and at two layers you will hardly measure a difference. Why, then, did nearly everybody move it?
#
# **What you will be able to do.**
#
# - write both wirings from memory, say where the final norm comes from, and count a block's parameters with either;
# - unroll a pre-norm stack into a sum, find the identity in its Jacobian, and say what that identity protects and what it does not;
# - measure gradients from the output down to the embeddings at four depths, and tell an effect of the placement from an effect of the final norm or of the initialisation;
# - decide with an interval whether a gap between two trained models is noise;
# - show a deep model whose training fails or works depending on the norm's place and on warmup, and say which part of the usual explanation your measurements support.
#
# **Time and what you need.** About forty minutes to read; the run takes about a minute on two CPU cores (the last cell says what it took here). It builds on the block of chapter 1 and on the decoder of chapter 3.

# %% jupyter={"source_hidden": true} tags=["setup", "hide-cell"]
# @title Set-up
import math
import time
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from d2lmini import (Block, Config, Decoder, Encoder, FeedForward, MultiHeadAttention, RMSNorm, causal_mask, claim, evaluate,
                     fit, linear_decay, load_corpus, load_results, next_token_loss, random_windows, say,
                     seed_everything, windows)
from d2lmini.diagrams import arrow, box, canvas, frame, transformer_block
from d2lmini.plotting import BLUE, GREY, INK, ORANGE, RED, SKY, band, figure, show, style
from d2lmini.text import ngram_entropy

# %% jupyter={"source_hidden": true} tags=["hide-cell"]
# @title Start the clock
chapter_began = time.perf_counter()

# %% [markdown]
# ## 6.1 Two places for one norm
#
# Write $f$ for a branch: attention or feed-forward. The block has two of them, one after the other, and each is added to what came in. The two wirings are
#
# $$\text{Post-LN:}\quad x \leftarrow \operatorname{norm}\bigl(x + f(x)\bigr) \qquad\qquad \text{Pre-LN:}\quad x \leftarrow x + f\bigl(\operatorname{norm}(x)\bigr)$$
#
# > **In words.** Post-LN normalises the sum, so everything that flows upwards passes through every norm. Pre-LN normalises a *copy* on its way into the branch; the stream itself is only ever added to.
#
# A stream that is only added to grows. So a Pre-LN stack carries one norm more, the **final norm** between the last block and the output layer. A Post-LN block already ends in one.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Draw the two wirings
fig, ax = canvas(4.8, 5.05)
branches = [("attention", "attention"), ("feed-forward", "feed-forward")]
for x, title, first in ((1.3, "Post-LN", False), (3.65, "Pre-LN", True)):
    source = box(ax, x, 0.3, "tokens + positions", width=1.6)
    drawn = transformer_block(ax, x, 0.75, branches, norm_first=first)
    arrow(ax, source.top, drawn.entry)
    around = frame(ax, drawn.everything, "× L", margin=0.1, side="left" if first is False else "right")
    point = drawn.exit
    if first:
        last = box(ax, x, drawn.exit[1] + 0.42, "final norm", height=0.28, color=GREY)
        arrow(ax, point, last.bottom)
        point = last.top
    head = box(ax, x, 4.45, "output layer", width=1.6)
    arrow(ax, point, head.bottom)
    ax.text(x, 4.85, title, ha="center", fontsize=11, weight="bold", color=INK)
show(fig, alt="Two blocks side by side. In Post-LN each sum is followed by a norm, so the line from tokens to output passes "
     "through every norm. In Pre-LN the norms stand inside the branches; the line from bottom to top passes only through "
     "sums, and one final norm stands between the last block and the output layer.")

# %% [markdown]
# **Reading it.** Follow the line from the tokens upwards with a finger. On the left it runs through two norms per block. On the right it meets plus signs and nothing else until the final norm. That is the whole difference.
#
# ### Two kinds of norm
#
# $$\operatorname{LayerNorm}(x) = g \odot \frac{x - \bar x}{\sqrt{\operatorname{mean}\bigl((x-\bar x)^2\bigr) + \epsilon}} + b \qquad\qquad \operatorname{RMSNorm}(x) = g \odot \frac{x}{\sqrt{\operatorname{mean}(x^2) + \epsilon}}$$
#
# > **In words.** LayerNorm subtracts the vector's mean, divides by its standard deviation, then applies a learned gain and a learned shift. RMSNorm leaves out the mean and the shift.
#
# By hand, with $x = (1, 7)$, gain 1 and shift 0. The mean is 4 and the deviations are $(-3, 3)$, so LayerNorm gives $(-1, 1)$. The mean square is 25, so RMSNorm gives $(0.2, 1.4)$.
#
# > **Prediction.** Which of the two outputs changes when every entry of $x$ is multiplied by 10? Which when 10 is added to every entry?

# %%
layer, rms = nn.LayerNorm(2), RMSNorm(2)
x = torch.tensor([1.0, 7.0])
for what, vector in (("x", x), ("10 x", 10 * x), ("x + 10", x + 10)):
    print(
        f"{what:7s} LayerNorm {[round(v, 2) for v in layer(vector).tolist()]}   "
        f"RMSNorm {[round(v, 2) for v in rms(vector).tolist()]}"
    )

# %% [markdown]
# Neither sees a change of scale; LayerNorm does not see a common shift either. Both remove the length of a vector, and this is what matters here. The difference in cost is small: RMSNorm has $D$ parameters instead of $2D$ and one reduction less. Zhang and Sennrich (2019), who proposed it, found the quality alike and the norm faster. We shall check below whether the kind of norm changes any of the chapter's results.
#
# ### Both wirings in code
#
# One class, one `if`. The attention and the feed-forward part are those of chapter 1.

# %%
class EitherBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first):
        super().__init__()
        self.norm_first = norm_first
        self.self_norm, self.ff_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, num_heads, bias=True)
        self.feed_forward = FeedForward(d_model, d_ff, "gelu", bias=True)

    def residual(self, x, norm, branch):
        return x + branch(norm(x)) if self.norm_first else norm(x + branch(x))

    def forward(self, x, mask=None):
        x = self.residual(
            x, self.self_norm, lambda y: self.self_attention(y, mask=mask)
        )
        return self.residual(x, self.ff_norm, self.feed_forward)

# %% [markdown]
# To compare with PyTorch's own layer, its weights have to be put into place: it keeps queries, keys and values in one matrix.

# %%
def torch_layer(block):
    """PyTorch's own encoder layer with the weights of our block."""
    twin = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, activation="gelu",
                                      batch_first=True, norm_first=block.norm_first)
    a, f = block.self_attention, block.feed_forward
    together = torch.cat([a.query.weight, a.key.weight, a.value.weight])
    weights = {"self_attn.in_proj_weight": together,
               "self_attn.in_proj_bias": torch.zeros(3 * 64)}
    parts = {"self_attn.out_proj": a.out, "linear1": f.up, "linear2": f.down,
             "norm1": block.self_norm, "norm2": block.ff_norm}
    for name, part in parts.items():
        weights[f"{name}.weight"], weights[f"{name}.bias"] = part.weight, part.bias
    twin.load_state_dict(weights)
    return twin

# %%
seed_everything(0)
x, mask = torch.randn(2, 7, 64), causal_mask(7)
worst = 0.0
for norm_first in (False, True):
    mine = EitherBlock(64, 4, 256, norm_first)
    house = Block(
        64, 4, 256, norm="layer", norm_first=norm_first, activation="gelu", bias=True
    )
    house.load_state_dict(mine.state_dict())
    with torch.no_grad():
        ours, theirs = mine(x, mask), torch_layer(mine)(x, src_mask=~mask)
        worst = max(
            worst,
            (ours - house(x, mask)).abs().max().item(),
            (ours - theirs).abs().max().item(),
        )

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claim
claim("both-wirings-agree", "both wirings built here agree with the package's block and with PyTorch's layer within 1e-5",
      worst, at_most=1e-5)

# %% [markdown]
# ## 6.2 The same 49,792 parameters, wired both ways
#
# The published comparison that this chapter follows reports one block of 49,792 parameters, wired both ways. It does not say what is in it. Chapter 1's counting finds it: width $D = 64$, feed-forward width $F = 256$, LayerNorms, biases in the feed-forward part and in attention's output projection but none in queries, keys and values:
#
# $$\underbrace{4D^2 + D}_{\text{attention}} + \underbrace{2DF + F + D}_{\text{feed-forward}} + \underbrace{2 \cdot 2D}_{\text{norms}} = 16{,}448 + 33{,}088 + 256 = 49{,}792 .$$

# %%
D, F_width = 64, 256
by_formula = (4 * D**2 + D) + (2 * D * F_width + F_width + D) + 2 * 2 * D
counted = {
    norm_first: sum(
        p.numel() for p in EitherBlock(D, 4, F_width, norm_first).parameters()
    )
    for norm_first in (False, True)
}
print(f"formula {by_formula:,}   Post-LN {counted[False]:,}   Pre-LN {counted[True]:,}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claim
claim("block-parameters", "the block has 49,792 parameters with either wiring (largest miscount: 0)",
      max(abs(n - 49_792) for n in counted.values()), at_most=0, published="49,792")

# %% [markdown]
# Nothing has been moved but two lines of `forward`, so the same weights fit both. Published: at initialisation the two outputs differ by 0.83. By which measure, on what input and with which seed is not said. We try four measures on an input from $\mathcal N(0, 1)$ of 4 sequences of 32 vectors, under a causal mask, with twenty draws of weights and input:
#
# - the mean of $|a - b|$ over all entries, the root of the mean square, and the largest entry;
# - the relative difference $\lVert a - b\rVert / \lVert b\rVert$.
#
# > **Prediction.** The entries of a Post-LN output have mean square 1 by construction. Is 0.83 plausible as a root mean square? What would that say about the two outputs?

# %%
def wiring_difference(seed, shape=(4, 32, 64)):
    seed_everything(seed)
    post, pre = EitherBlock(64, 4, 256, False), EitherBlock(64, 4, 256, True)
    pre.load_state_dict(post.state_dict())
    x, mask = torch.randn(shape), causal_mask(shape[1])
    with torch.no_grad():
        b, a = post(x, mask), pre(x, mask)
    return {
        "mean": (a - b).abs().mean().item(),
        "root mean square": (a - b).square().mean().sqrt().item(),
        "largest entry": (a - b).abs().max().item(),
        "relative": ((a - b).norm() / b.norm()).item(),
    }


differences = [wiring_difference(seed) for seed in range(20)]
short = [wiring_difference(seed, (1, 8, 64))["largest entry"] for seed in range(20)]

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say("| measure | mean over 20 seeds | from | to |\n|---|---|---|---|\n" + "\n".join(
    f"| {name} | {np.mean(v):.3f} | {min(v):.3f} | {max(v):.3f} |" for name in differences[0]
    for v in [[d[name] for d in differences]]) +
    f"\n\nOnly the largest entry lands near 0.83. It depends on how many entries there are: on a single sequence of 8 vectors it is "
    f"{np.mean(short):.2f} on average.")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
largest = np.mean([d["largest entry"] for d in differences])
claim("largest-difference", "the largest entry of the difference lies between 0.7 and 0.95, averaged over 20 seeds",
      largest, at_least=0.7, at_most=0.95, published="0.83, measure not stated")
claim("typical-difference", "the root mean square of the difference is at most 0.2, averaged over 20 seeds",
      np.mean([d["root mean square"] for d in differences]), at_most=0.2)

# %% [markdown]
# **Reading it.** If 0.83 is the largest entry, it is what one would expect for an input of this size, and it says little: it grows with the number of entries that one looks through. An entry typically differs by a seventh of its size. With small branches both wirings return their input, more or less; the norm then changes its length slightly.
#
# > **What this does not show.** One block at initialisation. A seventh per block can add up over 32 blocks, or be undone by training. Nothing here says which wiring is better.
#
# ## 6.3 Unrolling: a sum with an identity in it
#
# Number the branches of a Pre-LN stack $f_1, f_2, \dots, f_n$ ($n = 2L$: two per block), and let $x_i$ be the stream after $i$ of them. Each step only adds, so the steps telescope:
#
# $$x_n = x_0 + \sum_{i=1}^{n} f_i\bigl(\operatorname{norm}(x_{i-1})\bigr) .$$
#
# > **In words.** The stream at the top is the embedding plus everything that any branch has ever said.
#
# Now the derivative. Write $J_i$ for the Jacobian of the $i$-th branch, norm included. One step has the Jacobian $I + J_i$, and a stack has the product
#
# $$\frac{\partial x_n}{\partial x_0} = (I + J_n)\cdots(I + J_2)(I + J_1) = I + \sum_i J_i + \sum_{i<j} J_j J_i + \cdots$$
#
# > **In words.** Multiply out, and there is one term for every way of going up: at each branch either through it, or past it. One of the $2^n$ ways goes past all of them. Its term is the identity.
#
# A plain deep network, or a recurrent one over $n$ steps, has $J_n \cdots J_1$ alone: the single way through everything. If each factor is small, the product is nothing. In the sum it is only the last term.
#
# **On paper.** Let everything be a scalar, without norms: $f_i(x) = w x$ with $w = \tfrac12$ and $n = 3$. The recurrent derivative is $w^3 = \tfrac18$. The residual one is $(1 + w)^3$. In terms: one way past all three (1), three ways through one ($3 \cdot \tfrac12$), three through two ($3 \cdot \tfrac14$), one through three ($\tfrac18$).
#
# > **Prediction.** Add them. Then think of $w = -1$ and of $w = 1$, with $n = 32$ branches.

# %%
def ways(factors):
    """For each k: all products of k factors, added. The ways through k branches."""
    return [sum(math.prod(chosen) for chosen in combinations(factors, k))
            for k in range(len(factors) + 1)]


terms = ways([0.5] * 3)
print("by ways:", " + ".join(map(str, terms)), "=", sum(terms))
print("as a product:", 1.5**3, "   recurrent:", 0.5**3)
for w in (-1.0, -0.5, 0.5, 1.0):
    print(f"32 branches, w = {w:4.1f}: residual {(1 + w)**32:.2e}, recurrent {w**32:.2e}")

# %% [markdown]
# The last four lines are a warning. The identity is one term of a sum, and the others can cancel it: at $w = -1$ every branch subtracts all that comes in, and the derivative is exactly zero although the identity is there. They can also swamp it: at $w = 1$ the derivative is $2^{32}$. What the identity gives is this: **there is no need for all factors to be near one.** Branches may be tiny, as they are at initialisation, and the gradient still arrives.
#
# Here is the telescope on a real stack: six Pre-LN blocks with attention, feed-forward parts and norms. We collect what each branch adds.

# %%
seed_everything(1)
stack = [EitherBlock(64, 4, 256, True) for _ in range(6)]
said = []
for block in stack:
    block.self_attention.register_forward_hook(
        lambda module, inputs, output: said.append(output)
    )
    block.feed_forward.register_forward_hook(
        lambda module, inputs, output: said.append(output)
    )
x0, x = torch.randn(2, 9, 64), None
with torch.no_grad():
    x = x0
    for block in stack:
        x = block(x, causal_mask(9))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claim
claim("unrolled-sum", "the top of a six-block Pre-LN stack is its input plus the twelve branch outputs, within 1e-5",
      (x - (x0 + sum(said))).abs().max(), at_most=1e-5)

# %% [markdown]
# ### The identity, seen
#
# A tiny stack: width $D = 8$, four tokens, so that the derivative of everything with respect to everything is a $32 \times 32$ matrix. Row: one entry of one output token. Column: one entry of one input token. We take the stack without the final norm, as in the formula.
#
# > **Prediction.** Both stacks are causal. Which part of the matrices must be zero? With twelve blocks, in which of them do you expect to see the diagonal?

# %%
def jacobian(norm_first, depth, seed):
    seed_everything(seed)
    how = dict(norm="layer", norm_first=norm_first, activation="gelu", bias=True)
    blocks = [Block(8, 2, 32, **how) for _ in range(depth)]

    def stack(flat):
        x = flat.view(1, 4, 8)
        for block in blocks:
            x = block(x, causal_mask(4))
        return x.flatten()

    return torch.autograd.functional.jacobian(stack, torch.randn(32))  # (32, 32)


def diagonal(*settings):
    return jacobian(*settings).diagonal().mean().item()


depths = (1, 2, 4, 8, 16)
diagonals = {first: np.array([[diagonal(first, depth, seed) for depth in depths]
                              for seed in range(6)]) for first in (False, True)}

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Draw two Jacobians and their diagonals
with style():
    fig = plt.figure(figsize=(6.4, 5.4))
    grid = fig.add_gridspec(2, 2, height_ratios=(1.35, 1))
    for i, (first, name) in enumerate(((False, "Post-LN, 16 blocks"), (True, "Pre-LN, 16 blocks"))):
        ax = fig.add_subplot(grid[0, i])
        picture = ax.imshow(jacobian(first, 16, 0), cmap="RdBu_r", vmin=-1.2, vmax=1.2)
        ax.set(title=name, xlabel="input: token, entry", xticks=range(0, 32, 8), yticks=range(0, 32, 8),
               xticklabels=range(1, 5), yticklabels=range(1, 5))
        if i == 0:
            ax.set_ylabel("output: token, entry")
        for edge in (7.5, 15.5, 23.5):
            ax.axhline(edge, color=GREY, lw=0.5)
            ax.axvline(edge, color=GREY, lw=0.5)
        ax.grid(False)
    fig.colorbar(picture, ax=fig.axes, shrink=0.9, label="derivative")
    ax = fig.add_subplot(grid[1, :])
    for first, name, color in ((True, "Pre-LN", BLUE), (False, "Post-LN", ORANGE)):
        band(ax, depths, diagonals[first], color=color, label=name)
    ax.axhline(0, color=INK, lw=0.8)
    ax.set(xscale="log", xticks=depths, xticklabels=depths, xlabel="blocks", ylabel="mean of the diagonal")
    ax.minorticks_off()
    ax.legend()
show(fig, alt="Jacobians of two stacks of sixteen blocks, output down, input across, both block lower triangular because of the causal "
     "mask. The Pre-LN matrix shows a clear diagonal near one; in the Post-LN matrix it is pale and broken. Below: the mean of the diagonal "
     "stays near one from 1 to 16 blocks for Pre-LN and falls to about a third for Post-LN.")

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say("Mean of the diagonal, six seeds: " + "; ".join(
    f"{name} {diagonals[first][:, 0].mean():.2f} at 1 block and {diagonals[first][:, -1].mean():.2f} "
    f"({diagonals[first][:, -1].min():.2f} to {diagonals[first][:, -1].max():.2f}) at 16"
    for first, name in ((True, "Pre-LN"), (False, "Post-LN"))) + ".")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
claim("identity-is-there", "with 16 Pre-LN blocks the Jacobian's diagonal averages at least 0.65, on each of six seeds",
      diagonals[True][:, -1].min(), at_least=0.65)
claim("identity-fades", "with 16 Post-LN blocks it averages at most 0.6, on each of six seeds",
      diagonals[False][:, -1].max(), at_most=0.6)

# %% [markdown]
# **Reading it.** Red is positive, blue negative, white zero. The upper right is white in both: no token hears a later one. On the right a red diagonal runs from corner to corner, and what surrounds it is the sum of all the other ways. On the left every block has divided the diagonal by the standard deviation of its sum, twice; after sixteen blocks a third is left. The square of the first token is the loudest because it can attend to nobody but itself; later tokens average over several values, and averages are smaller.
#
# **What the identity protects.** The gradient on its way *down the stream*: no weight that training could find in one branch can take away the ways past it.
#
# **What it does not protect.** Four things.
#
# - The sum. Other terms may cancel or swamp the identity, as with $w = \pm 1$.
# - The gradient *inside* a branch. Whether $f_i$'s own weights learn depends on $f_i$: with the value projection at zero, the query and key projections of that layer get no gradient, whatever the stream carries.
# - The scale. The formula has no final norm, but the model has. It divides by the length of the stream, and the stream grows with every branch. The next section shows that this decides what one measures.
# - Being useful. Ways past a block are also ways of ignoring it. As the stream grows, what a late branch adds is a smaller and smaller share of it.
#
# ## 6.4 Gradients from the output down to the embeddings
#
# Published: from 4 to 32 layers the gradient at the embeddings changes by a factor of 0.97 under Post-LN and of 1.62 under Pre-LN, so that the ratio between them widens from 1.5 to 2.5. Again the setting is not given. Ours: the decoder of chapter 3 made of the blocks above, on 4 windows of 32 letters; tokens and positions from tables of $\mathcal N(0, 1)$, which is PyTorch's default for an embedding; linear layers by PyTorch's default; an output layer of its own; the next-token loss; no training at all. We measure the norm of the loss's gradient with respect to the stream below each block and to the token table.

# %%
corpus = load_corpus()
LENGTH = 32
SHAPE = dict(d_model=64, num_heads=4, d_ff=256, activation="gelu", bias=True,
             positions="learned", tied=False)


def make_model(layers, norm_first, seed, *, norm="layer", kind=Decoder, tokens=1.0,
               positions=1.0, init="default", final_norm=True):
    seed_everything(seed)
    model = kind(Config(29, LENGTH, num_layers=layers, norm=norm, norm_first=norm_first,
                        **SHAPE))
    nn.init.normal_(model.tower.tokens.weight, std=tokens)
    nn.init.normal_(model.tower.added.table, std=positions)
    for layer in model.modules():
        if isinstance(layer, nn.Linear) and init != "default":
            if init == "xavier":
                nn.init.xavier_uniform_(layer.weight)
            else:
                nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    if not final_norm:
        model.tower.norm = None
    return model

# %%
def gradients(layers, norm_first, seed, text=True, **how):
    """Gradient norms: the stream below each block, the token table, the last matrix."""
    model, stream = make_model(layers, norm_first, seed, **how), []
    for block in model.tower.blocks:
        block.register_forward_pre_hook(lambda module, inputs: stream.append(inputs[0]))
    ids = torch.randint(27, (4, LENGTH + 1))
    if text:
        ids = next(random_windows(corpus.train, LENGTH + 1, 4, seed))
    loss = next_token_loss(model, ids).mean()
    table = model.tower.tokens.weight
    last = model.tower.blocks[-1].feed_forward.down.weight
    norms = [g.norm().item() for g in torch.autograd.grad(loss, [*stream, table, last])]
    sizes = [x.detach().square().mean().sqrt().item() for x in stream]
    return dict(stream=norms[:-2], table=norms[-2], last=norms[-1], size=sizes)

# %% [markdown]
# > **Prediction.** Without the final norm the top of a Pre-LN stream receives the same gradient at every depth, and the identity carries it down. With the final norm it is divided by the stream's size. By how much has the stream grown after 32 layers, and what becomes of the published widening if the final norm is there?

# %%
DEPTHS, SEEDS = (4, 8, 16, 32), range(8)
WIRINGS = {
    "Post-LN": dict(norm_first=False),
    "Pre-LN": dict(norm_first=True),
    "Pre-LN, no final norm": dict(norm_first=True, final_norm=False),
}
measured = {
    name: {n: [gradients(n, seed=seed, **how) for seed in SEEDS] for n in DEPTHS}
    for name, how in WIRINGS.items()
}
table = {
    name: np.array([[g["table"] for g in runs[n]] for n in DEPTHS]).T
    for name, runs in measured.items()
}  # (seeds, depths)

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Draw the gradients
COLORS = {"Post-LN": ORANGE, "Pre-LN": BLUE, "Pre-LN, no final norm": SKY}
fig, axes = figure(2, 2, height=5.4)
with style():
    for ax, name in zip(axes[0], ("Post-LN", "Pre-LN")):
        for n, line in zip(DEPTHS, ("-", "--", "-.", ":")):
            band(ax, np.arange(n) / n, [g["stream"] for g in measured[name][n]], color=COLORS[name], label=f"{n} layers")
            ax.lines[-1].set_linestyle(line)
        ax.set(title=name, xlabel="height in the stack (0: embeddings)", ylim=(0, 0.13))
        ax.legend(loc="lower right" if name == "Post-LN" else "upper right", ncols=2)
    axes[0, 0].set_ylabel("gradient at the stream")
    for name in WIRINGS:
        band(axes[1, 0], DEPTHS, table[name], color=COLORS[name], label=name)
    for name in ("Post-LN", "Pre-LN"):
        sizes = np.array([[g["size"][-1] for g in measured[name][n]] for n in DEPTHS]).T
        band(axes[1, 1], DEPTHS, sizes, color=COLORS[name], label=name)
    for ax, label in zip(axes[1], ("gradient at the token table", "size of the stream near the top")):
        ax.set(xscale="log", xticks=DEPTHS, xticklabels=DEPTHS, xlabel="layers", ylabel=label)
        ax.minorticks_off()
        ax.set_ylim(0)
        ax.legend(loc="upper left" if ax is axes[1, 0] else "lower right")
show(fig, alt="Gradient norms at initialisation, bands over eight seeds. Along the stream, Post-LN is level and its band widens "
     "at 32 layers; Pre-LN is level too, lower near the output the deeper the stack. At the token table Post-LN and Pre-LN coincide at "
     "all depths from 4 to 32; only Pre-LN without the final norm lies higher and grows. The Pre-LN stream doubles in size, the "
     "Post-LN stream stays at one.")

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
def spread(values, digits=2):
    values = np.asarray(values)
    return f"{np.exp(np.log(values).mean()):.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


change = {name: t[:, -1] / t[:, 0] for name, t in table.items()}
ratio = {name: table[name] / table["Post-LN"] for name in list(WIRINGS)[1:]}
say("Gradient at the token table, geometric mean over eight seeds (and range):\n\n"
    "| | from 4 to 32 layers | over Post-LN's, 4 layers | over Post-LN's, 32 layers |\n|---|---|---|---|\n"
    f"| Post-LN | × {spread(change['Post-LN'])} | 1 | 1 |\n" + "\n".join(
        f"| {name} | × {spread(change[name])} | {spread(r[:, 0])} | {spread(r[:, -1])} |" for name, r in ratio.items()) +
    "\n| *published, Post-LN* | × 0.97 | 1 | 1 |\n| *published, Pre-LN* | × 1.62 | 1.5 | 2.5 |")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
widening = ratio["Pre-LN, no final norm"]
mean_of = lambda values: np.exp(np.log(values).mean())
claim("same-gradient-with-final-norm", "with the final norm, Pre-LN's gradient at the token table is between 0.7 and 1.4 times "
      "Post-LN's at 4 and at 32 layers, geometric mean over eight seeds", max(
          (mean_of(ratio["Pre-LN"][:, i]) for i in (0, -1)), key=lambda r: abs(math.log(r))), at_least=0.7, at_most=1.4,
      published="1.5 at 4 layers, 2.5 at 32", why="the published stack behaves like one without a final norm; see the next claims")
claim("ratio-at-four-layers", "without the final norm it is 1.35 to 1.7 times Post-LN's at 4 layers, geometric mean over eight seeds",
      mean_of(widening[:, 0]), at_least=1.35, at_most=1.7, published="1.5")
claim("ratio-widens", "without the final norm that ratio is at least 1.15 times larger at 32 layers than at 4, geometric mean over eight seeds",
      mean_of(widening[:, -1] / widening[:, 0]), at_least=1.15, published="2.5 / 1.5 = 1.67")

# %% [markdown]
# **Reading it.** Upper row: the embeddings are at the left, the output at the right; the band is all eight seeds. Neither wiring makes the gradient vanish on its way down, at any of these depths. They differ at the *top*: Post-LN's stream has size 1 there, whatever the depth, and receives the same gradient (its drop at the far left is the very first norm, which divides by the size of the embeddings); Pre-LN's has grown, the final norm divides by its size, and the gradient that enters the stack is smaller the deeper it is. On the way down it grows back, and arrives at the embeddings at the same size as Post-LN's.
#
# Lower left: so the published widening is not there. It is there, in size and direction, as soon as **the final norm is left out**. Then the top of the stream receives the same gradient at every depth, and nothing makes up for the growth on the way down.
#
# > **Check your sources.** Pre-LN models in use have a final norm, from GPT-2 on. A comparison of gradients without it measures the missing norm as much as the placement.
#
# We have guessed a setting that gives the published numbers. Which parts of the guess matter? The next table changes one thing at a time, always without the final norm, at 4 and 32 layers. The ratio at 4 layers has an explanation that can be checked on paper: Post-LN's first norm divides the gradient by the size of what comes in. With tokens *and* positions from $\mathcal N(0,1)$ that is $\sqrt 2$; with tokens alone it would be 1.
#
# > **Prediction.** Which row has a ratio near 1.1 at 4 layers? For which initialisation does Pre-LN's gradient hardly grow? Does the kind of norm matter, or the mask, or whether the text is a text?

# %%
CHANGES = {
    "nothing changed": {}, "small positions, N(0, 0.02)": dict(positions=0.02),
    "RMSNorm": dict(norm="rms"), "no causal mask": dict(kind=Encoder),
    "random letters": dict(text=False), "linear layers N(0, 0.02)": dict(init="normal"),
    "linear layers Xavier": dict(init="xavier"),
}


def at_the_table(norm_first, how):
    """The gradient at the token table: (3 seeds, 4 and 32 layers)."""
    how = dict(how, final_norm=not norm_first)
    return np.array([[gradients(n, norm_first, seed, **how)["table"] for n in (4, 32)]
                     for seed in range(3)])


ledger = {}
for name, how in CHANGES.items():
    a, b = at_the_table(False, how), at_the_table(True, how)
    ledger[name] = dict(post=a[:, 1] / a[:, 0], pre=b[:, 1] / b[:, 0],
                        at4=b[:, 0] / a[:, 0], at32=b[:, 1] / a[:, 1])

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say("Geometric means over three seeds, with the range:\n\n"
    "| changed | Post-LN, 4 → 32 | Pre-LN without final norm, 4 → 32 | ratio at 4 | ratio at 32 |\n|---|---|---|---|---|\n" + "\n".join(
        f"| {name} | {spread(r['post'])} | {spread(r['pre'])} | {spread(r['at4'])} | {spread(r['at32'])} |"
        for name, r in ledger.items()) + "\n| *published* | 0.97 | 1.62 | 1.5 | 2.5 |")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
claim("positions-set-the-ratio", "with small positions the ratio at 4 layers is at most 1.3 on each of three seeds",
      ledger["small positions, N(0, 0.02)"]["at4"].max(), at_most=1.3)
claim("no-growth-from-small-branches", "with N(0, 0.02) in the linear layers Pre-LN's gradient changes by less than a factor 1.2 from 4 to 32 layers, on each of three seeds",
      np.exp(np.abs(np.log(ledger["linear layers N(0, 0.02)"]["pre"])).max()), at_most=1.2)
claim("growth-from-xavier", "with Xavier's initialisation it grows by at least a factor 2, on each of three seeds",
      ledger["linear layers Xavier"]["pre"].min(), at_least=2)

# %% [markdown]
# **Reading it.** The kind of norm, the mask and the text change next to nothing. Positions decide the ratio at 4 layers, as calculated. The initialisation of the linear layers decides the growth: N(0, 0.02) makes branches at this width so small that 32 layers are hardly deeper than 4; Xavier's are larger than PyTorch's default, and everything grows faster. The published numbers fit PyTorch's defaults and two embedding tables.
#
# > **What this does not show.** That our guess is what the published lab ran: other settings may give the same four numbers. And a range from 1.4 to above 3 for one ratio, over eight seeds, is a reminder of what one seed is worth. Above all, a gradient at initialisation is not a training run.
#
# ## 6.5 Why Post-LN needs warmup: the gradient near the output
#
# **Warmup** means that the learning rate rises from zero over the first steps instead of starting at its peak. The 2017 model came with it, and without it training failed. Xiong et al. (2020) asked why. They look at the gradient of the last feed-forward matrix at initialisation, with Xavier's initialisation, and derive how it depends on the number of layers $L$:
#
# $$\text{Post-LN:}\quad O\bigl(D\sqrt{\ln D}\bigr) \qquad\qquad \text{Pre-LN:}\quad O\bigl(D\sqrt{\ln D / L}\bigr)$$
#
# > **In words.** Near the output of a Post-LN stack the gradient is large, however deep the stack. Under Pre-LN the final norm divides by the size of a stream that has grown like $\sqrt L$, so the gradient near the output shrinks like $1/\sqrt L$. Large gradients, they argue, make a high learning rate unstable at the start; warmup gets past that.
#
# The theory is about a stream that is made of branches. So we measure it twice: with Xavier's initialisation and embeddings of a tenth of their default size, so that the branches make up the stream from the first block on, and with the defaults of the last section, where the embeddings are larger than the first branches.
#
# > **Prediction.** On log–log axes a power law is a straight line. Which two slopes does the theory predict? Will Pre-LN's line be steeper or flatter with the defaults?

# %%
SETTINGS = {"xavier": dict(init="xavier", tokens=0.1, positions=0.1), "default": {}}


def last_layer(how, seeds=range(5)):
    return {
        name: np.array(
            [
                [gradients(n, first, seed, **how)["last"] for n in DEPTHS]
                for seed in seeds
            ]
        )
        for name, first in (("Post-LN", False), ("Pre-LN", True))
    }  # each (seeds, depths)


def slopes(runs):
    """The exponent a in gradient ~ L^a, fitted for each seed."""
    return np.array([np.polyfit(np.log(DEPTHS), np.log(run), 1)[0] for run in runs])


near_output = {name: last_layer(how) for name, how in SETTINGS.items()}
exponents = {
    init: {name: slopes(runs) for name, runs in found.items()}
    for init, found in near_output.items()
}

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Draw the gradient near the output
fig, axes = figure(1, 2, height=3.2, sharey=True)
with style():
    for ax, init, title in zip(axes, ("xavier", "default"), ("Xavier, small embeddings", "PyTorch's default")):
        for name, runs in near_output[init].items():
            band(ax, DEPTHS, runs, color=COLORS[name], label=name)
        guide = near_output[init]["Pre-LN"][:, 0].mean() * (np.array(DEPTHS) / DEPTHS[0]) ** -0.5
        ax.plot(DEPTHS, guide, color=INK, lw=1, ls=":", label="slope −1/2")
        ax.set(xscale="log", yscale="log", xticks=DEPTHS, xticklabels=DEPTHS, xlabel="layers", title=title)
        ax.set_yticks([0.25, 0.5, 1, 2], ["0.25", "0.5", "1", "2"])
        ax.minorticks_off()
    axes[0].set_ylabel("gradient of the last\nfeed-forward matrix")
    axes[0].legend()
show(fig, alt="Gradient norm of the last feed-forward matrix at initialisation against the number of layers, log-log, bands over five seeds. "
     "Under Pre-LN it falls, with Xavier's initialisation along a line of slope minus one half. Under Post-LN it does not fall but rises slightly.")

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say("Fitted exponents, mean over five seeds (and range): " + "; ".join(
    f"{name}, {title}: {e.mean():+.2f} ({e.min():+.2f} to {e.max():+.2f})" for init, title in (("xavier", "Xavier"), ("default", "default"))
    for name, e in exponents[init].items()) + f". At 32 layers with Xavier's initialisation Post-LN's gradient there is "
    f"{(near_output['xavier']['Post-LN'][:, -1] / near_output['xavier']['Pre-LN'][:, -1]).mean():.0f} times Pre-LN's.")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
claim("pre-falls-with-depth", "Pre-LN with Xavier: the exponent lies between −0.75 and −0.35, mean over five seeds",
      exponents["xavier"]["Pre-LN"].mean(), at_least=-0.75, at_most=-0.35, published="−1/2 (Xiong et al. 2020, theorem 1)")
claim("post-does-not", "Post-LN with Xavier: the exponent is at least −0.1, mean over five seeds",
      exponents["xavier"]["Post-LN"].mean(), at_least=-0.1, published="0 (Xiong et al. 2020, theorem 1)")
claim("post-is-larger", "at 32 layers with Xavier Post-LN's gradient near the output is at least twice Pre-LN's, on each of five seeds",
      (near_output["xavier"]["Post-LN"][:, -1] / near_output["xavier"]["Pre-LN"][:, -1]).min(), at_least=2)

# %% [markdown]
# **Reading it.** The dotted line falls by half for four times the depth. Where its assumption holds, the theory holds: Pre-LN follows the dotted line. With the defaults the embeddings outweigh the branches for many layers, the stream takes longer to grow, and the line is flatter. Under Post-LN we find not a constant but a slight rise; the theory gives a bound, for a model whose attention averages evenly.
#
# > **Check your sources.** The usual telling goes: large gradients, hence large steps, hence divergence. But **Adam divides every gradient by its own recent size**. Its first step moves each weight by the learning rate, up or down, whether the gradient is 2 or 0.02. So gradient size alone cannot be the reason. What can differ is how much the *function* changes when every weight moves by that much. Liu et al. (2020) argue for this: a Post-LN stack leans more on its branches, and amplifies small changes of their weights.
#
# That is quickly measured: one step of Adam at a rate of 0.001, and the relative change of the final states, $\lVert h' - h\rVert / \lVert h\rVert$.
#
# > **Prediction.** Same weights, same batch, same step size. Does the change grow with depth under Post-LN, under Pre-LN, or under both?

# %%
def first_step(layers, norm_first, seed):
    model = make_model(layers, norm_first, seed)
    ids = next(random_windows(corpus.train, LENGTH + 1, 4, seed))
    before = model.states(ids[:, :-1]).detach()
    fit(
        model,
        next_token_loss,
        [ids],
        steps=1,
        optimizers=torch.optim.Adam(model.parameters(), 1e-3),
    )
    return ((model.states(ids[:, :-1]).detach() - before).norm() / before.norm()).item()


moved = {
    name: np.array([[first_step(n, first, seed) for n in DEPTHS] for seed in range(5)])
    for name, first in (("Post-LN", False), ("Pre-LN", True))
}  # each (seeds, depths)

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say("Relative change of the final states by one step of Adam, mean over five seeds (and range):\n\n| layers | Post-LN | Pre-LN | Post-LN over Pre-LN |\n|---|---|---|---|\n"
    + "\n".join(f"| {n} | {a.mean():.2f} ({a.min():.2f} to {a.max():.2f}) | {b.mean():.2f} ({b.min():.2f} to {b.max():.2f}) | "
                f"{(a / b).mean():.2f} ({(a / b).min():.2f} to {(a / b).max():.2f}) |"
                for n, a, b in zip(DEPTHS, moved["Post-LN"].T, moved["Pre-LN"].T)))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
claim("post-moves-more", "the first step moves Post-LN's states at least 1.15 times as far as Pre-LN's, at each depth and on each of five seeds",
      (moved["Post-LN"] / moved["Pre-LN"]).min(), at_least=1.15)
claim("both-move-more-with-depth", "at 32 layers the first step moves the states of either wiring at least 3 times as far as at 4, mean over five seeds",
      min((m[:, -1] / m[:, 0]).mean() for m in moved.values()), at_least=3)

# %% [markdown]
# **Reading it.** The states have been normalised, so old and new are equally long, and a change of 1 means that they have turned by 60 degrees: in one step, at a rate that is usual for small models. Both wirings come near it at 32 layers; Post-LN is there at half the depth. So depth makes a given rate more violent in either wiring, and the norm's place shifts the depth at which it becomes too much.

# %% [markdown]
# ## 6.6 Two layers: does it matter?
#
# Published: two layers, 600 steps, final losses 0.015 apart, which is called noise of a single seed. With one seed one cannot know the noise. We train both wirings on many seeds: two layers, 600 steps of Adam at a constant rate of 0.001, 16 windows of 32 predictions. A seed fixes the weights *and* the batches, so that the two runs of one seed differ in the placement and in nothing else. Then the comparison can be made **in pairs**: take the difference seed by seed, and ask whether these differences scatter around zero.
#
# $$\text{gap} = \bar d \pm t_{n-1}\,\frac{s_d}{\sqrt n}$$
#
# > **In words.** The mean of the $n$ differences, give or take their standard deviation over $\sqrt n$, times a factor that makes this a 95% interval ($t = 2.20$ for $n = 12$). If zero lies outside, "noise" is not a good explanation.
#
# The pairs come from a stored file; one more pair is trained here, with a seed that is not in the file.
#
# > **Prediction.** What scatters more: the final loss over seeds, or the difference of the two wirings over seeds? Which wiring will be ahead, if any?

# %%
def train(layers, norm_first, seed, *, batch, steps, lr, schedule=None):
    model = make_model(layers, norm_first, seed)
    history = fit(model, next_token_loss,
                  random_windows(corpus.train, LENGTH + 1, batch, seed), steps=steps,
                  optimizers=torch.optim.Adam(model.parameters(), lr, fused=True),
                  schedule=schedule, desc=f"{layers} layers")
    scored = windows(corpus.valid, LENGTH + 1, LENGTH).split(128)
    return model, history.losses, evaluate(model, next_token_loss, scored)


T95 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262,
       10: 2.228, 11: 2.201, 12: 2.179}  # by the number of differences less one


def interval(values):
    """Mean, lower and upper end of the 95% interval."""
    values = np.asarray(values)
    half = T95[len(values) - 1] * values.std(ddof=1) / math.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


print("differences 1, 2, 3:", " ".join(f"{v:.2f}" for v in interval([1, 2, 3])))

# %%
stored = load_results("norms")


def held_out(experiment, arm):
    return {
        run["seed"]: run["held_out"]
        for run in stored["runs"]
        if (run["experiment"], run["arm"]) == (experiment, arm)
    }


def gaps_between(first, second):
    """The differences in held-out loss of two arms, seed by seed."""
    a, b = held_out("shallow", first), held_out("shallow", second)
    return np.array([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])


post, pre = (held_out("shallow", f"{place}/0.001") for place in ("post", "pre"))
pairs, gaps = sorted(post.keys() & pre.keys()), gaps_between("post/0.001", "pre/0.001")
live = [train(2, first, 0, batch=16, steps=600, lr=1e-3)[2] for first in (False, True)]

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Draw the pairs
mean, low, high = interval(gaps)
fig, (ax, right) = figure(1, 2, height=3.3, width=6.4, gridspec_kw=dict(width_ratios=(1, 1.15)))
with style():
    for seed in pairs:
        ax.plot([0, 1], [post[seed], pre[seed]], color=GREY, lw=1, marker="o", ms=4, mfc=INK, mec=INK)
    ax.plot([0, 1], live, color=RED, lw=1.4, marker="o", ms=5, label="this run")
    ax.set(xticks=[0, 1], xticklabels=["Post-LN", "Pre-LN"], xlim=(-0.3, 1.3), ylabel="held-out loss (nats per letter)", title="Each seed")
    ax.legend()
    right.axvspan(low, high, color=BLUE, alpha=0.2, lw=0)
    right.axvline(mean, color=BLUE, label="mean and 95% interval")
    right.plot(gaps, range(len(gaps)), "o", color=INK, ms=4)
    right.plot(live[0] - live[1], len(gaps), "o", color=RED, ms=5)
    right.axvline(0, color=INK, lw=0.9)
    for side in (-0.015, 0.015):
        right.axvline(side, color=GREY, lw=1, ls=":")
    right.set(yticks=[], xlabel="Post-LN minus Pre-LN (nats)", title="The differences")
    right.text(0, len(gaps) + 1.3, "dotted: ±0.015, as published", fontsize=8, ha="center", va="bottom", color=INK,
               bbox=dict(fc="#FDFDFB", ec="none", pad=1))
    right.set_ylim(-0.8, len(gaps) + 2.5)
    right.set_xlim(min(-0.035, gaps.min() - 0.003), max(0.022, gaps.max() + 0.003))
    right.grid(False)
show(fig, alt=f"Left: held-out loss of {len(pairs)} pairs of two-layer models, Post-LN and Pre-LN joined by a line. Right: the differences with their "
     f"mean {mean:+.3f} and its 95% interval from {low:+.3f} to {high:+.3f} nats, beside zero and the published gap of 0.015.")

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
alone = np.std([post[seed] for seed in pairs], ddof=1)
verdict = ("the interval contains zero: on this evidence the gap is noise" if low <= 0 <= high else
           f"the interval does not contain zero: {'Pre-LN' if mean > 0 else 'Post-LN'} is ahead, and the gap is not noise")
faster = np.mean(list(held_out("shallow", "post/0.003").values()))
others = {"at 0.003": gaps_between("post/0.003", "pre/0.003"),
          "at 0.001, Pre-LN without its final norm": gaps_between("post/0.001", "bare/0.001")}
say(f"Post-LN minus Pre-LN over {len(pairs)} seeds: **{mean:+.4f} nats (95% interval {low:+.4f} to {high:+.4f})**; {verdict}. "
    f"The pair trained here: {live[0] - live[1]:+.4f}. The loss itself scatters over seeds with a standard deviation of {alone:.4f}, "
    f"the differences with {gaps.std(ddof=1):.4f}.\n\nFor comparison: at three times the rate Post-LN's mean loss is {faster:.3f} instead of "
    f"{np.mean(list(post.values())):.3f}. The difference of the wirings " + "; ".join(
        "{}: {:+.4f} ({:+.4f} to {:+.4f}, {} seeds)".format(name, *interval(values), len(values)) for name, values in others.items()) + ".")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
claim("two-layers-gap-is-small", "at two layers and rate 0.001 the 95% interval of the gap lies within ±0.04 nats",
      max(abs(low), abs(high)), at_most=0.04, published="0.015, one seed")
claim("two-layers-not-noise", "that interval does not contain zero: Post-LN is ahead (its upper end is below 0)",
      high, at_most=0.0, published="within the noise of a single seed",
      why="seeds compared in pairs resolve a gap of this size; one seed cannot")

# %% [markdown]
# **Reading it.** Left: each line is one seed; nearly all of them rise to the right. Right: the dots are the differences, the blue band is the interval of their mean. The published gap has the right size. That it is noise is false at this setting: Post-LN, the wiring that was given up, is slightly but surely *ahead*. From one seed that could not be seen, and caution was right; a dozen pairs decide it.
#
# > **What this does not show.** That Post-LN is better at two layers in general. Rate and number of steps are one choice, and the line above shows what another rate does. What carries over is the size: a few hundredths of a nat, where an untuned learning rate can cost more. At this depth the placement is not a decision that makes or breaks a model.
#
# ## 6.7 Twelve layers, with and without warmup
#
# Now the case in which the placement decides. Twelve layers, 150 steps of Adam, 8 windows of 32 predictions, the learning rate falling linearly to zero. **Cold**: it starts at its peak. **Warm**: it rises to the peak over the first third. The peak is 0.005, which is high for twelve layers and was chosen as the rate at which the four runs differ; the stored file has other rates too, and we shall look at them.
#
# For reference: a model that knows nothing but how frequent each letter is has the unigram entropy as its loss. A deep model that stays there has learned nothing that needs a deep model.
#
# > **Prediction.** Four runs: Post-LN and Pre-LN, cold and warm. Which of them fail? Do they diverge to infinity, or does something else happen?

# %%
UNIGRAM = ngram_entropy(corpus.train, 1)
ARMS = {
    "Post-LN, cold": (False, 0),
    "Post-LN, warm": (False, 1 / 3),
    "Pre-LN, cold": (True, 0),
    "Pre-LN, warm": (True, 1 / 3),
}
deep = {
    name: train(
        12, first, 0, batch=8, steps=150, lr=0.005, schedule=linear_decay(warmup)
    )
    for name, (first, warmup) in ARMS.items()
}

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Draw the four runs and the rates
LOOKS = {"Post-LN, cold": ("post/cold", RED, "-"), "Post-LN, warm": ("post/warm", ORANGE, "--"),
         "Pre-LN, cold": ("pre/cold", BLUE, "-"), "Pre-LN, warm": ("pre/warm", SKY, "--")}
RATES = (0.001, 0.0025, 0.005, 0.01)
final = {name: {rate: held_out("deep", f"{arm}/{rate:g}/default") for rate in RATES} for name, (arm, _, _) in LOOKS.items()}
curves = {name: np.array([run["curve"] for run in stored["runs"] if (run["experiment"], run["arm"]) == ("deep", f"{arm}/0.005/default")])
          for name, (arm, _, _) in LOOKS.items()}
fig, (ax, right) = figure(1, 2, height=3.6, sharey=True, gridspec_kw=dict(width_ratios=(1.2, 1)))
with style():
    steps = np.arange(5, 150, 10)
    for name, (_, color, line) in LOOKS.items():
        band(ax, steps, curves[name], color=color, label=name)
        ax.lines[-1].set_linestyle(line)
        ax.plot(steps, np.reshape(deep[name][1], (15, 10)).mean(axis=1), "o", color=color, ms=2.5)
        got = {rate: list(v.values()) for rate, v in final[name].items() if v}
        shift = {"Post-LN, cold": 0.94, "Post-LN, warm": 0.98, "Pre-LN, cold": 1.02, "Pre-LN, warm": 1.06}[name]
        right.plot([r * shift for r in got], [np.mean(v) for v in got.values()], color=color, ls=line, marker="o", ms=3)
        for rate, v in got.items():
            right.plot([rate * shift] * 2, [min(v), max(v)], color=color, lw=3, alpha=0.35)
    for a in (ax, right):
        a.axhline(UNIGRAM, color=GREY, lw=1, ls=":")
    right.text(0.00095, UNIGRAM + 0.015, "unigram entropy", fontsize=8, color=INK)
    ax.plot([], [], "o", color=GREY, ms=2.5, label="dots: this run")
    ax.set(xlabel="step", ylabel="loss (nats per letter)", title="Peak rate 0.005", ylim=(2.05, 3.3))
    ax.legend()
    right.set(xscale="log", xticks=RATES, xticklabels=["0.001", "0.0025", "0.005", "0.01"], xlabel="peak learning rate",
              title="Held-out loss at the end")
    right.minorticks_off()
show(fig, alt="Twelve layers at a peak rate of 0.005: Post-LN without warmup falls to the unigram entropy and stays there in every run; Post-LN with warmup "
     "and Pre-LN with and without it go on learning. Right: the final held-out loss against the peak rate, with the range over seeds: at low rates all four "
     "learn, at 0.005 only the cold Post-LN fails, at the highest rate Post-LN fails warm or cold.")

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
def listed(values):
    values = list(values)
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f}, {len(values)} seeds)"


say(f"Held-out loss at the peak rate 0.005 (unigram entropy {UNIGRAM:.3f}):\n\n| | stored: mean (range) | this run |\n|---|---|---|\n" + "\n".join(
    f"| {name} | {listed(final[name][0.005].values())} | {deep[name][2]:.3f} |" for name in LOOKS))

# %%
def alike(model, ids):
    """Mean cosine between the final states of different positions of a window."""
    with torch.no_grad():
        states = nn.functional.normalize(model.states(ids), dim=-1)  # (B, T, D)
    cosines = states @ states.mT  # (B, T, T)
    return cosines[:, ~torch.eye(ids.shape[1], dtype=torch.bool)].mean().item()


ids = windows(corpus.valid, LENGTH)[:64]
cosine = {name: alike(model, ids) for name, (model, _, _) in deep.items()}
fresh = alike(make_model(12, False, 0), ids)

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say(f"Mean cosine between the states of two positions of one window, after training: " + "; ".join(
    f"{name} {c:.2f}" for name, c in cosine.items()) + f". Before training, Post-LN: {fresh:.2f}. A value of 1 means that the model "
    "says the same thing everywhere.")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
at_peak = {name: list(final[name][0.005].values()) + [deep[name][2]] for name in LOOKS}     # stored seeds and this run
claim("cold-post-fails", "at twelve layers and rate 0.005, Post-LN without warmup ends within 0.1 nats of the unigram entropy, on every seed",
      max(abs(loss - UNIGRAM) for loss in at_peak["Post-LN, cold"]), at_most=0.1)
claim("warm-post-learns", "with warmup it ends at least 0.4 nats below the unigram entropy, on every seed",
      UNIGRAM - max(at_peak["Post-LN, warm"]), at_least=0.4)
claim("pre-needs-no-warmup", "Pre-LN without warmup ends at least 0.4 nats below the unigram entropy, on every seed",
      UNIGRAM - max(at_peak["Pre-LN, cold"]), at_least=0.4)
claim("a-low-rate-forgives", "at a rate of 0.001 all four end at least 0.3 nats below it, on every stored seed",
      UNIGRAM - max(loss for rates in final.values() for loss in rates[0.001].values()), at_least=0.3)
claim("pre-at-every-rate", "Pre-LN without warmup does so at every rate from 0.001 to 0.01, on every stored seed",
      UNIGRAM - max(loss for runs in final["Pre-LN, cold"].values() for loss in runs.values()), at_least=0.3)
claim("failed-model-says-one-thing", "the failed model's states at two positions have a mean cosine of at least 0.95",
      cosine["Post-LN, cold"], at_least=0.95)
claim("the-others-do-not", "in each of the other three that cosine is at most 0.8",
      max(c for name, c in cosine.items() if name != "Post-LN, cold"), at_most=0.8)

# %% [markdown]
# **Reading it.** The failure is quiet. Nothing overflows and the loss falls at first: to the unigram entropy, where it stays. The cosines say what happened. The failed model has thrown away its input: every position gets the same state, and with one and the same state the best prediction is the frequency of letters. A few steps at full rate did this, and the rest of the training does not repair it. With warmup the same model, at the same peak rate, never goes there.
#
# Right: at low rates all four learn, and the placement is a matter of hundredths again. Towards high rates the cold Post-LN drops out first, then the warm one; Pre-LN goes on. **So Pre-LN buys a wider range of learning rates at depth, and warmup buys Post-LN a part of it.** That is why it was moved: a model too large to train twice is one whose rate cannot be searched for.
#
# > **What this does not show.** Which of the two mechanisms of section 6.5 is at work: that gradients near the output are larger, or that steps change more. Both were measured at initialisation, and both fit what followed; separating them takes an intervention, such as scaling the branches at initialisation. Nor does it show what happens at 100 layers, with AdamW's weight decay, or with clipped gradients.
#
# ### With Xavier's initialisation
#
# Xiong et al. used Xavier's initialisation, and section 6.4 found larger branches there. The stored file has twelve layers with it, at a fifth of the rate.
#
# > **Prediction.** At a rate of 0.001, at which all four arms learned with PyTorch's default: which learn with larger branches?

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
xavier = {name: list(held_out("deep", f"{arm}/0.001/xavier").values()) for name, (arm, _, _) in LOOKS.items()}
say(f"Held-out loss with Xavier's initialisation at a peak rate of 0.001 (unigram entropy {UNIGRAM:.3f}): " + "; ".join(
    f"{name} {listed(v)}" for name, v in xavier.items() if v) + ".")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claims
claim("xavier-post-fails-cold", "with Xavier's initialisation Post-LN without warmup ends within 0.1 nats of the unigram entropy even at 0.001, on each stored seed",
      max(abs(loss - UNIGRAM) for loss in xavier["Post-LN, cold"]), at_most=0.1)
claim("xavier-post-fails-warm", "with warmup it ends there too, on each stored seed",
      max(abs(loss - UNIGRAM) for loss in xavier["Post-LN, warm"]), at_most=0.1)
claim("xavier-pre-learns", "Pre-LN without warmup ends at least 0.3 nats below it, on each stored seed",
      UNIGRAM - max(xavier["Pre-LN, cold"]), at_least=0.3)

# %% [markdown]
# **Reading it.** Larger branches move the edge. With PyTorch's default a cold Post-LN learned at this rate; with Xavier's initialisation it ends at the unigram entropy, and so does the warm one: fifty steps of warmup are not enough here. Pre-LN does not mind. So "Post-LN needs warmup" is true of an initialisation, a depth and a rate together, not of the wiring alone; and warmup is no guarantee.
#
# ## 6.8 Who puts it where today
#
# | model | place | norm | remark |
# |---|---|---|---|
# | Transformer (2017), GPT (2018), BERT (2018) | behind the sum | LayerNorm | trained with warmup |
# | GPT-2 (2019), GPT-3 (2020) | inside, before the branch | LayerNorm | final norm added; GPT-2 also scales down the matrices that write to the stream, by $1/\sqrt n$ for $n$ branches |
# | T5 (2019) | before the branch | RMSNorm, though not by that name | no mean, no shift; no biases in its layers either |
# | LLaMA (2023) and most that followed | before the branch | RMSNorm | no biases |
# | ModernBERT (2024) | before the branch | LayerNorm without shift | an encoder; one more norm behind the embeddings |
# | Gemma 2 (2024) | before the branch **and** behind it, inside the sum ("sandwich") | RMSNorm | |
# | OLMo 2 (2024) | behind the branch, inside the sum | RMSNorm | also norms on queries and keys |
#
# The last two are neither of the chapter's wirings. With $f$ for a branch:
#
# $$\text{branch norm:}\quad x \leftarrow x + \operatorname{norm}\bigl(f(x)\bigr) \qquad\qquad \text{sandwich:}\quad x \leftarrow x + \operatorname{norm}\bigl(f(\operatorname{norm}(x))\bigr)$$
#
# > **In words.** The stream itself is still only added to, so the unrolled sum and its identity hold for both. What is new: a norm behind the branch fixes the *size of what is added*, whatever the branch's weights do.
#
# If the $2L$ things added have mean square 1 (gain 1) and no correlation, the stream's mean square is $1 + 2L$ after $L$ blocks: size $\sqrt{65} \approx 8.1$ after 32.
#
# > **Prediction.** Rank the four wirings by the size of their stream after 32 blocks at initialisation.

# %%
PLACES = {
    "Post-LN": lambda x, f, norm: norm(x + f(x)),
    "Pre-LN": lambda x, f, norm: x + f(norm(x)),
    "branch norm": lambda x, f, norm: x + norm(f(x)),
    "sandwich": lambda x, f, norm: x + norm(f(norm(x))),
}


def stream_size(place, depth, seed):
    seed_everything(seed)
    x, norm = torch.randn(4, 32, 64), RMSNorm(64)
    with torch.no_grad():
        for _ in range(depth):
            attention, feed_forward = MultiHeadAttention(64, 4, bias=True), FeedForward(
                64, 256, "gelu", bias=True
            )
            x = place(x, lambda y: attention(y, mask=causal_mask(32)), norm)
            x = place(x, feed_forward, norm)
    return x.square().mean().sqrt().item()


sizes = {
    name: [stream_size(place, 32, seed) for seed in range(5)]
    for name, place in PLACES.items()
}

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Say what was measured
say("Root mean square of the stream after 32 blocks, mean over five seeds (and range): " + "; ".join(
    f"{name} {np.mean(v):.2f} ({min(v):.2f} to {max(v):.2f})" for name, v in sizes.items()) + ".")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# @title Claim
claim("branch-norm-grows", "with a norm behind the branch the stream has 6 to 10 times the size of one vector after 32 blocks, on each of five seeds",
      max(sizes["branch norm"] + sizes["sandwich"], key=lambda v: abs(v - 8)), at_least=6, at_most=10)

# %% [markdown]
# **Reading it.** Post-LN is at 1 by construction, Pre-LN has doubled, and the other two have followed the square root. A stream that grows in a known way is one whose late branches have a known share in it, and no single branch can blow it up. The price of leaving out the norm *before* the branch, as OLMo 2 does, is that attention sees a stream of growing size; queries and keys get norms of their own.
#
# > **What this does not show.** Any training. For the large models in the table the authors report steadier training; nobody trains a model of that size twenty times to put an interval on it.
#
# ## 6.9 What to take along
#
# - The two wirings share all weights. Pre-LN adds one final norm, without which its gradients cannot be compared with Post-LN's.
# - Unrolled, Pre-LN is a sum, and its Jacobian has the identity as one of its terms. This protects the way down the stream. It does not protect from terms that cancel or swamp it, nor the weights inside a branch.
# - At initialisation the gradient reaches the embeddings equally well in both wirings, at all depths measured. The difference is near the *output*, and in how far one step moves the function.
# - At two layers the placement is worth hundredths of a nat, and not in the direction one expects. At twelve it decides, at a high enough rate, whether training works at all.
# - Initialisation and embeddings change the numbers as much as the placement does. A gradient figure without them cannot be compared with another.
#
# **Sources.** Vaswani et al. 2017 (Post-LN, warmup); Radford et al. 2019 (GPT-2); Zhang and Sennrich 2019 (RMSNorm); Xiong et al. 2020 (gradients near the output); Liu et al. 2020 (amplified steps); Touvron et al. 2023 (LLaMA); Gemma Team 2024 (Gemma 2); OLMo Team 2024 (OLMo 2); Warner et al. 2024 (ModernBERT).

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
# @title Stop the clock
say(f"This run took {time.perf_counter() - chapter_began:.0f} seconds. The stored runs were made by `{stored['command']}` on {stored['date']}: "
    f"{len(stored['runs'])} runs, {sum(r['seconds'] for r in stored['runs']) / 60:.0f} minutes of training on one core.")
