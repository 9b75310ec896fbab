"""Mask a character and the generation explorer in a browser, and the helpers that ask a model."""

import pytest
import torch
from conftest import ROOT
from figure_samples import LOGITS, generation_explorer, mask_character, move, words

from d2lmini import Config, Decoder, Encoder, Vocabulary, figures, load_corpus, next_token_distribution, seed_everything


def test_begins_at_the_first_place_that_the_model_gets_wrong(show):
    page = show(mask_character())
    assert words(page).startswith("Character 3 of 4 is hidden: ti▢␣. The first guess is “t” with 50%; "
                                  "what stood there, “d”, is guess 2 with 25%.")
    assert "2 of 4 are guessed right" in page.locator(".hint").inner_text()
    assert page.locator(".place.wrong").count() == 2


def test_each_character_can_be_clicked(show):
    page = show(mask_character())
    page.locator(".place").nth(0).click()
    assert "The first guess is “t” with 90%; that is right." in words(page)
    assert page.locator(".guess .token").all_inner_texts() == ["t ✓", "x"]
    page.locator(".place").nth(3).click()
    assert "“y” with 0.4%; what stood there, “␣”, is not among the first 2." in words(page)
    assert page.locator(".guess .numeral").all_inner_texts() == ["0.4%", "0%"]


@pytest.mark.parametrize("width", [800, 360])
def test_mask_character_by_keyboard_alone_and_nothing_moves(show, width):
    page = show(figures.mask_character("the tide clock " * 4, [[("e", 0.5), ("x", 0.2)]] * 60), width=width)
    height = page.locator(".d2l-figure").bounding_box()["height"]
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert "Character 1 of 60" in words(page)
    page.keyboard.press("ArrowLeft")
    assert "Character 1 of 60" in words(page)
    page.keyboard.press("ArrowRight")
    assert "Character 2 of 60 is hidden: t▢e␣tide␣c." in words(page)
    page.keyboard.press("ArrowDown")  # one line down, at the same place
    tops = page.evaluate("[1, +document.querySelector('[aria-selected=true]').dataset.i].map(i => { const r = document.querySelector(`[data-i='${i}']`)"
                         ".getBoundingClientRect(); return [r.left, r.top]; })")
    assert abs(tops[0][0] - tops[1][0]) < 12 and tops[1][1] > tops[0][1]
    page.keyboard.press("ArrowUp")
    assert "Character 2 of 60" in words(page)
    page.keyboard.press("End")
    assert "Character 60 of 60" in words(page)
    assert page.locator(":focus").get_attribute("role") == "option"
    assert page.locator(".d2l-figure").bounding_box()["height"] == height


def test_predict_each_hides_one_place_at_a_time():
    vocab = Vocabulary("abc", specials=("<mask>",))
    seed_everything(0)
    model = Encoder(Config(len(vocab), max_len=7, d_model=8, num_heads=2, num_layers=1)).train()
    found = figures.predict_each(model, vocab, "abcab", top=2)
    assert model.training and [len(row) for row in found] == [2] * 5
    ids = vocab.encode("abcab")[None]
    ids[0, 3] = vocab.ids["<mask>"]
    with torch.no_grad():
        p = model.eval()(ids).softmax(-1)[0, 3]
    assert [vocab.ids[t] for t, _ in found[3]] == p.topk(2).indices.tolist()
    assert [x for _, x in found[3]] == pytest.approx(p.topk(2).values.tolist(), abs=1e-5)
    figures.mask_character("abcab", found)


def test_the_helpers_name_a_wrong_call():
    vocab, model = Vocabulary("abc"), Decoder(Config(4, max_len=7, d_model=8, num_heads=2, num_layers=1))
    with pytest.raises(ValueError, match="<mask>.*specials"):
        figures.predict_each(model, vocab, "abc")
    with pytest.raises(ValueError, match="predictions has 1 entries for 3 tokens"):
        figures.mask_character("abc", [[("a", 1.0)]])
    with pytest.raises(ValueError, match="probability=1.5"):
        figures.mask_character("ab", [[("a", 1.5)]] * 2)
    with pytest.raises(ValueError, match="length of prompt=0"):
        figures.prefix_tree(model, vocab, "")
    with pytest.raises(ValueError, match="prefix_tree"):
        figures.generation_explorer({"prompt": "a", "tokens": ["a", "b"], "nodes": {}})
    with pytest.raises(ValueError, match="3 logits for 2 tokens"):
        figures.generation_explorer({"prompt": "a", "tokens": ["a", "b"], "nodes": {(): [1, 2, 3]}})


def test_prefix_tree_opens_likely_continuations_first():
    vocab = Vocabulary("ab", specials=())  # and <unk>

    class Fixed(torch.nn.Module):
        """After anything: a with 0.6, b with 0.3, <unk> with 0.1."""

        def __init__(self):
            super().__init__()
            self.p = torch.nn.Parameter(torch.tensor([0.6, 0.3, 0.1]).log())

        def forward(self, ids):
            return self.p.expand(*ids.shape, 3)

    tree = figures.prefix_tree(Fixed(), vocab, "ba", size=4, depth=2)
    # surprise less 0.4 a token: a 0.11, b 0.80, <unk> 1.90; aa 0.22, ab 0.91; aaa would be longer than asked for
    assert list(tree["nodes"]) == [(), (0,), (0, 0), (1,)]
    assert list(figures.prefix_tree(Fixed(), vocab, "ba", size=4)["nodes"]) == [(), (0,), (0, 0), (0, 0, 0)]
    assert list(figures.prefix_tree(Fixed(), vocab, "ba", size=9, depth=0)["nodes"]) == [()]
    assert tree["nodes"][()] == [0.0, -0.69, -1.79] and tree["tokens"] == ["a", "b", "<unk>"]


def test_the_book_s_tree_fits_into_a_figure():
    corpus = load_corpus("tide_clock", form="raw", specials=())
    seed_everything(0)
    model = Decoder(Config(len(corpus.vocab), max_len=64, d_model=8, num_heads=2, num_layers=1))
    figure = figures.generation_explorer(figures.prefix_tree(model, corpus, "The tide "))
    assert len(figure._repr_html_().encode()) <= 60_000


SETTINGS = [(t, k, p) for t in (0.1, 0.7, 1.0, 2.0) for k in (None, 1, 2, 3, 5) for p in (None, 0.05, 0.5, 0.75, 0.9, 1.0)]


@pytest.mark.parametrize("logits", [*LOGITS.values(), [0.0, -0.69, -0.69, -0.69, -700.0]])
def test_the_page_s_rules_are_the_package_s(show, logits):
    page = show()
    folder = ROOT / "d2lmini" / "figures"
    page.add_script_tag(content="".join((folder / f).read_text(encoding="utf-8") for f in ("figure.js", "generation_explorer.js")))
    theirs = page.evaluate("([logits, all]) => all.map(([t, k, p]) => nextTokenDistribution(logits, t, k, p))", [logits, SETTINGS])
    for (t, k, p), row in zip(SETTINGS, theirs):
        ours = next_token_distribution(torch.tensor(logits, dtype=torch.float64), t, k, p).tolist()
        assert row == pytest.approx(ours, abs=1e-12), (t, k, p)


def shares(page):
    return page.evaluate("[...document.querySelectorAll('button.guess')].map(b => +b.dataset.p)")


def expect(path, **how):
    p = next_token_distribution(torch.tensor(LOGITS[path], dtype=torch.float64), **how)
    order = torch.tensor(LOGITS[path]).argsort(descending=True, stable=True)
    return pytest.approx(p[order].tolist(), abs=1e-9)


def test_generation_explorer_begins_with_the_distribution_as_trained(show):
    page = show(generation_explorer())
    assert shares(page) == expect(())
    assert words(page).startswith("5 of 5 tokens can follow; the most likely is “a” with 50%. Entropy 1.21 nats")
    assert page.locator(".written").inner_text() == "The "
    assert page.locator("button.guess .token").all_inner_texts() == ["a ›", "b ›", "c", "␣", "⏎"]


def test_each_slider_acts_as_in_the_package(show):
    page = show(generation_explorer())
    temperature, top_k, top_p = (page.get_by_label(name, exact=True) for name in ("Temperature", "Top-k", "Top-p"))
    for t in (0.1, 2.0, 0.5):
        move(temperature, t)
        assert shares(page) == expect((), temperature=t)
    for k in (1, 5, 3):
        move(top_k, k)
        assert shares(page) == expect((), temperature=0.5, top_k=k)
    assert "3 of 5 tokens can follow" in words(page)
    move(top_p, 0.75)
    assert shares(page) == expect((), temperature=0.5, top_k=3, top_p=0.75)
    assert page.locator("button.guess .numeral").nth(4).inner_text() == "cut"
    move(top_p, 0.05)
    assert "1 of 5 tokens can follow; the most likely is “a” with 100%. Entropy 0.00 nats" in words(page)
    page.get_by_role("button", name="Reset").click()
    assert shares(page) == expect(()) and top_k.get_attribute("aria-valuetext") == "all"


def test_the_prefix_grows_on_a_click_and_shrinks_again(show):
    page = show(generation_explorer())
    page.locator("button.guess").nth(0).click()
    assert page.locator(".written").inner_text() == "The a" and shares(page) == expect((0,))
    page.get_by_role("button", name="b, ").click()
    assert shares(page) == expect((0, 1)) and "Written so far: “ab”." in words(page)
    page.locator("button.guess").nth(0).dispatch_event("click")  # not stored: nothing happens
    assert page.locator(".written").inner_text() == "The ab"
    back = page.get_by_role("button", name="Back")
    back.click()
    back.click()
    assert shares(page) == expect(()) and back.get_attribute("aria-disabled") == "true"


DRAW = """count => Array.from({length: count}, () => {
    const [back, draw] = document.querySelectorAll('.below button');
    draw.click();
    const drawn = document.querySelector('.grown').textContent;
    back.click();
    return drawn;
})"""


def test_drawing_follows_the_distribution(show):
    page = show(generation_explorer())
    drawn = page.evaluate(DRAW, 2000)
    for letter, p in (("a", 0.5), ("b", 0.25), ("c", 0.125), (" ", 0.125)):
        assert abs(drawn.count(letter) / 2000 - p) < 0.04, letter
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate(DRAW, 20) == drawn[:20], "the same for every reader"
    move(page.get_by_label("Top-k", exact=True), 2)
    assert set(page.evaluate(DRAW, 100)) == {"a", "b"}


def test_the_end_of_the_tree_is_said_in_words(show):
    page = show(generation_explorer())
    draw = page.get_by_role("button", name="Draw the next one")
    for _ in range(4):
        if draw.get_attribute("aria-disabled") == "false":
            draw.click()
    assert "End of what is stored." in words(page) and draw.get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="Back").click()
    assert "tokens can follow" in words(page)


def test_generation_explorer_by_keyboard_alone(show):
    page = show(generation_explorer(), width=360)
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert shares(page) == expect((), temperature=0.1)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert shares(page) == expect((), temperature=0.1, top_k=4)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert page.locator(":focus").get_attribute("aria-label").startswith("b, ")
    page.keyboard.press("Enter")
    assert "Written so far: “b”." in words(page) and shares(page) == expect((1,), temperature=0.1, top_k=4)
    assert page.locator(":focus").count() == 1, "the focus is not lost when the rows change"
    page.keyboard.press("Tab")
    while page.locator(":focus").inner_text() != "Back":
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert "Choose a character" in words(page)
