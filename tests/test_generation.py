"""generate: the cache and the fixed buffer agree, padding, seeds, stops, and what is refused."""

import math

import pytest
import torch
from small_decoder import V, left_padded, make_model, some_ids
from torch import nn

from d2lmini import Cache, Config, Encoder, generate, pad_batch, prefix_mask


@pytest.mark.parametrize("settings", [dict(greedy=True), dict(seed=3),
                                      dict(seed=3, temperature=0.7, top_k=5, top_p=0.9)])
@pytest.mark.parametrize("lengths", [None, [3, 7, 5]])
def test_with_and_without_cache_generate_the_same(settings, lengths):
    model, ids = make_model(), some_ids(3, 7)
    ways = [generate(model, ids, 9, lengths=lengths, use_cache=c, **settings) for c in (True, False)]
    assert all(torch.equal(a, b) for a, b in zip(*ways, strict=True))
    assert [len(row) for row in ways[0]] == [n + 9 for n in lengths or [7, 7, 7]]


def test_greedy_is_the_argmax_of_a_full_forward_pass_at_every_step():
    model, ids = make_model(), some_ids(2, 3)
    expected = ids
    for _ in range(8):
        expected = torch.cat((expected, model(expected)[:, -1].argmax(-1, keepdim=True)), dim=1)
    assert torch.equal(torch.stack(generate(model, ids, 8, greedy=True)), expected)


def test_a_padded_batch_continues_each_prompt_as_alone():
    model = make_model()
    ids, lengths, _, _ = left_padded()
    for use_cache in (True, False):
        together = generate(model, ids, 9, greedy=True, lengths=lengths, use_cache=use_cache)
        for b, n in enumerate(lengths.tolist()):
            assert torch.equal(together[b], generate(model, ids[b, -n:], 9, greedy=True)[0])


def test_what_stands_in_the_padding_does_not_matter():
    model = make_model()
    ids, lengths, _, _ = left_padded()
    other = torch.where(torch.arange(7) < 7 - lengths[:, None], (ids + 1) % V, ids)
    for a, b in zip(generate(model, ids, 9, seed=0, lengths=lengths),
                    generate(model, other, 9, seed=0, lengths=lengths), strict=True):
        assert torch.equal(a, b)


def test_padding_that_every_prompt_has_takes_no_room():
    model = make_model()
    ids, lengths, _, _ = left_padded()
    wide = torch.cat((torch.zeros(3, 20, dtype=torch.int64), ids), dim=1)  # 27 slots, max_len 23, 7 real tokens
    assert all(map(torch.equal, generate(model, wide, 9, seed=0, lengths=lengths),
                   generate(model, ids, 9, seed=0, lengths=lengths)))


def test_a_prefix_lm_reads_its_prompt_on_both_sides():
    model, ids = make_model(), some_ids(2, 5)
    expected = ids
    for _ in range(8):
        logits = model(expected, prefix_mask(expected.shape[1], 5), causal=False)
        expected = torch.cat((expected, logits[:, -1].argmax(-1, keepdim=True)), dim=1)
    for use_cache in (True, False):
        ours = generate(model, ids, 8, greedy=True, prefix_lm=True, use_cache=use_cache)
        assert torch.equal(torch.stack(ours), expected)
    assert not torch.equal(torch.stack(generate(model, ids, 8, greedy=True)), expected)


def test_padded_prefixes_continue_as_alone():
    model = make_model()
    ids, lengths, _, _ = left_padded()
    for use_cache in (True, False):
        together = generate(model, ids, 9, greedy=True, lengths=lengths, prefix_lm=True, use_cache=use_cache)
        for b, n in enumerate(lengths.tolist()):
            assert torch.equal(together[b], generate(model, ids[b, -n:], 9, greedy=True, prefix_lm=True)[0])


def test_any_causal_module_generates_without_a_cache():
    class Plain(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.config, self.inner = model.config, model

        def forward(self, ids):
            return self.inner(ids)

    model, ids = make_model(), some_ids(2, 3)
    ours = generate(Plain(model), ids, 8, greedy=True, use_cache=False)
    assert all(map(torch.equal, ours, generate(model, ids, 8, greedy=True)))


def test_the_same_seed_gives_the_same_text_and_others_differ():
    model, ids = make_model(), some_ids(1, 3)
    texts = [generate(model, ids, 15, seed=s)[0].tolist() for s in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
    assert generate(model, ids, 15)[0].tolist() != generate(model, ids, 15)[0].tolist()
    drawing = torch.Generator().manual_seed(0)
    assert generate(model, ids, 15, generator=drawing)[0].tolist() == texts[0]
    assert generate(model, ids, 15, generator=drawing)[0].tolist() != texts[0]  # it goes on where it stood


def test_neither_the_global_random_state_nor_the_models_mode_changes():
    model, ids = make_model(dropout=0.5).train(), some_ids(1, 3)
    state = torch.random.get_rng_state()
    first = generate(model, ids, 9, seed=0)
    assert model.training and all(m.training for m in model.modules())
    torch.manual_seed(99)
    assert torch.equal(generate(model, ids, 9, seed=0)[0], first[0])  # nor is it read; dropout was off
    torch.random.set_rng_state(state)
    generate(model, ids, 9)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_stop_ids_end_each_row_by_itself_and_are_kept():
    model, ids = make_model(), some_ids(4, 3)
    free = generate(model, ids, 20, seed=0)
    stopped = generate(model, ids, 20, seed=0, stop_ids=[2, 5])
    for a, b in zip(free, stopped, strict=True):
        new = a[3:].tolist()
        n = min([i for i, token in enumerate(new) if token in (2, 5)] + [19]) + 1
        assert b.tolist() == a[:3 + n].tolist()
    assert len({len(row) for row in stopped}) > 1


def test_a_stop_function_sees_the_row_so_far_without_padding():
    model = make_model()
    ids, lengths, _, _ = left_padded()
    seen = []

    def stop(row):
        seen.append(row.tolist())
        return len(row) == 8

    rows = generate(model, ids, 9, seed=0, lengths=lengths, stop=stop)
    assert [len(r) for r in rows] == [8, 8, 8]
    assert all(r.tolist() in seen for r in rows) and len(seen) == 5 + 1 + 3  # no call after a row has ended


def test_generation_may_fill_the_model_to_its_last_position():
    model = make_model()
    assert len(generate(model, some_ids(1, 3), 20, seed=0)[0]) == 23


@pytest.mark.parametrize("arguments, message", [
    (dict(prompt_ids=torch.zeros(1, 0, dtype=torch.int64)), "prompt_ids is empty; give at least one token"),
    (dict(prompt_ids=torch.zeros(0, dtype=torch.int64)), "prompt_ids is empty"),
    (dict(prompt_ids=torch.zeros(1, 24, dtype=torch.int64)), "prompt_ids has 24 tokens, more than max_len=23"),
    (dict(max_new_tokens=21), "has 3 tokens and max_new_tokens=21, together more than max_len=23 .* at most 20 new"),
    (dict(max_new_tokens=0), "max_new_tokens=0"),
    (dict(prompt_ids=torch.tensor([[1, 13]])), r"token id 13, outside the vocabulary \[0, 13\)"),
    (dict(prompt_ids=torch.tensor([[1.0]])), "prompt_ids is torch.float32"),
    (dict(prompt_ids="abc"), "prompt_ids is str"),
    (dict(temperature=0), "temperature=0 .*use greedy=True"),
    (dict(temperature=-1.0), "temperature=-1.0 .*use greedy=True"),
    (dict(temperature=math.inf), "temperature=inf"),
    (dict(temperature=math.nan), "temperature=nan"),
    (dict(top_k=14), "top_k=14 is out of range; .* at most 13"),
    (dict(top_k=0), "top_k=0"),
    (dict(top_k=2.5), "top_k=2.5 is not an integer"),
    (dict(top_p=0.0), r"top_p=0.0 is outside \(0, 1\]"),
    (dict(top_p=1.5), r"top_p=1.5 is outside \(0, 1\]"),
    (dict(greedy=True, temperature=0.5), "greedy=True with temperature=0.5.*contradictory"),
    (dict(greedy=True, top_k=3), "contradictory"),
    (dict(seed=1, generator=torch.Generator()), "seed=1 and generator are both given"),
    (dict(seed=-1), "seed=-1"),
    (dict(generator=7), "generator=7"),
    (dict(stop_ids=[13]), "stop_ids=13"),
    (dict(lengths=[3, 3]), r"lengths=\[3, 3\] do not fit 1 prompts"),
    (dict(lengths=[0]), r"lengths=\[0\]"),
    (dict(lengths=[4]), r"lengths=\[4\] do not fit 1 prompts padded to 3 tokens"),
])
def test_bad_input_is_refused_with_the_argument_and_the_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate(make_model(), **(dict(prompt_ids=some_ids(1, 3), max_new_tokens=4) | arguments))


def test_an_encoder_or_a_bare_module_cannot_generate():
    with pytest.raises(ValueError, match="Encoder, which sees both sides"):
        generate(Encoder(Config(vocab_size=V, max_len=23)), some_ids(1, 3), 4)
    with pytest.raises(ValueError, match="Linear without config"):
        generate(nn.Linear(2, 2), some_ids(1, 3), 4)


def test_a_batch_padded_on_the_left_by_the_package_continues_each_prompt_as_alone():
    model = make_model()
    prompts = [torch.tensor([1, 2, 3, 4, 5]), torch.tensor([6, 7])]
    ids, lengths = pad_batch(prompts, 0, left=True)
    together = generate(model, ids, 4, greedy=True, lengths=lengths)
    for prompt, row in zip(prompts, together):
        assert torch.equal(row, generate(model, prompt, 4, greedy=True)[0])


def test_a_cache_refuses_a_model_with_fewer_layers_and_stays_usable():
    model, ids, cache = make_model(), torch.tensor([[1, 2, 3, 4]]), Cache(10)
    with torch.no_grad():
        model(ids[:, :3], cache=cache)
        with pytest.raises(ValueError, match="cache holds layer 'decoder.2.self', which this model did not fill"):
            make_model(num_layers=2)(ids[:, 3:], cache=cache)
        torch.testing.assert_close(model(ids[:, 3:], cache=cache), model(ids)[:, 3:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("wrong, match", [
    (dict(lengths="abc"), "lengths='abc'"), (dict(stop_ids=3), "stop_ids=3"), (dict(stop_ids=[True]), "stop_ids=True"),
    (dict(stop=3), "stop=3"), (dict(greedy="no"), "greedy='no'"), (dict(prefix_lm="no"), "prefix_lm='no'"),
    (dict(use_cache=None), "use_cache=None"), (dict(greedy=True, seed=-5), "seed=-5"), (dict(seed=2**64), "seed="),
])
def test_generate_names_the_wrong_argument(wrong, match):
    with pytest.raises(ValueError, match=match):
        generate(make_model(), torch.tensor([1, 2]), 2, **wrong)


def test_a_stop_function_cannot_write_into_the_text():
    model, prompt = make_model(), torch.tensor([1, 2, 3])
    spoiled = generate(model, prompt, 3, greedy=True, stop=lambda row: bool(row.fill_(0).sum()))[0]
    assert torch.equal(spoiled, generate(model, prompt, 3, greedy=True)[0])
    assert generate(model, prompt.int(), 1, greedy=True)[0].dtype == torch.int64
