"""The questions of the quizzes, by chapter. Every option says why it is right or wrong, common wrong answers included."""

from __future__ import annotations

import hashlib

from .quiz import Quiz


def _ask(question: str, *options: tuple[bool, str, str]) -> dict:
    """A choice: options (right, text, why), in an order that is the same every time and says nothing."""
    options = sorted(options, key=lambda option: hashlib.sha256(option[1].encode()).digest())
    several = sum(right for right, _, _ in options) > 1
    return {"question": question, "type": "many_choice" if several else "multiple_choice",
            "answers": [{"answer": text, "correct": right, "feedback": why} for right, text, why in options]}


def _number(question: str, other: str, *values: tuple[bool, float, str]) -> dict:
    """A number: values (right, value, why), and what to say of any other."""
    return {"question": question, "type": "numeric", "answers": [
        *({"type": "value", "value": value, "correct": right, "feedback": why} for right, value, why in values),
        {"type": "default", "feedback": other}]}


QUESTIONS = {
    1: [
        _ask("In this book's code, what does True in a mask mean?",
             (True, "The query may attend to this key.", "The convention of `F.scaled_dot_product_attention`."),
             (False, "The key is masked, that is, hidden.", "The opposite; `nn.MultiheadAttention` reads it so, hence `~mask` in between."),
             (False, "The score is multiplied by 1.", "A blocked score becomes -inf before the softmax; nothing is multiplied.")),
        _ask("Which of these need the causal mask?",
             (True, "Self-attention of a decoder while it trains.", "All positions are computed at once, and each must not see its answer."),
             (False, "Self-attention of an encoder.", "It reads; the whole text is there, and both sides help."),
             (False, "Cross-attention from target to source.", "The source is complete before the target begins. It needs padding's mask only."),
             (True, "Self-attention over the target in an encoder–decoder.", "That part is a decoder, and is trained as one.")),
        _number("A causal mask over 10 tokens: how many entries are blocked?", "Row t blocks what comes after it: 9 + 8 + … + 0.",
                (True, 45, "N(N - 1)/2 with N = 10."), (False, 55, "That many are allowed: the diagonal is among those."),
                (False, 50, "Half the square, but the diagonal is not cut in two: it is allowed."),
                (False, 90, "Everything off the diagonal; only the upper half of that is blocked.")),
        _ask("A query may see none of the keys. What should it get?",
             (True, "Zeros.", "It learned nothing, and the residual connection carries it on as it was."),
             (False, "NaN, as the softmax of nothing but -inf gives.", "It spreads: 0 × NaN is NaN, so it spoils even a loss that ignores the row."),
             (False, "The mean of all values.", "That is what -1e9 in place of -inf gives: an even mix of what it may not see.")),
    ],
    2: [
        _ask("Why is BERT called encoder-only?",
             (True, "It is the encoder half alone: every position sees both sides, and no decoder writes a text.", "The mask (none but padding's) and the missing decoder make the name."),
             (False, "Because it reads left to right.", "It does not; that would be a decoder's mask."),
             (False, "Because it compresses a text into one vector.", "One can take such a vector from it, but it gives a state for every token."),
             (False, "Because it was trained without labels.", "So was GPT; self-supervision says nothing about the wiring.")),
        _ask("Which positions enter the loss of masked language modelling?",
             (True, "All chosen ones, whatever became of them.", "Also the tenth that stayed: there the model must confirm what it sees."),
             (False, "Those that hold the mask token.", "Then a model could trust every token that it can read, and would learn nothing there."),
             (False, "All positions.", "At the others the answer stands in the input; the loss would mostly teach to copy.")),
        _ask("Why not train an encoder without a mask to predict the next token?",
             (True, "The next token is in view; it would learn to look one place ahead.", "The loss collapses and nothing was learned. Section 2.2 shows it."),
             (False, "An encoder has no output head.", "It has one for the masked tokens; the same would do."),
             (False, "It would be too slow.", "It would be fast, and worthless.")),
    ],
    3: [
        _number("One sequence of 2,048 tokens: how many next-token predictions does it contribute?",
                "The first token has no predecessor inside the sequence, and the last has no successor: count the arrows between neighbours.",
                (True, 2047, "N tokens have N - 1 neighbours to the right."),
                (True, 2048, "Accepted, if you read it as implementations count: they cut windows of 2,049 tokens, which give 2,048 inputs with 2,048 targets. The 2,048 tokens alone hold 2,047."),
                (False, 2049, "So many tokens are needed for 2,048 predictions, not the reverse.")),
        _ask("Perplexity 8 on characters means",
             (True, "the model is in doubt as if among 8 equally likely characters.", "e to the mean loss; the same loss is 3 bits per character."),
             (False, "8 bits per character.", "Bits are the logarithm to base 2: log2(8) = 3."),
             (False, "it is wrong 8 times out of 10.", "Perplexity knows nothing of right and wrong, only of the probability given to what came.")),
        _ask("Which statements about a key–value cache hold?",
             (True, "The logits are the same as without.", "Keys and values of the past depend on the past alone, thanks to the causal mask."),
             (True, "Each new token costs a pass over one token only.", "It meets all stored keys, but none of the earlier tokens is computed again."),
             (False, "It lets several tokens of one text be generated at once.", "Token t + 1 does not exist before token t is chosen."),
             (False, "It would work for an encoder's states too.", "There, each new token changes the states of all the others.")),
    ],
    4: [
        _ask("Why is there no causal mask in cross-attention?",
             (True, "The source is complete before the target begins, so no key there is in the future.", "Causality is about the target's own tokens."),
             (False, "Because the encoder has applied it already.", "The encoder has none either."),
             (False, "Because the rectangle is not square.", "A triangle could be cut from a rectangle too; it would only hide useful source tokens."),
             (False, "Because the decoder's self-attention would undo it.", "Masks do not undo each other; this one is not needed.")),
        _ask("What does an encoder–decoder add to the other two wirings?",
             (True, "Cross-attention: queries from the target, keys and values from the source.", "A part with weights and a softmax of its own."),
             (False, "A second kind of feed-forward layer.", "Feed-forward layers are the same in all."),
             (False, "A bigger vocabulary.", "Both towers usually share one.")),
        _ask("The task is solved, every string reversed. What does that say about the attention map?",
             (True, "Nothing certain: content can be moved inside the encoder first.", "That is what the seeds show: solved each time, readable sometimes."),
             (False, "It must be the anti-diagonal.", "Some seeds solve the task with a map that looks elsewhere."),
             (False, "It must be uniform.", "Then every target position would get the same mixture.")),
    ],
    5: [
        _ask("N inputs, M latents. What does reading cost in scores?",
             (True, "M × N.", "Each latent scores each input once."),
             (False, "N × N.", "That is self-attention over the inputs, which the latents avoid."),
             (False, "M × M.", "That is what the latents spend among themselves afterwards.")),
        _ask("The inputs are shuffled and carry no positions. The latents",
             (True, "stay the same.", "A weighted sum over keys does not depend on their order."),
             (False, "come out shuffled.", "The latents are not tied to the inputs' places; there are M of them in any case."),
             (False, "become noise.", "They change not at all, and that is the trouble: order is lost.")),
        _ask("How many outputs does a Perceiver IO give?",
             (True, "As many as there are output queries.", "One query per answer: per label, position or pixel."),
             (False, "As many as inputs.", "Only if you ask one question per input."),
             (False, "As many as latents.", "The latents are inside; they are read by the queries in turn.")),
    ],
    6: [
        _ask("Which is the pre-norm update?",
             (True, "`x + f(norm(x))`", "The norm is inside the branch; the stream itself is never touched."),
             (False, "`norm(x + f(x))`", "Post-norm: the stream passes through every norm."),
             (False, "`x + norm(f(x))`", "A norm behind the branch; with one in front as well it is the sandwich of exercise 6.2.")),
        _ask("What does the identity term of pre-norm guarantee?",
             (True, "The gradient at the end also reaches the beginning directly, as one term of a sum.", "It is not multiplied by the layers between."),
             (False, "Every layer gets a gradient of the same size.", "The other terms of the sum still differ."),
             (False, "The activations keep the same size.", "The stream grows with depth; hence the final norm.")),
        _ask("Why does post-norm usually need warmup?",
             (True, "At initialisation the gradients near the output are large, and a full step there does harm.", "Small first steps let them calm down."),
             (False, "Because its parameters are more numerous.", "Both placements have the same parameters."),
             (False, "Because LayerNorm has to collect statistics first.", "That is batch normalisation; LayerNorm looks at one vector at a time.")),
    ],
    7: [
        _ask("Classifying support tickets: which family first?",
             (True, "Encoder-only.", "The whole ticket is there and nothing is to be written: one pass with both sides in view."),
             (False, "Decoder-only.", "It can, by writing a label; you pay for a larger model and a generation loop."),
             (False, "Encoder–decoder.", "Its decoder would write one token.")),
        _ask("Translating documents: which families are reasonable?",
             (True, "Encoder–decoder.", "A complete source, a target of other length, an alignment between them: what it was built for."),
             (True, "A large decoder-only model.", "Source and target behind one another in one context; scale makes up for the missing second tower."),
             (False, "Encoder-only.", "It can only write by adding masks and reading everything again, for a target of unknown length.")),
        _ask("A chat assistant: which family?",
             (True, "Decoder-only.", "Open-ended writing, a conversation that only grows, one cache."),
             (False, "Encoder-only.", "It can be asked what follows by a mask at the end: one pass a token, and nothing of it can be kept."),
             (False, "Encoder–decoder.", "With every turn the source changes, and the encoder reads all of it again.")),
        _ask("Why does decoder-only dominate assistants?",
             (True, "One objective on all text, one stack, one cache; every parameter serves writing, and tasks can be put into the prompt.", "Simplicity that scales, and one interface from pretraining to tuning."),
             (False, "A causal mask understands text better.", "It sees less; at equal size an encoder reads better."),
             (False, "Encoders cannot be trained on unlabelled text.", "BERT was trained on nothing else.")),
        _ask("When is encoder–decoder still a good choice?",
             (True, "When a complete source is turned into another sequence: translation, summaries, speech to text.", "Also when one source is read once and answered often."),
             (False, "Never.", "Speech recognisers and many translators are encoder–decoders today."),
             (False, "Whenever the text is long.", "Length alone decides nothing here.")),
    ],
}


def quiz(chapter: int) -> Quiz:
    """Return a chapter's quiz, which shows itself as the last value of a cell.

    Args:
        chapter: 1 to 7.
    Raises:
        ValueError: if that chapter has none.
    """
    if chapter not in QUESTIONS:
        raise ValueError(f"chapter={chapter!r} has no quiz; give one of {sorted(QUESTIONS)}.")
    return Quiz(str(chapter), QUESTIONS[chapter])
