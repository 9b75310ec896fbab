"""The four wirings: what each may see of a question, what passes through it, and that they are of equal size."""

import pytest
import torch

from d2lmini import Config, Decoder, Encoder, EncoderDecoder, pair_batch, seq2seq_loss
from d2lmini.wirings import FORMS, WIRINGS, Contestant, Questions, answer_loss, input_tokens, make_contestant

V, MASK, GO = 13, 11, 12
LETTERS = 11  # ids below the special ones
SIZES = {"tag": (7, 7), "rewrite": (7, 5), "continue": (7, 5)}


def contestant(wiring, **how):
    torch.manual_seed(3)
    player = make_contestant(wiring, V, MASK, GO, source=9, answer=7, d_model=16, num_heads=2, **how)
    with torch.no_grad():  # far from its symmetric start, so that what reaches an output is felt there
        for p in player.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return player.eval()


def questions(form, rows=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    s, t = SIZES[form]
    return Questions(torch.randint(LETTERS, (rows, s), generator=g), torch.randint(LETTERS, (rows, t), generator=g), form)


def changed(ids, first):
    """The same ids with every token from ``first`` on another one."""
    ids = ids.clone()
    ids[:, first:] = (ids[:, first:] + 1) % LETTERS
    return ids


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wiring", WIRINGS)
def test_no_answer_reaches_its_own_output_or_an_earlier_one(wiring, form):
    player, q = contestant(wiring), questions(form)
    with torch.no_grad():
        before = player(q)
        for t in range(q.answer.shape[1]):
            after = player(Questions(q.source, changed(q.answer, t), form))
            assert torch.equal(before[:, :t + 1], after[:, :t + 1])
            if reads_its_answer(wiring, form) and t + 1 < q.answer.shape[1]:
                assert not torch.allclose(before[:, t + 1], after[:, t + 1], atol=1e-3), "the answer so far is not read"
        if not reads_its_answer(wiring, form):
            assert torch.equal(before, player(Questions(q.source, changed(q.answer, 0), form)))


def reads_its_answer(wiring, form):
    return form == "continue" or wiring in ("prefix-LM", "encoder-decoder") or (wiring, form) == ("decoder", "rewrite")


@pytest.mark.parametrize("wiring", WIRINGS)
def test_who_sees_the_end_of_the_source_when_it_tags_the_beginning(wiring):
    player, q = contestant(wiring), questions("tag")
    with torch.no_grad():
        before, after = player(q), player(Questions(changed(q.source, 6), q.answer, "tag"))
    if wiring == "decoder":  # it answers as it reads
        assert torch.equal(before[:, :6], after[:, :6]) and not torch.equal(before[:, 6], after[:, 6])
    else:
        assert (before - after).abs().amax(dim=(0, 2)).min() > 1e-3


@pytest.mark.parametrize("form", ("rewrite", "continue"))
@pytest.mark.parametrize("wiring", WIRINGS)
def test_everybody_sees_all_of_the_source_before_it_answers(wiring, form):
    player, q = contestant(wiring), questions(form)
    with torch.no_grad():
        for place in range(q.source.shape[1]):
            other = q.source.clone()
            other[:, place] = (other[:, place] + 1) % LETTERS
            moved = (player(q) - player(Questions(other, q.answer, form))).abs().amax(dim=(0, 2))
            assert moved.min() > 1e-5, f"source token {place} does not reach every answer"


def test_inside_the_source_only_the_decoder_is_blind_to_what_follows():
    trace, q = {}, questions("rewrite")
    for wiring in ("decoder", "prefix-LM"):
        player = contestant(wiring)
        states = player.model.states
        player.model.states = lambda ids, states=states, **how: states(ids, trace=trace, **how)
        player(q)
        weights = trace["decoder.0.self"][0, 0]
        size = q.source.shape[1] + 1
        sees_ahead = (weights[:size, :size].triu(1) > 0).any().item()
        assert sees_ahead == (wiring == "prefix-LM")
        assert (weights.triu(1)[size:] == 0).all() and (weights[:size, size:] == 0).all()


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("form", ("tag", "rewrite"))
def test_answers_are_the_likeliest_given_what_was_written(wiring, form):
    player, q = contestant(wiring), questions(form, rows=5)
    given = player.answer(q)
    assert given.shape == q.answer.shape
    with torch.no_grad():  # with its own answer in the place of the right one, every output must agree with it
        assert torch.equal(player(Questions(q.source, given, form)).argmax(-1), given)
    assert torch.equal(given, player.answer(Questions(q.source, changed(q.answer, 0), form)))


def test_the_continued_text_is_scored_as_the_decoder_of_chapter_3_scores_it():
    player, q = contestant("decoder"), questions("continue")
    text = torch.cat((q.source, q.answer), dim=1)
    whole = torch.nn.functional.cross_entropy(player.model(text[:, :-1]).transpose(1, 2), text[:, 1:], reduction="none")
    torch.testing.assert_close(answer_loss(player, q).view(3, 5), whole[:, 6:])


def test_the_rewritten_text_is_scored_as_the_pairs_of_chapter_4_are():
    player, q = contestant("encoder-decoder"), questions("rewrite")
    torch.testing.assert_close(answer_loss(player, q), seq2seq_loss(player.model, pair_batch(
        list(q.source), list(q.answer), GO)))


def test_a_prefix_lm_that_tags_as_it_reads_would_be_an_encoder():
    from d2lmini import prefix_mask

    prefix, encoder, q = contestant("prefix-LM"), contestant("encoder"), questions("tag")
    encoder.model.load_state_dict(prefix.model.state_dict())
    everything = prefix.model(q.source, prefix_mask(7, 7), causal=False)
    torch.testing.assert_close(everything, encoder(q))


def test_tokens_that_pass_through_are_those_that_the_models_read():
    for wiring in WIRINGS:
        for form in FORMS:
            player, q, read = contestant(wiring), questions(form, rows=1), []
            for module in player.modules():
                if isinstance(module, torch.nn.Embedding):
                    module.register_forward_hook(lambda m, inputs, output: read.append(inputs[0].numel()))
            player(q)
            assert sum(read) == input_tokens(wiring, form, *SIZES[form]), (wiring, form)
    assert input_tokens("encoder", "continue", 7, 1) == 8
    assert input_tokens("decoder", "tag", 64, 64) == 64 and input_tokens("prefix-LM", "tag", 64, 64) == 128


@pytest.mark.parametrize("blocks, d_model", [(2, 128), (4, 64), (4, 96)])
def test_the_four_have_the_same_number_of_parameters(blocks, d_model):
    counts = [sum(p.numel() for p in make_contestant(w, 32, 28, 29, source=64, answer=32, d_model=d_model, blocks=blocks).parameters())
              for w in WIRINGS]
    assert counts[0] == counts[1] == counts[2]
    assert max(counts) / min(counts) < 1.01


def test_nonsense_is_refused():
    ids = torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="form='translate'"):
        Questions(ids, ids, "translate")
    with pytest.raises(ValueError, match="3 tokens and answer 2"):
        Questions(ids, ids[:, :2], "tag")
    with pytest.raises(ValueError, match=r"source has shape \(2, 3\) and answer \(1, 3\)"):
        Questions(ids, ids[:1], "rewrite")
    config = Config(5, 8, d_model=8, num_heads=2, num_layers=1)
    with pytest.raises(ValueError, match="model is Encoder; the wiring 'prefix-LM' needs Decoder"):
        Contestant("prefix-LM", Encoder(config), 3, 4)
    with pytest.raises(ValueError, match="model is Decoder; the wiring 'encoder-decoder'"):
        Contestant("encoder-decoder", Decoder(config), 3, 4)
    with pytest.raises(ValueError, match="wiring='rnn'"):
        make_contestant("rnn", V, MASK, GO, source=3, answer=3)
    with pytest.raises(ValueError, match="blocks=3 is odd"):
        make_contestant("encoder", V, MASK, GO, source=3, answer=3, blocks=3)
    with pytest.raises(ValueError, match="form='continue'"):
        Contestant("encoder-decoder", EncoderDecoder(config), 3, 4).answer(Questions(ids, ids, "continue"))
