# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 7. Which wiring when
#
# **The question.** Every wiring can be made to do every task: an encoder can write, a decoder can tag, and either can translate. So which one should you take for which task, when all get the same parameters, the same text and the same training, and does it come out as the textbooks say?
#
# **What you will be able to do.**
#
# - pose a reading, a rewriting and a writing task to each of four wirings, and prove that none of them sees an answer too early;
# - say what "equal" means in a comparison of architectures, and what changes when it means something else;
# - predict who wins, look at what was measured, and tell a wiring's advantage from a training objective's;
# - count the parameters of any transformer from its config, to the last one, with tables tied or not and blocks shared or not;
# - choose a wiring for a new task, with reasons that were measured.
#
# **Builds on** all chapters before it: masks (1), the encoder and its probe (2), the decoder and its cache (3), cross-attention (4), cost (5) and the place of the norm (6). The last cell says how long the run took.

# %% tags=["setup", "hide-cell"] jupyter={"source_hidden": true}
# @title Set-up
import math
import time
from collections import Counter

import numpy as np
import torch
from torch import nn

from d2lmini import (Config, Decoder, Encoder, EncoderDecoder, causal_mask, claim, device, figures, load_results, prefix_mask, say,
                     seed_everything)
from d2lmini.baselines import NgramModel, copy_scores, majority_accuracy
from d2lmini.contests import CONTESTS, contest_corpus, reading, rewriting, swap_words, tagged_letters, turn_words, writing
from d2lmini.diagrams import mask_grid
from d2lmini.parameters import PUBLISHED, block_parameters
from d2lmini.plotting import BLUE, FAMILY, GREEN, GREY, INK, ORANGE, RED, SKY, figure, show
from d2lmini.tournament import batch_size, compete
from d2lmini.wirings import FORMS, WIRINGS, Questions, make_contestant

# %% tags=["hide-cell"] jupyter={"source_hidden": true}
# @title Start the clock
chapter_began = time.perf_counter()

# %% [markdown]
# ## 7.1 Three tasks
#
# All three are made from the novella of chapters 2 and 3, reduced to letters and spaces, with its last chapters held out.
#
# - **Reading.** The text comes without spaces, and each letter is to be tagged: does a word end here (`|`) or not (`·`)? Everything there is to say stands in the input; the task is to understand it.
# - **Rewriting.** A phrase of whole words goes in, and comes out with every word turned around in its place. The answer is a new text, and each of its letters is a letter of the source.
# - **Writing.** Half a window goes in, and the other half is to be continued. There is no one right answer, so we score the probability that was given to the true one, in bits per character.

# %%
corpus = contest_corpus()
contests = {name: make(corpus) for name, make in CONTESTS.items()}
tags = {"<inside>": "·", "<end>": "|"}

def as_text(ids):
    tokens = [corpus.vocab.tokens[i] for i in ids]
    return "".join(tags.get(token, token) for token in tokens)

for name, contest in contests.items():
    q = contest.valid
    print(f"{name:10} {as_text(q.source[7])!r}\n"
          f"{'→':>10} {as_text(q.answer[7])!r}\n")

# %% [markdown]
# Three forms of question, then: one answer per source token, another text made from the source, and the text that follows it. Write $x$ for the source, $S$ tokens long, and $y$ for the answer, $T$ tokens long.
#
# ## 7.2 Four wirings take a question
#
# | | reading | rewriting | writing |
# |:--|:--|:--|:--|
# | **encoder** | $x$; tag $t$ read at $x_t$ | $x$ and $T$ masks; all of $y$ read at the masks, at once | $x$, what was written, one mask; the next character read at the mask |
# | **decoder** | $x$; tag $t$ read at $x_t$ | $x$, a sign to begin, $y$ so far; the next token read at the last one | $x$ and $y$ so far |
# | **prefix-LM** | $x$, a sign to begin, tags so far | $x$, a sign to begin, $y$ so far | $x$ and $y$ so far |
# | **encoder–decoder** | $x$ into one tower, tags so far into the other | $x$ into one tower, $y$ so far into the other | the same |
#
# The encoder sees all of its input. The decoder sees what stands to the left, so when it tags a letter it has not read the next one. The prefix-LM is the same model as the decoder under another mask: the source sees all of itself, the answer sees the source and what was written. In the encoder–decoder the source has a tower of its own. The figure shows the four for a source of four letters that is to be turned around.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Figure: four wirings take the same question
source, sign = list("tide"), ["⟩"]
with_masks, with_answer = source + ["▢"] * 4, source + sign + list("edi")
n = len(with_masks)
separate = torch.zeros(n, n, dtype=torch.bool)
separate[:4, :4], separate[4:, :4], separate[4:, 4:] = True, True, causal_mask(4)
cross = np.full((n, n), GREEN, dtype=object)
cross[4:, :4] = RED
fig, axes = figure(2, 2, width=6.4, height=6.6)
mask_grid(axes[0, 0], torch.ones(n, n, dtype=torch.bool), with_masks, with_masks, title="encoder", color=BLUE)
mask_grid(axes[0, 1], causal_mask(n), with_answer, with_answer, title="decoder", color=ORANGE)
mask_grid(axes[1, 0], prefix_mask(n, 5), with_answer, with_answer, title="prefix-LM", color=SKY)
mask_grid(axes[1, 1], separate, with_answer, with_answer, title="encoder–decoder", color=cross)
for ax in axes.flat:
    ax.axhline(3.5, color=INK, lw=0.8, ls="--")
show(fig, "Four grids for the source t, i, d, e and the answer e, d, i, t; queries down, keys across. Encoder: source and four "
          "masks, all cells full. Decoder: source, a sign, the answer so far, lower triangle. Prefix-LM: the same tokens, full over "
          "source and sign, lower triangle behind. Encoder-decoder: a source square, a rectangle of cross-attention, a target "
          "triangle, and the source rows see nothing of the target.")

# %% [markdown]
# **Reading it.** Queries down the rows, keys along the columns; ▢ is the mask token, ⟩ the sign to begin. The four letters of the answer come out of the rows below the dashed line. In the encoder no row below the line holds a letter of the answer: it must give all four without knowing what it says in the other places. Prefix-LM and encoder–decoder let the answer see the same tokens. They differ in the weights: in the last panel the red rectangle is cross-attention, with weights of its own, and the source has weights of its own too. And they differ in depth: the prefix-LM's second block looks at a source that one block has read, cross-attention always at the finished one. Apart from that, a prefix-LM is an encoder–decoder whose towers share everything.
#
# In code, for the form "rewrite":

# %%
MASK, GO = corpus.vocab.ids["<mask>"], corpus.vocab.ids["<go>"]

def rewrite_logits(wiring, model, x, y):
    """x (B, S), right answer y (B, T) -> logits (B, T, V) of every answer token."""
    S, T = x.shape[1], y.shape[1]
    if wiring == "encoder":
        slots = torch.full_like(y, MASK)
        return model(torch.cat((x, slots), dim=1))[:, S:]
    so_far = torch.cat((torch.full_like(y[:, :1], GO), y[:, :-1]), dim=1)
    if wiring == "encoder-decoder":
        return model(x, so_far)
    mask = causal_mask(S + T) if wiring == "decoder" else prefix_mask(S + T, S + 1)
    return model(torch.cat((x, so_far), dim=1), mask, causal=False)[:, S:]

# %% [markdown]
# The package's `Contestant` does this for all three forms. With the same model it must give the same logits.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title The two agree
q = contests["rewriting"].held_out(5)
differences = []
for wiring in WIRINGS:
    seed_everything(0)
    player = make_contestant(wiring, len(corpus.vocab), MASK, GO, source=64, answer=64)
    with torch.no_grad():
        differences.append((player(q) - rewrite_logits(wiring, player.model, q.source, q.answer)).abs().max().item())
claim("wirings-agree", "for all four wirings the logits built here and the package's agree within 1e-5", max(differences),
      at_most=1e-5)

# %% [markdown]
# ### Nobody may see an answer too early
#
# In chapter 3 a mask that leaked one position made a worthless model look perfect. Here there are twelve combinations of wiring and form in which that could happen. So we do to each what we did there: change the answer from its token $t$ on, and require every bit of the outputs for tokens $1 \dots t$ to stay.
#
# > **Prediction.** Some combinations do not read the answer at all, so that nothing ever moves. How many of the twelve? (The table above knows.)

# %%
def reads_its_answer(player, q):
    """False if the answer is never read; an error if it is read too early."""
    moved = False
    before = player(q)
    for t in range(q.answer.shape[1]):
        other = q.answer.clone()
        other[:, t:] = (other[:, t:] + 1) % 27
        after = player(Questions(q.source, other, q.form))
        assert torch.equal(before[:, :t + 1], after[:, :t + 1]), "a leak"
        moved |= not torch.equal(before, after)
    return moved

g = torch.Generator().manual_seed(0)
vocabulary = dict(vocab_size=len(corpus.vocab), mask_id=MASK, go_id=GO)
with torch.no_grad():
    for wiring in WIRINGS:
        player = make_contestant(wiring, **vocabulary, source=64, answer=64)
        for form in FORMS:
            x, y = torch.randint(27, (2, 3, 8), generator=g)
            found = reads_its_answer(player, Questions(x, y, form))
            verb = "reads" if found else "does not read"
            print(f"{wiring:16}{form:9} no leak; {verb} the answer so far")

# %% [markdown]
# Three: the encoder when it tags or rewrites, and the decoder when it tags. They answer in one pass. The other nine predict token by token. At reading and rewriting, five of them, scoring is harder than training: they read what they wrote themselves, mistakes included. At writing there is nothing to be right about, so the four are given the true text up to the character that is scored.
#
# ## 7.3 Equal in what?
#
# "Under equal conditions" is easily said. There are at least five quantities that one could hold equal, and not all of them at once.
#
# **Parameters.** One tower of $L$ blocks has $L\,(4D^2 + 3DF)$ weights, norms left aside: four projections of $D^2$, three feed-forward matrices of $DF$. Two towers of $L/2$ blocks each need four projections more in each block of the second tower, for cross-attention, and $L/2\,(12D^2 + 6DF')$ in all. Both are equal if
#
# $$F' = F - \tfrac23 D$$
#
# > **In words.** The encoder–decoder pays for its cross-attention with a narrower feed-forward; with $F = \tfrac83 D$, as everywhere in this book, exactly $2D$ is left.
#
# One more difference remains: positions. A single tower counts them by rotary angles, which tell how far apart two tokens of one sequence are. Cross-attention relates two sequences, so no angle helps it to find the source token that belongs to target token 17. The two towers get sinusoidal codes instead, as in the model of 2017. Neither has parameters. That each gets what suits it is our choice; section 7.5 takes it back and looks what it did.


# %%
D, F, L = 128, 341, 2
print("one tower: ", f"{L * (4 * D * D + 3 * D * F):,}")
print("two towers:", f"{L // 2 * (12 * D * D + 6 * D * (2 * D)):,}")
counts = {}
for wiring in WIRINGS:
    player = make_contestant(wiring, len(corpus.vocab), MASK, GO, source=64, answer=64)
    counts[wiring] = sum(p.numel() for p in player.parameters())
    print(f"{wiring:16} {counts[wiring]:,} with table and norms")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title A claim, checked
claim("equal-parameters", "the largest of the four has at most 1% more parameters than the smallest",
      max(counts.values()) / min(counts.values()), at_most=1.01)

# %% [markdown]
# **Training tokens.** We count every token that passes through a model, in either tower, and give all wirings the same number of them per step, as nearly as whole rows allow, and the same number of steps. That sounds fair, and still the wirings get different amounts to learn from: a prefix-LM that tags 64 letters reads the letters *and* the tags, 128 tokens, for 64 answers; an encoder reads 64.
#
# > **Prediction.** Writing, per 1,000 tokens read: how many characters does the decoder predict, how many the prefix-LM with its 32-character prefix, how many the encoder with one mask at the end of about 48 characters?

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Answers per thousand tokens
print(f"{'answers learned from, per 1,000 tokens':40}" + "".join(f"{name:>11}" for name in contests))
for wiring in WIRINGS:
    row = []
    for contest in contests.values():
        batches = contest.batches(wiring, 1024, seed=0)
        sizes = [batch_size(wiring, next(batches)) for _ in range(200)]
        answers, tokens = (sum(size[k] for size in sizes) for k in ("answers", "tokens"))
        row.append(1000 * answers / tokens)
    print(f"{wiring:40}" + "".join(f"{value:11.0f}" for value in row))

# %% [markdown]
# This is not a flaw in the count; it is a property of the wirings, and you will see it in the results. The encoder that writes learns from one character per pass, nearly fifty times fewer than the decoder. (BERT's way of training, many masks in one window, gives more answers per pass, but it trains for another question: chapter 3 measured what that costs at the edge of the window.)
#
# **Arithmetic.** A token of the encoder–decoder passes through *one* of two towers, so it meets half of the parameters. At equal parameters and tokens it does half the multiplications with weights, and takes the least time. A table below gives times.
#
# **Data and recipe.** Same text, same optimizer (Muon at 0.02 on the matrices, AdamW at 0.01 on the rest, falling linearly to zero), and three seeds each. The rates are those of chapter 4, where an encoder–decoder was trained with them; nothing was tuned here, for none of the four. One recipe for all is the usual choice, and it is not neutral: a rate that suits one wiring may hold another back.
#
# ### What needs no model
#
# A score means something beside what can be had for nothing. For reading: always the commonest tag; and a table of what was tagged how in the training text, looked up by four letters on the left, or by four on each side. For rewriting: the source, copied. For writing: **n-gram models**, which predict a character from counts of what followed the last $n-1$, smoothed towards shorter contexts:
#
# $$p(x \mid c) = \frac{N(cx) + D(c)\, p(x \mid c')}{N(c) + D(c)}$$
#
# > **In words.** Count what followed the context $c$. Beside those $N(c)$ observations add $D(c)$ imaginary ones, as many as there were different characters behind $c$, and share them out as the context $c'$ would, which is $c$ without its first character. Behind the empty context all characters are alike (Witten and Bell 1991).
#
# **By hand.** In the text "ababac", what follows b with two-character grams ($n = 2$), in an alphabet of four? Behind b came a, twice: $N = 2$, $D = 1$. The single characters have a three times in six, of three kinds: $p(a) = (3 + 3\cdot\tfrac14)/(6+3) = \tfrac{5}{12}$. So $p(a \mid b) = (2 + \tfrac{5}{12})/3 = \tfrac{29}{36}$.

# %%
ababac = torch.tensor([0, 1, 0, 1, 0, 2])
print(f"{NgramModel(ababac, 2, 4).probability([1], 0):.6f}", f"= 29/36 = {29 / 36:.6f}")

read, rewrite = contests["reading"], contests["rewriting"]
commonest = majority_accuracy(read.train[1], read.valid.answer)
print(f"reading, commonest tag: {commonest:.3f}")
copied, exact = copy_scores(rewrite.valid.source, rewrite.valid.answer)
print(f"rewriting, copied: {copied:.3f} of the characters, {exact:.3f} of the phrases")

# %% [markdown]
# A third of the characters of a copied phrase are right: the spaces, the middles of odd words, words like "a" and "did".

# %% [markdown]
# ## 7.4 Predict, then look
#
# > **Prediction.** Here is what the textbooks would say; put your own ranking beside it before you go on.
# >
# > | | first | last | because |
# > |:--|:--|:--|:--|
# > | reading | encoder | decoder | whether a word ends here depends on the next letters, which the decoder has not seen |
# > | rewriting | encoder–decoder | encoder | built for it; the encoder must give all characters at once, without knowing what it says elsewhere |
# > | writing | decoder | encoder | one was made for it; the other learns from one character per pass |
# >
# > And by how much? A rank is a weak prediction, so add a number: what share of phrases will each rewrite without an error?
#
# Twelve combinations, three seeds each, and three budgets: 250, 500 and 2,000 steps of 512 tokens. The shortest is one that the live version below can afford; the longest reads about a million tokens, six times the text. `python -m benchmarks.tournament` makes all runs, one by one, and goes on where it was stopped. The table shows the longest.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The table
stored = load_results("tournament")
SCORES = {"reading": [("f1", "F1 of word ends"), ("accuracy", "letters right")],
          "rewriting": [("exact", "phrases right"), ("accuracy", "characters right")],
          "writing": [("bits", "bits per character")]}


def runs_of(contest, wiring, budget="full"):
    return [r for r in stored["runs"] if (r["contest"], r["wiring"], r["budget"]) == (contest, wiring, budget)]


def spread(contest, wiring, key, budget="full"):
    values = [r[key] for r in runs_of(contest, wiring, budget)]
    return f"**{np.mean(values):.3f}** ({min(values):.3f}–{max(values):.3f})"


columns = [(contest, key, f"{contest}: {name}") for contest, keys in SCORES.items() for key, name in keys]
lines = ["| | " + " | ".join(name for _, _, name in columns) + " |", "|:--|" + "--:|" * len(columns)]
for wiring in WIRINGS:
    lines.append(f"| {wiring} | " + " | ".join(spread(contest, wiring, key) for contest, key, _ in columns) + " |")
for contest, found in stored["baselines"].items():
    for name, scores in found.items():
        cells = [f"{scores[key]:.3f}" if task == contest else "" for task, key, _ in columns]
        lines.append(f"| *{name}* | " + " | ".join(cells) + " |")
say("\n".join(lines))

# %% [markdown]
# The mean of three seeds, and in brackets the lowest and the highest. F1 is the harmonic mean of two shares: of the ends that were called, how many are ends; of the ends that there are, how many were called. The lines in italics needed no training run.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: the tournament
MAIN = {"reading": ("f1", "F1 of word ends"), "rewriting": ("exact", "phrases without an error"),
        "writing": ("bits", "bits per character")}
LABEL = {wiring: wiring.replace("encoder-decoder", "encoder–decoder") for wiring in WIRINGS}
fig, axes = figure(1, 3, width=6.4, height=3.5)
for ax, (contest, (key, label)) in zip(axes, MAIN.items()):
    for place, wiring in enumerate(WIRINGS):
        values = [r[key] for r in runs_of(contest, wiring)]
        ax.plot([place] * len(values), values, "o", color=FAMILY[wiring], ms=5, alpha=0.7)
        ax.plot([place - 0.3, place + 0.3], [np.mean(values)] * 2, color=FAMILY[wiring])
    for name, found in stored["baselines"][contest].items():
        if found[key] > 0 and name != "1-gram":
            ax.axhline(found[key], color=GREY, lw=0.9, ls=":")
            ax.text(0.02, found[key], name, color=GREY, fontsize=7, va="bottom", transform=ax.get_yaxis_transform())
    ax.set_xticks(range(4), [LABEL[w] for w in WIRINGS], rotation=40, ha="right")
    ax.set(title=contest, ylabel=label, xlim=(-0.6, 3.6))
best = {c: sorted(WIRINGS, key=lambda w: np.mean([r[k] for r in runs_of(c, w)]), reverse=k != "bits")
        for c, (k, _) in MAIN.items()}
show(fig, "Scores of four wirings in three panels, a dot for each of three seeds. From best to worst, "
     + "; ".join(f"{c}: {', '.join(LABEL[w] for w in order)}" for c, order in best.items()) + ".")
say("The order is, by the means of three seeds: "
    + "; ".join(f"**{c}**: {' > '.join(LABEL[w] for w in order)}" for c, order in best.items()) + ".")

# %% [markdown]
# **Reading it.** One column per wiring, a dot for each seed, a bar at the mean; the dotted lines are what can be had without a model. In the third panel low is good.
#
# Look at the dotted lines first (not drawn: what is at zero, and the frequencies of single characters). A table of letter counts tags better than three of the four wirings. At writing only the decoder draws level with counting four characters back; the encoder–decoder draws level with counting two. Small models on short texts are not better than counts as a matter of course, which is why the lines are there.
#
# And look at the second score of a task in the table. By characters right, the four cannot be told apart at rewriting; by whole phrases the encoder–decoder is ahead. Its errors are few and large, those of the others small and spread over more phrases. Which score is the right one depends on who reads the result.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claims, checked
def seeds_of(contest, wiring, budget="full"):
    key = MAIN[contest.partition(",")[0]][0]
    return [r[key] for r in runs_of(contest, wiring, budget)]


def others(contest, wiring):
    return [score for w in WIRINGS if w != wiring for score in seeds_of(contest, w)]


claim("reading-is-the-encoders", "the encoder's worst seed is ahead of every seed of the others at reading, by at least 0.05 in F1",
      min(seeds_of("reading", "encoder")) - max(others("reading", "encoder")), at_least=0.05)
claim("only-the-encoder-beats-the-table", "it beats the table that looks up four letters on each side, by at least 0.01 in F1",
      min(seeds_of("reading", "encoder")) - stored["baselines"]["reading"]["n-gram both sides"]["f1"], at_least=0.01)
claim("writing-is-the-decoders", "the decoder's worst seed is ahead of every seed of the others at writing, by at least 0.05 bits",
      min(others("writing", "decoder")) - max(seeds_of("writing", "decoder")), at_least=0.05)
claim("counting-keeps-up", "its best seed is ahead of the 5-gram model by at most 0.1 bits",
      stored["baselines"]["writing"]["5-gram"]["bits"] - min(seeds_of("writing", "decoder")), at_most=0.1)

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title What it cost
def mean_of(field, contest, wiring, budget="full"):
    return np.mean([r[field] for r in runs_of(contest, wiring, budget)])


lines = ["| | " + " | ".join(f"{c}: seconds | thousand answers" for c in MAIN) + " |", "|:--|" + "--:|" * 6]
for wiring in WIRINGS:
    cells = [f"{mean_of('seconds', c, wiring):.0f} | {mean_of('answers', c, wiring) / 1000:.0f}" for c in MAIN]
    lines.append(f"| {wiring} | " + " | ".join(cells) + " |")
say("\n".join(lines))

# %% [markdown]
# **Reading it.** CPU seconds of training on one thread, and thousands of answers that were learned from, for the longest budget. Equal tokens are not equal times, and still less equal lessons. The encoder–decoder is the cheapest, since each token passes through one tower of two.
#
# ### The winner depends on when you look

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: three budgets
BUDGETS = sorted(stored["steps"], key=stored["steps"].get)
steps = [stored["steps"][b] for b in BUDGETS]
fig, axes = figure(1, 3, width=6.4, height=3.4)
for ax, (contest, (key, label)) in zip(axes, MAIN.items()):
    for wiring in WIRINGS:
        found = [seeds_of(contest, wiring, b) for b in BUDGETS]
        ax.fill_between(steps, [min(f) for f in found], [max(f) for f in found], color=FAMILY[wiring], alpha=0.2, lw=0)
        ax.plot(steps, [np.mean(f) for f in found], "o-", color=FAMILY[wiring], ms=4, label=LABEL[wiring])
    ax.set(xscale="log", xlabel="steps", ylabel=label, title=contest)
    ax.set_xticks(steps, [f"{n:,}" for n in steps])
    ax.minorticks_off()
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
first = {c: [(max if k != "bits" else min)(WIRINGS, key=lambda w: np.mean(seeds_of(c, w, b))) for b in BUDGETS]
         for c, (k, _) in MAIN.items()}
show(fig, f"Scores after {', '.join(f'{n:,}' for n in steps)} steps, mean and range of three seeds. " + "; ".join(
    f"{c}: first {', then '.join(LABEL[w] for w in order)}" for c, order in first.items()) + ".")
say("First after " + ", ".join(f"{n:,}" for n in steps) + " steps: "
    + "; ".join(f"**{c}**: {', '.join(LABEL[w] for w in order)}" for c, order in first.items()) + ".")

# %% [markdown]
# **Reading it.** Each budget is a run of its own, with rates that fall to zero at its end. The step axis is logarithmic, a line is a mean and its band goes from the lowest seed to the highest; at writing, low is good. At rewriting each budget tells another story. After 250 steps the decoder leads, and the encoder–decoder has not one phrase right; after 500 the encoder and the encoder–decoder are ahead, side by side; after 2,000 it is the encoder–decoder, and the encoder has gained nothing by the longer run. A comparison with one budget would have found one of these and called it a property of the wiring. At reading and writing the first place is settled from the start, and what changes is the distance.
#
# ## 7.5 Where theory was wrong
#
# After 2,000 steps the table of predictions got four of six right. The other two:
#
# **Reading: the decoder was not last.** It tags each letter before it has seen the next one, and at every budget it beats the prefix-LM, which has seen them all. Last by far is the encoder–decoder, which calls nearly every letter "inside", even after 2,000 steps.
#
# **Rewriting: the encoder was not clearly last.** It gives all characters at once, and should have contradicted itself. Slots that are filled in parallel fail where several answers are right and the slots must agree on one. Here each character follows from the source alone, so there is nothing to agree on. With three seeds it cannot be told from the prefix-LM.
#
# And one that was right needed patience: the encoder–decoder is best at what it was built for, once it has begun.
#
# ### Who took longer to begin
#
# Why is the encoder–decoder so late at rewriting and writing, and why does it never begin to read? Look at how they learned.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: how they learned
controls = load_results("wiring_controls")["runs"]
fig, axes = figure(1, 3, width=6.4, height=3.5)
middle = (np.arange(20) + 0.5) * stored["steps"]["middle"] / 20
for ax, contest in zip(axes, MAIN):
    for wiring in WIRINGS:
        for n, r in enumerate(runs_of(contest, wiring, "middle")):
            ax.plot(middle, r["losses"], color=FAMILY[wiring], lw=1.1, label=LABEL[wiring] if n == 0 else None)
    codes = [r for r in controls if (r["control"], r["contest"], r["wiring"]) == ("sinusoidal", contest, "decoder")]
    for n, r in enumerate(codes):
        ax.plot(middle, r["losses"], color=ORANGE, lw=1, ls=":", label="decoder, sinusoidal codes" if n == 0 else None)
    ax.set(title=contest, xlabel="step", ylim=(0, None))
axes[0].set_ylabel("training loss (nats per answer token)")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
late = {w: np.mean([r["losses"][2] for r in runs_of("rewriting", w, "middle")]) for w in WIRINGS}
show(fig, f"Training loss of the runs of 500 steps. At rewriting the single towers fall from the start; after fifty steps they are "
          f"at {late['encoder']:.1f}, {late['decoder']:.1f} and {late['prefix-LM']:.1f} nats and the encoder-decoder at "
          f"{late['encoder-decoder']:.1f}, which is the entropy of a single character. At reading its curve stays flat to the end. "
          f"Dotted lines: the decoder with the encoder-decoder's position codes.")

# %% [markdown]
# **Reading it.** Three lines of a colour are three seeds. Where a line is flat, nothing is learned but how frequent each answer is. The dotted lines belong to the control below.
#
# The explanation that offers itself is cross-attention: it has to learn which position of one sequence belongs to which of another, and until it has, it returns an average of all letters. Chapter 4 saw this plateau and its cliff. But the third panel speaks against it as the only cause. A writer of text needs no source for its next character, only the last few, which stand in its own tower; and the encoder–decoder waits there too. Its towers differ from the others in two more things: each has one block instead of two, and positions are sinusoidal codes instead of rotary angles.
#
# > **Prediction.** Give the three single towers the sinusoidal codes as well, and the encoder–decoder the angles (in its self-attention; cross-attention then knows no positions). Who loses what?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title The control: positions exchanged
def of_control(kind, contest, wiring, field):
    return [r[field] for r in controls if (r["control"], r["contest"], r["wiring"]) == (kind, contest, wiring)]


lines = ["| after 500 steps | " + " | ".join(f"{c}: angles | codes" for c in MAIN) + " |", "|:--|" + "--:|" * 6]
for wiring in WIRINGS:
    cells = []
    for contest, (key, _) in MAIN.items():
        own, kind = np.mean(seeds_of(contest, wiring, "middle")), "rotary" if wiring == "encoder-decoder" else "sinusoidal"
        pair = own, np.mean(of_control(kind, contest, wiring, key))
        cells += [f"{v:.2f}" for v in (pair[::-1] if kind == "rotary" else pair)]
    lines.append(f"| {LABEL[wiring]} | " + " | ".join(cells) + " |")
say("\n".join(lines))

# %% [markdown]
# **Reading it.** The scores are those of the tournament: F1 of word ends, share of phrases without an error, bits per character (low is good); means of three seeds. Every single tower loses without the angles, and some lose everything. At reading, the prefix-LM with codes is where the encoder–decoder is: at nothing. At rewriting, with the same codes for all, the encoder–decoder is ahead of the other three already after 500 steps. At writing the codes cost the decoder more than half a bit; the angles give the encoder–decoder a third of one, and at reading a first few word ends. Only at rewriting do they harm it: without codes its cross-attention does not know places, and has to find them by what stands there.
#
# So what looked like a matter of two towers is for the larger part one of positions. The angle was there for the single towers and not for cross-attention, which is a real property of the wirings, but another one than we set out to compare.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claims, checked
claim("the-decoder-is-not-last", "at each budget the decoder is ahead of the prefix-LM at reading, by at least 0.02 in the mean F1",
      min(np.mean(seeds_of("reading", "decoder", b)) - np.mean(seeds_of("reading", "prefix-LM", b)) for b in BUDGETS), at_least=0.02)
claim("built-for-it", "after 2,000 steps the encoder-decoder rewrites at least 3 phrases in 100 more than any other, in the mean",
      np.mean(seeds_of("rewriting", "encoder-decoder"))
      - max(np.mean(seeds_of("rewriting", w)) for w in WIRINGS if w != "encoder-decoder"), at_least=0.03)
claim("late-for-it", "after 250 steps no seed of it has more than 5 in 100 right",
      max(seeds_of("rewriting", "encoder-decoder", "short")), at_most=0.05)
claim("two-towers-do-not-read", "at reading the encoder-decoder's best seed has an F1 of at most 0.3 after 2,000 steps",
      max(seeds_of("reading", "encoder-decoder")), at_most=0.3)
claim("codes-stop-the-prefix-lm", "with sinusoidal codes the prefix-LM's best seed has an F1 of at most 0.2 after 500 steps, too",
      max(of_control("sinusoidal", "reading", "prefix-LM", "f1")), at_most=0.2)
claim("codes-cost-the-decoder", "with sinusoidal codes the decoder's best seed writes at least 0.3 bits worse than its worst with angles",
      min(of_control("sinusoidal", "writing", "decoder", "bits")) - max(seeds_of("writing", "decoder", "middle")), at_least=0.3)
claim("angles-help-two-towers", "with angles the encoder-decoder's worst seed writes at least 0.1 bits better than its best with codes",
      min(seeds_of("writing", "encoder-decoder", "middle")) - max(of_control("rotary", "writing", "encoder-decoder", "bits")),
      at_least=0.1)

# %% [markdown]
# ### What a first glance is worth
#
# With codes, why does reading never begin when rewriting does? How long a plateau lasts should depend on what the first right glance is worth, and that can be counted without a model: by how many nats does the uncertainty about an answer fall when the source letter that belongs to it is known?

# %%
def uncertainty(answers, known):
    """H(answer | known) in nats, from counts; both are lists of tokens."""
    pairs, alone = Counter(zip(known, answers)), Counter(known)
    return sum(n * math.log(alone[k] / n) for (k, _), n in pairs.items()) / len(answers)


letters, ends = (part.tolist() for part in tagged_letters(corpus, corpus.train))
text = corpus.train.tolist()
nothing = [0] * len(text)
print("            nothing known   its source letter   and the next one")
print(f"rewriting {uncertainty(text, nothing):15.3f} {uncertainty(text, text):19.3f}")
pairs = list(zip(letters, letters[1:] + letters[:1]))
tag = [uncertainty(ends, known) for known in (nothing[:len(ends)], letters, pairs)]
print(f"reading   {tag[0]:15.3f} {tag[1]:19.3f} {tag[2]:18.3f}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claim
claim("a-glance-is-worth-little", "the right letter takes at most a quarter of the uncertainty about its tag",
      1 - tag[1] / tag[0], at_most=0.25)

# %% [markdown]
# A first glance at the right letter is worth everything in rewriting and little in reading: one letter says little about its tag, two letters say more, and to find the second before the first has paid is hard. That fits what was measured and does not prove it. In the runs of 2,000 steps the reading loss does fall once, but no further than to what the tags before a tag say, without a look at the letters. If you find a recipe with which it reads, you have found more than this chapter.
#
# > **What this does not show.** That encoder–decoders cannot tag. T5 was trained to do such things, with relative positions, twelve blocks a tower and a corpus of billions of words. It shows what an equal and small budget buys.

# %% [markdown]
# ### How a wiring is asked counts as much as what it sees
#
# Two entries beside the tournament separate what a wiring can do from how it was asked. A decoder that first reads all letters and then *writes* the tags has seen the next letters, as the prefix-LM has. An encoder that learned to write *as BERT does*, by filling in three tenths of a text, had many times as many lessons as one with a single mask at the end.
#
# > **Prediction.** By how much does each gain over the way it was asked in the tournament?

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Two entries beside the tournament
say("\n".join(["| | asked as in the tournament | asked otherwise |", "|:--|--:|--:|",
     f"| decoder, reading: F1 of word ends | tags as it reads: {spread('reading', 'decoder', 'f1')} | writes the tags behind the "
     f"letters: {spread('reading, written', 'decoder', 'f1')} |",
     f"| encoder, writing: bits per character | one mask at the end: {spread('writing', 'encoder', 'bits')} | three tenths hidden: "
     f"{spread('writing, by filling in', 'encoder', 'bits')} |"]))

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claims, checked
claim("more-lessons-help", "the encoder's worst seed that learned by filling in is ahead of its best one with one mask, by at least 0.2 bits",
      min(seeds_of("writing", "encoder")) - max(seeds_of("writing, by filling in", "encoder")), at_least=0.2)
claim("a-view-is-not-all", "the decoder that writes its tags is ahead of the one that does not by at most 0.05 in the mean F1",
      np.mean(seeds_of("reading, written", "decoder")) - np.mean(seeds_of("reading", "decoder")), at_most=0.05)

# %% [markdown]
# Filling in gives the encoder more than ten times the lessons, and nearly a bit; it stays last all the same, because it learns in the middle of a text and is asked at its edge (chapter 3 measured that).
#
# Writing the tags shows the decoder the next letters, and costs more than it brings: by the mean it loses, and the seeds lie far apart. So the prefix-LM's weakness at reading is not one of sight. Is it that both get half as many lessons for their tokens, or that they read their own mistakes? The first can be looked up: after 2,000 steps the prefix-LM has had twice the lessons of the decoder after 500. The second has a control of its own: score the same models with the right tags before each one *given*.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Lessons or mistakes?
given = {w: (np.mean(of_control("tags given", c, w, "f1")), np.mean(of_control("tags given", c, w, "f1_given")))
         for c, w in (("reading", "prefix-LM"), ("reading, written", "decoder"))}
say("\n".join(["| F1 of word ends | thousand lessons | reads its own tags | right tags given |", "|:--|--:|--:|--:|",
     f"| decoder, tags as it reads, 500 steps | {mean_of('answers', 'reading', 'decoder', 'middle') / 1000:.0f} | "
     f"{np.mean(seeds_of('reading', 'decoder', 'middle')):.3f} | |",
     f"| prefix-LM, 500 steps | {mean_of('answers', 'reading', 'prefix-LM', 'middle') / 1000:.0f} | {given['prefix-LM'][0]:.3f} | "
     f"{given['prefix-LM'][1]:.3f} |",
     f"| prefix-LM, 2,000 steps | {mean_of('answers', 'reading', 'prefix-LM') / 1000:.0f} | "
     f"{np.mean(seeds_of('reading', 'prefix-LM')):.3f} | |",
     f"| decoder, writes the tags, 500 steps | {np.mean(of_control('tags given', 'reading, written', 'decoder', 'answers')) / 1000:.0f} | "
     f"{given['decoder'][0]:.3f} | {given['decoder'][1]:.3f} |"]))

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claims, checked
claim("mistakes-cost", "reading its own tags costs the prefix-LM at least 0.04 in the mean F1", given["prefix-LM"][1] - given["prefix-LM"][0],
      at_least=0.04)
claim("a-view-is-worth-something", "with the right tags given it is ahead of the decoder that tags as it reads, after 500 steps, in the mean",
      given["prefix-LM"][1] - np.mean(seeds_of("reading", "decoder", "middle")), at_least=0.005)

# %% [markdown]
# It was the mistakes. With the right tags given, the prefix-LM is ahead of the decoder that tags as it reads, with half its lessons: the view of both sides is worth something. On its own tags it loses that and more, since one wrong tag misleads the next. More lessons do not help it: after 2,000 steps it is no better than the decoder after 500, which has had half as many.
#
# Whoever compares wirings compares ways of asking, too.

# %% [markdown]
# ## 7.6 If you disagree
#
# Then change something and run it yourself. The next cell is a smaller tournament with the short budget and a seed of its own, which was not among the stored ones. Everything that you may want to argue about is in it.

# %% tags=["nbval-ignore-output"]
budget = dict(steps=250, tokens=512)  # of training, and tokens in each step
seed = 4
wirings = WIRINGS
tasks = {
    "reading": reading(corpus, length=64),
    "rewriting": rewriting(corpus, turn_words, length=24),
    "writing": writing(corpus, length=32),
}
recipe = {k: v for k, v in stored["recipe"].items() if k not in budget}

live, began = [], time.perf_counter()
for name, task in tasks.items():
    for wiring in wirings:
        player, result = compete(task, wiring, seed, limit=100, where=device(),
                                 **budget, **recipe)
        live.append(result)
        scores = {k: round(v, 3) for k, v in result.items()
                  if k in ("f1", "accuracy", "exact", "bits")}
        print(f"{name:10}{wiring:16}{result['tokens']:>8,} tokens  {scores}")
live_seconds = time.perf_counter() - began

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title Figure: your tournament over the stored one
fig, axes = figure(1, 3, width=6.4, height=3.5)
for ax, (contest, (key, label)) in zip(axes, MAIN.items()):
    for place, wiring in enumerate(WIRINGS):
        for budget_name, marker, shift in (("short", "o", -0.14), ("full", "s", 0.14)):
            runs = runs_of(contest, wiring, budget_name)
            ax.plot([place + shift] * len(runs), [r[key] for r in runs], marker, color=FAMILY[wiring], ms=3.5, alpha=0.55, ls="none")
        for r in live:
            if (r["contest"], r["wiring"]) == (contest, wiring):
                ax.plot([place - 0.14], [r[key]], "D", color=FAMILY[wiring], ms=7, mec=INK, mew=1)
    ax.set_xticks(range(4), [LABEL[w] for w in WIRINGS], rotation=40, ha="right")
    ax.set(title=contest, ylabel=label, xlim=(-0.5, 3.5))
for marker, name in (("o", "stored, short budget"), ("s", "stored, full budget"), ("D", "this run")):
    axes[0].plot([], [], marker, color=GREY, mec=INK if marker == "D" else GREY, label=name)
handles, names = axes[0].get_legend_handles_labels()
fig.legend(handles, names, loc="outside lower center", ncols=3)
same = sum(sorted((r for r in live if r["contest"] == c), key=lambda r: r[k], reverse=k != "bits")[0]["wiring"]
           == sorted(WIRINGS, key=lambda w: np.mean([r[k] for r in runs_of(c, w, "short")]), reverse=k != "bits")[0]
           for c, (k, _) in MAIN.items() if any(r["contest"] == c for r in live))
show(fig, f"This run's scores, as diamonds, over the stored ones at the short and the full budget. In {same} of {len({r['contest'] for r in live})} tasks the "
          f"same wiring is best as in the stored short runs.")

# %% [markdown]
# **Reading it.** One column per wiring; small dots are the stored seeds, with the short budget on the left of the column and the full one on the right; the diamond is this run. It is scored on a part of the held-out questions, which alone moves it a little. If you change a rule above, the small dots are still those of the stored rule.
#
# > **Try it.** Put `swap_words` for `turn_words`: the words keep their letters and change their places, so the answer's characters no longer stand where the source's do. Or write a rule of your own; any function from a phrase to a string will do, if all results are equally long. Double `steps`. Give `recipe` another `lr`, or add `positions="learned"` for all. Which of the orders above survives?
#
# > **What this does not show.** Anything about models a thousand times larger, trained on a million times more text, where pretraining on one objective and use for another is the rule; here each wiring trained for its own task alone. Nor is the recipe the best one for each: a rate that suits a decoder may hold an encoder–decoder back. The three tasks were chosen to be cheap and to pull in different directions, not to be typical.
#
# ### A match of your own
#
# With a kernel, choose one task and one wiring, and train longer than the table could afford.

# %% tags=["nbval-ignore-output"]
def own_match(task, wiring, steps, positions):
    own = None if positions == "as in 7.3" else positions
    settings = recipe | dict(steps=steps, tokens=512, positions=own)
    report([compete(tasks[task], wiring, seed=5, limit=100, where=device(), **settings)[1]])


def report(results):
    rows = ["| task | wiring | tokens read | score |", "|:--|:--|--:|--:|"]
    for r in results:
        key, words = MAIN[r["contest"]]
        rows.append(f"| {r['contest']} | {r['wiring']} | {r['tokens']:,} | "
                    f"{r[key]:.3f} {words} |")
    say("\n".join(rows))


figures.live(own_match, still=lambda: report(live), button="Play", task=list(tasks),
             wiring=list(WIRINGS), steps=[500, 250, 1000, 2000],
             positions=["as in 7.3", "rotary", "learned", "sinusoidal"])

# %% [markdown]
# ## 7.7 Where the parameters are
#
# To compare wirings at equal size you must be able to count. A count from a config takes five ingredients:
#
# | part | parameters |
# |:--|:--|
# | token table | $V D$ |
# | learned positions, if any | $\text{max\_len}\cdot D$ |
# | attention | $4D^2$, and $4D$ with biases |
# | feed-forward | $2DF$ (GELU, ReLU) or $3DF$ (SwiGLU), and its biases |
# | norm | $D$ (RMSNorm) or $2D$ (LayerNorm) |
#
# A block has one attention, one feed-forward and two norms; a decoder block with cross-attention has one attention and one norm more. Then there are choices, and each is about sharing:
#
# - **Head and token table** are one matrix (*tied*), or two. Tied is the default of this book: the vector that a token is read as is also the vector that it is recognised by.
# - **Source and target table** of an encoder–decoder are one, or two. If both sides speak one vocabulary, one will do; the model of 2017 and T5 share all three, source table, target table and head.
# - **Layers** have blocks of their own, or all use the same one, as in ALBERT: then the number of layers no longer enters the count. It still enters the time.
#
# > **Prediction.** A small model: $V = 32$, $D = 128$, $F = 341$, two layers in each tower. Which of the three choices matters most here? And which in a model with $V = 30{,}000$?

# %%
V, D, F, L = 32, 128, 341, 2
small = Config(V, 64, num_layers=L)
own_head = Config(V, 64, num_layers=L, tied=False)
attention, feed_forward, norm, table = 4 * D * D, 3 * D * F, D, V * D
reader = L * (attention + feed_forward + 2 * norm) + norm
writer = L * (2 * attention + feed_forward + 3 * norm) + norm

recurrent = Encoder(small)                     # as ALBERT: one block, L times
recurrent.tower.blocks = nn.ModuleList(L * [recurrent.tower.blocks[0]])
both = reader + writer
rows = {
    "one tower, tied head": (table + reader, Encoder(small)),
    "one tower, head of its own": (2 * table + reader, Decoder(own_head)),
    "one block for all layers": (table + (reader - norm) // L + norm, recurrent),
    "two towers, one table": (table + both, EncoderDecoder(small)),
    "two towers, two tables": (2 * table + both, EncoderDecoder(small, shared=False)),
    "two towers, one table, own head": (2 * table + both, EncoderDecoder(own_head)),
}
for name, (derived, module) in rows.items():
    counted = sum(p.numel() for p in module.parameters())
    print(f"{name:34}{derived:>9,}  {'=' if derived == counted else '≠'} {counted:,}")

# %% [markdown]
# Layers matter here, and tables are small change; with 30,000 tokens a table of this width would have ten times the parameters of all blocks of a tower. So ties of tables were made by people with large vocabularies and small models, and were often given up again as models grew: in a model of 70 billion parameters a second table is lost in the noise.
#
# Now published models, by the same formulas. What they have beside the book's parts is named and added: BERT's segment vectors (is a token of the first text or of the second?) and its pooler (one more matrix, behind the first token), T5's relative positions (one number per head and bucket of distances), ALBERT's narrow token table, 128 wide, with a matrix behind it.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Published models, counted
print(f"{'':17}{'counted':>13}{'released':>13}{'paper':>8}   token tables")
for name, model in PUBLISHED.items():
    narrow = model.beside.get("tables of width 128", 0)
    tables = narrow or model.config.vocab_size * model.config.d_model * (1 if model.config.tied else 2)
    released = f"{model.known:,}" if model.known else "—"
    print(f"{name:17}{model.total:>13,}{released:>13}{model.says:>6g} M{tables / model.total:15.0%}")

# %% tags=["hide-input"] jupyter={"source_hidden": true}
# @title Claims, checked
claim("formulas-are-exact", "for every kind of sharing above, formula and module agree to the last parameter",
      max(abs(derived - sum(p.numel() for p in module.parameters())) for derived, module in rows.values()), at_most=0)
claim("published-totals", "the formulas give the released sizes of BERT, GPT-2, T5, T5 1.1 and ALBERT to the last parameter",
      max(abs(m.total - m.known) for m in PUBLISHED.values() if m.known), at_most=0,
      published="110, 117, 220, 250 and 12 million in the papers and model lists",
      why="papers round; GPT-2's authors later corrected 117 to 124 million")

# %% [markdown]
# > **Check your sources.** GPT-2's paper gives its smallest model 117 million parameters; the released weights hold 124,439,808, and its authors corrected the number later in the code's notes. The 2017 paper gives its base model 65 million; with its "about 37,000" tokens, one shared table and biases in the feed-forward the formulas give 63 million, and nobody outside can say where the rest is: 3,800 more tokens would explain it. T5's papers count a vocabulary of 32,000; the table has 32,128 rows, since sentinels were added and the number rounded up. Where a count matters, count.
#
# T5 1.1 shows the trend. It gave up the tied head and took a gated feed-forward of width 2,048 for a plain one of 3,072, which costs nothing ($3 \cdot 2048 = 2 \cdot 3072$); the whole difference to T5 is one table. And ALBERT shows the price list from the other side:

# %%
albert = PUBLISHED["ALBERT-base"]
block = block_parameters(albert.config)
print(f"one block                         {block:>12,}")
print(f"ALBERT-base, one block 12 times   {albert.total:>12,}")
print(f"the same with 12 blocks           {albert.total + 11 * block:>12,}")
print(f"a token table of width 768 alone  {30000 * 768:>12,}")

# %% [markdown]
# An eighth of the parameters, and not one multiplication less in the blocks: each layer still runs. ALBERT-base trained little faster than BERT-base and was somewhat worse (Lan et al. 2020, table 2). Sharing saves memory and makes models easy to ship; it does not make them fast.
#
# ### Why whole towers are seldom tied
#
# One could let encoder and decoder use the same blocks. T5's authors tried (Raffel et al. 2020, table 2): with shared towers, and so with about half the parameters, the scores fell a little: 82.8 against 83.3 on GLUE, a collection of tasks of understanding, and 80.6 against 80.9 on SQuAD, where answers are found in a text. So much for the idea that reading and writing need different weights! Yet few models do it. Sharing saves memory and no time, since every token still passes through as many layers. And who wants one set of weights for both can take the next step, drop the cross-attention as well, and has a prefix-LM; in T5's table that step cost more than the sharing had. It is the comparison that the tournament made.
#
# ## 7.8 The families today
#
# | wiring | who may see what | trained by | examples | taken for |
# |:--|:--|:--|:--|:--|
# | **encoder-only** | all see all | filling in what was hidden; telling related texts from unrelated ones | BERT (2018), RoBERTa, DeBERTa, ModernBERT (2024); ESM-2 for proteins; ViT for images | tagging, classification, embeddings, retrieval, reranking |
# | **decoder-only** | each sees what came before | next token, on everything | GPT, LLaMA, Mistral, Qwen, DeepSeek, Gemma, OLMo | writing, dialogue, code, and any task that can be posed as text |
# | **prefix-LM** | prefix all, rest what came before | next token behind a prefix | UniLM (2019), GLM-130B (2022), PaliGemma (2024: image and prompt are the prefix) | where a given input is read and a short answer written |
# | **encoder–decoder** | source all; target source and what came before | rewriting corrupted text; pairs | T5, BART, NLLB, Whisper (2022), T5Gemma (2025) | translation, summarisation, speech to text |
# | **cross-attention as an interface** | a few queries see all inputs | with what stands behind it | Perceiver IO, DETR, Flamingo, BLIP-2 | images, sound and long inputs into a fixed number of vectors |
# | **an encoder that writes** | all see all, several passes | filling in what was hidden, at every rate of hiding | LLaDA (2025) and other text diffusion models | writing many tokens per pass; chapter 2 did it in miniature |
#
# The borders are crossed in both directions. Decoders are turned into encoders, by taking the mask away and training on a little (LLM2Vec, 2024), or by way of an encoder–decoder whose encoder is kept (EmbeddingGemma, 2025), and decoders into encoder–decoders (T5Gemma). What is reused is always the block; what is changed is the mask and where keys and values come from. That is where chapter 1 began.
#
# ## 7.9 Why decoder-only won, and where it did not
#
# Six arguments are usually given. Some can be tested in this book, and some cannot.
#
# **1. One objective on all text, and every token is a lesson.** Section 7.3 counted it: per thousand tokens the decoder learns from a thousand answers on plain text, the others from about half as many or far fewer. What needs pairs of source and target does not get them from the web; what needs only text does.
#
# **2. One stack, and every parameter serves the token at hand.** At equal parameters, a token of the encoder–decoder meets half of them (7.3).
#
# **3. One cache, and it never goes stale.** Chapter 3 measured what the cache is worth. The argument goes further: a dialogue grows. What a causal model has computed for the first turn stays valid when the second comes. In a prefix-LM that reads the whole dialogue both ways, or an encoder, every state changes.
#
# > **Prediction.** A first turn of 20 tokens, then a second of 10. How many of the 20 states must be computed again, under each mask?

# %%
seed_everything(0)
model = Decoder(Config(len(corpus.vocab), 64, num_layers=2)).eval()
turns = torch.randint(27, (1, 30))
with torch.no_grad():
    for name, first, both in (("causal", causal_mask(20), causal_mask(30)),
                              ("prefix-LM", prefix_mask(20, 20), prefix_mask(30, 30))):
        before = model.states(turns[:, :20], first, causal=False)
        after = model.states(turns, both, causal=False)[:, :20]
        stale = ((before - after).abs().amax(-1) > 1e-4).sum().item()
        print(f"{name:10}{stale:3} of 20 states have to be computed again")

# %% [markdown]
# **4. It learns in its context.** Chapter 3's two-block decoder answered questions about pairs that its weights had never seen, from the prompt alone. Nothing about that needs a causal mask; but only next-token training on long texts has asked for it at scale.
#
# **5. Tuning keeps the interface.** Instructions and preferences are text, too; after tuning the model takes and gives what it took and gave before. This book measures nothing about it.
#
# **6. Products want continuation.** Chat, code and agents are texts that go on. Nor about this.
#
# Then there is an argument that is often given and holds only in part: that a causal model *understands* less because it sees one side. The next cell puts together what this book has measured.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title What the chapters measured
masked, causal = load_results("encoder_seeds")["runs"], load_results("decoder_seeds")["runs"]
inside = np.mean([r["by_context"][62] for r in causal]) - np.mean([np.mean(r["single_mask"][16:48]) for r in masked])
edge = np.mean([r["single_mask"][-1] for r in masked]) - np.mean([r["by_context"][62] for r in causal])
probes = load_results("probe")["runs"]
probed = {k: np.mean([r["scores"][k]["accuracy"] for r in probes]) for k in ("untrained encoder", "encoder", "decoder", "decoder, 4 later")}
answered = [r["curve"][-1][1] for r in load_results("recall")["runs"] if r["blocks"] == 2]
maps = [run["points"]["200"]["hit"] for run in load_results("alignment")["variants"]["published"]["runs"].values()]
cost = {name: next(p["seconds"] for p in load_results("perceiver_cost")["curves"][name]["points"] if p["size"] == 8192)
        for name in ("full-fused", "perceiver-64")}
deep = {arm: np.mean([r["held_out"] for r in load_results("norms")["runs"] if r["experiment"] == "deep"
                      and r["arm"] == f"{arm}/cold/0.005/default"]) for arm in ("pre", "post")}
say(f"""| question | chapter | measured |
|:--|:--|:--|
| What is the second side worth when a hidden character is guessed? | 2, 3 | **{inside:.2f} nats**, for the encoder |
| And at the end of the window, where there is no second side? | 3 | **{edge:.2f} nats**, for the decoder |
| Whose frozen states know better where words end? | 2 | encoder {probed['encoder']:.3f}, decoder {probed['decoder']:.3f}, untrained {probed['untrained encoder']:.3f} |
| Is it enough to let the decoder read four letters more before it is asked? | 2 | no: {probed['decoder, 4 later']:.3f} |
| Can it use facts that stand only in its prompt? | 3 | in {min(answered):.0%} of the questions or more |
| Does cross-attention show which source letter was used, when the task is solved? | 4 | not always: in {min(maps):.0%} to {max(maps):.0%} of the letters |
| What do 64 latents save when 8,192 inputs are read? | 5 | full attention takes **{cost['full-fused'] / cost['perceiver-64']:.0f} times** as long |
| What can the place of the norm cost? | 6 | at 12 layers and a high rate: {deep['pre']:.2f} nats (Pre-LN), {deep['post']:.2f} (Post-LN) |""")

# %% [markdown]
# **Where it did not win.** *Embeddings, retrieval and reranking* (one vector per text, finding texts by it, and sorting what was found): a document is encoded once, in one pass, and there is nothing to write; models of a hundred million parameters do it for billions of documents. *Translation, summarisation and speech*, where a source is given complete: the encoder–decoder reads it from both sides, once, and then writes. Whisper and NLLB are built so, and T5Gemma found in 2025 that an encoder–decoder made from a decoder matches it after pretraining and beats it after tuning, at equal cost in inference. Large decoders translate and summarise as well or better today; they are also larger and have read more. *Images, sound and other long inputs* come in through the interface of chapter 5.
#
# Larger studies agree on the outline and not on a winner. Trained on text alone and asked without examples, a causal decoder was best; after training on many tasks, models that see their input from both sides and had learned by filling in were best (Wang et al. 2022, at about five billion parameters, twice that for encoder–decoders). Encoders and decoders of equal size, trained on the same data with the same recipe, each won at home, and further training in the other's way did not close the gap: an encoder of 400 million parameters beat a decoder of a billion at judging whether one sentence follows from another, and the reverse at writing (Weller et al. 2025).
#
# ## 7.10 What you may be asked
#
# **"Isn't BERT just a GPT without the mask?"** The block is the same, and so are the parameters. But without the mask next-token prediction becomes copying (chapter 2 shows it collapse), so the task has to change with the mask. Mask and task come as a pair.
#
# **"Why not use an encoder to generate?"** The usual answer, that it cannot, is wrong. It can: one mask at the end (this chapter), or many masks over several passes (chapter 2). It is costly: nothing that was computed for one character can be kept for the next, and with one mask at the end there is one lesson per pass.
#
# **"Is a prefix-LM a kind of encoder–decoder?"** Nearly one with everything tied: the same blocks read and write, and self-attention over the prefix takes the place of cross-attention. Its answers see the same tokens; it has one set of weights for it.
#
# **"An encoder–decoder of 220 million parameters against a decoder of 110 million: who is faster?"** Neither, by much. A token passes through one of the towers. Parameters measure memory, not time.
#
# **"Do you need cross-attention to translate?"** No. Source, separator and target in one stream will do, and the decoder of this chapter rewrites so. Cross-attention keeps the source's weights apart from the target's and computes the source once.
#
# **"Your classifier must run on millions of documents a day. Which wiring?"** An encoder, unless a decoder is there already. It needs one pass without a loop, sees both sides, and is good when small. The wrong reason is that decoders cannot classify.
#
# **"Why do chat models not use a prefix-LM, when the prompt is known?"** They could. With every turn the prefix grows and its states become stale (section 7.9), so the cache is lost; and training on plain text, with a prefix of half the window, teaches half as much per token.
#
# **"What does weight tying save?"** $VD$ parameters, a tenth to a quarter of a small published model and nothing noticeable of a large one, and no time at all: the product with the table is computed anyway.
#
# **What to take along.** Any wiring can take any task, so the question is never whether, but at what price. See both sides where the input is complete; keep what was computed where the text grows; count answers learned per token, not only tokens; and when someone tells you that an architecture won, ask what was held equal.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
# @title How long this chapter ran
say(f"This chapter ran in {time.perf_counter() - chapter_began:.0f} s on this machine, {live_seconds:.0f} s of them in the live "
    f"tournament.")
