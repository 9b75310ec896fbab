"""Text: letters, vocabularies, the shipped corpus and its statistics, the split."""

import dataclasses

import numpy as np
import pytest
import torch

from d2lmini import Vocabulary, letters, load_corpus, load_text, split_text
from d2lmini.text import ALPHABET, ngram_entropy


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


def test_letters_by_hand():
    assert letters("Don't PANIC -- 42 times!\n\nÉté") == "don t panic times t "
    assert letters("") == "" and letters("123") == " "
    assert letters(letters("A  b\tc")) == letters("A  b\tc") == "a b c"


def test_the_novella_is_the_one_its_readme_describes():
    text = load_text("tide_clock")
    assert len(text) == 203_084 and text.isascii() and not any(c.isdigit() for c in text)
    assert len(letters(text)) == 195_755
    assert load_text() == text


@pytest.mark.parametrize("n, nats", [(1, 2.778), (2, 2.197), (3, 1.713), (4, 1.331)])
def test_character_entropies_of_the_novella(n, nats):
    ids = Vocabulary().encode(letters(load_text()))
    assert ngram_entropy(ids, n) == pytest.approx(nats, abs=0.0005)


def test_ngram_entropy_by_hand():
    ids = torch.tensor([0, 1, 0, 1, 0, 2])  # counts 3, 2, 1; after 0 come 1, 1, 2; after 1 comes 0
    assert ngram_entropy(ids, 1) == pytest.approx(-(3 / 6 * np.log(3 / 6) + 2 / 6 * np.log(2 / 6) + np.log(1 / 6) / 6))
    assert ngram_entropy(ids, 2) == pytest.approx(-(2 / 5 * np.log(2 / 3) + 1 / 5 * np.log(1 / 3)))
    assert ngram_entropy(torch.zeros(7, dtype=torch.int64), 3) == 0
    for n in (0, 7):
        with pytest.raises(ValueError, match=f"n={n}"):
            ngram_entropy(ids, n)
    with pytest.raises(ValueError, match=r"ids is torch\.float32"):
        ngram_entropy(torch.zeros(7), 1)


def test_vocabulary_by_hand():
    vocab = Vocabulary("abc", ("<mask>", "<go>"))
    assert vocab.tokens == ["a", "b", "c", "<unk>", "<mask>", "<go>"] and len(vocab) == 6
    assert vocab.encode("cabx").tolist() == [2, 0, 1, 3] and vocab.encode("cab").dtype == torch.int64
    assert vocab.decode([2, 0, 3, 4]) == "ca<unk><mask>"
    assert vocab.ids["<go>"] == 5 and vocab.unk_id == 3
    assert vocab.encode("").shape == (0,) and vocab.decode([]) == ""


def test_encode_and_decode_undo_each_other():
    vocab, text = Vocabulary(), letters(load_text())[:500]
    ids = vocab.encode(text)
    for kind in (ids, ids.int(), ids.tolist(), tuple(ids.tolist()), ids.numpy()):
        assert vocab.decode(kind) == text
    assert len(Vocabulary()) == 28 and len(Vocabulary(specials=("<mask>",))) == 29


def test_train_and_valid_are_the_text_cut_once(corpus):
    train, valid = corpus.vocab.decode(corpus.train), corpus.vocab.decode(corpus.valid)
    before, after = split_text(load_text())
    assert before + after == load_text() and after.startswith("Chapter")
    assert (letters(before), letters(after)) == (train, valid)
    assert len(valid) >= 15_000 and len(valid) >= 0.1 * len(train + valid)
    assert len(corpus.vocab) == 29 and corpus.vocab.tokens[-2:] == ["<unk>", "<mask>"]
    assert corpus.train.dtype == corpus.valid.dtype == torch.int64
    assert corpus.train.max() < 27 and corpus.valid.max() < 27  # letters and spaces alone


def test_no_window_is_in_both_parts(corpus):
    def all_windows(ids):
        text = corpus.vocab.decode(ids)
        return {text[i:i + 64] for i in range(len(text) - 63)}
    assert not all_windows(corpus.train) & all_windows(corpus.valid)


def test_raw_text_keeps_every_character():
    corpus = load_corpus(form="raw")
    before, after = split_text(load_text())
    known = set(before)
    assert corpus.vocab.decode(corpus.train) == before
    assert corpus.vocab.decode(corpus.valid) == "".join(c if c in known else "<unk>" for c in after)
    assert corpus.vocab.tokens[:-2] == sorted(known)


def test_a_character_only_the_held_out_part_has_becomes_unk(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("abcabcab\n" * 10 + "Zebra\n", encoding="utf-8")
    corpus = load_corpus(path, form="raw", held_out=6 / 96)
    assert corpus.vocab.decode(corpus.valid) == "<unk><unk>b<unk>a\n"
    assert corpus.name == str(path)


def test_any_text_file_will_do(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("Été in Paris.\n" * 50, encoding="utf-8")
    assert load_text(path) == load_text(str(path)) == "Été in Paris.\n" * 50
    corpus = load_corpus(path, specials=())
    assert corpus.vocab.tokens == [*ALPHABET, "<unk>"] and len(corpus.train) > len(corpus.valid) > 0


def test_split_before_the_last_heading_that_leaves_enough():
    chapters = [f"Chapter {n}\n" + "words and more words\n" * 10 for n in ("One", "Two", "Three", "Four", "Five")]
    text = "".join(chapters)
    assert split_text(text, 0.1) == ("".join(chapters[:4]), chapters[4])
    assert split_text(text, 0.3) == ("".join(chapters[:3]), "".join(chapters[3:]))


def test_split_without_headings():
    assert split_text("abcdefghij", 0.3) == ("abcdefg", "hij")
    lines = "12345\n" * 10
    train, valid = split_text(lines, 0.25)
    assert train + valid == lines and train.endswith("\n") and len(valid) <= 0.25 * len(lines)
    for held_out in (1e-9, 0.5, 1 - 1e-9):  # never an empty part
        assert all(split_text("ab", held_out))


def test_corpus_is_frozen(corpus):
    with pytest.raises(dataclasses.FrozenInstanceError):
        corpus.name = "other"


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("call, message", [
    (lambda d: load_text("time_machine"), r"name='time_machine' is neither a corpus \(tide_clock, timemachine\) nor a file"),
    (lambda d: load_text(d), "is neither a corpus .* nor a file"),
    (lambda d: load_text(None), "name=None is neither"),
    (lambda d: load_text(3), "name=3 is neither"),
    (lambda d: load_text("Once upon a time " * 999), r"name='Once upon .*\.\.\.' is neither"),  # the text, not its path
    (lambda d: load_text("~nobody-of-this-name/x"), "name='~nobody-of-this-name/x' is neither"),
    (lambda d: load_text(write(d / "x", b"\xff\xfe")), "is not UTF-8 text"),
    (lambda d: load_text(write(d / "x", b" \n")), "is an empty file"),
    (lambda d: load_corpus(write(d / "x", b"1234567890")), "has too little text in form='letters'"),
    (lambda d: load_corpus(write(d / "x", b"a")), "text has 1 characters; give at least 2"),
    (lambda d: load_corpus(form="words"), "form='words' is unknown; choose one of 'letters', 'raw'"),
    (lambda d: load_corpus(held_out=0), r"held_out=0 is outside \(0, 1\)"),
    (lambda d: load_corpus(held_out=1.0), r"held_out=1.0 is outside \(0, 1\)"),
    (lambda d: load_corpus(held_out="a"), "held_out='a' is not a number"),
    (lambda d: load_corpus(specials="<mask>"), "specials='<mask>' is not a tuple of tokens"),
    (lambda d: split_text(""), "text has 0 characters"),
    (lambda d: split_text(["a", "b"]), "text is list; give a str"),
    (lambda d: letters(None), "text is NoneType; give a str"),
    (lambda d: Vocabulary(""), "characters='' are not one or more single characters"),
    (lambda d: Vocabulary(["ab"]), r"characters=\['ab'\] are not one or more single"),
    (lambda d: Vocabulary({"a"}), r"characters=\{'a'\} are not"),  # a set has no order
    (lambda d: Vocabulary([1, 2]), r"characters=\[1, 2\] are not"),
    (lambda d: Vocabulary(None), "characters=None are not"),
    (lambda d: Vocabulary("aba"), "characters='aba' .* repeat a token"),
    (lambda d: Vocabulary("ab", ("<unk>",)), r"specials=\('<unk>',\) repeat a token"),
    (lambda d: Vocabulary("ab", ("",)), r"specials=\('',\) is not a tuple of tokens"),
    (lambda d: Vocabulary("ab", None), "specials=None is not a tuple"),
    (lambda d: Vocabulary().encode(b"ab"), "text is bytes; give a str"),
    (lambda d: Vocabulary().decode([28]), "id=28 is out of range; .*at most 27"),
    (lambda d: Vocabulary().decode([-1]), "id=-1 is out of range"),
    (lambda d: Vocabulary().decode(["a"]), "id='a' is not an integer"),
    (lambda d: Vocabulary().decode(3), "ids=3 is not a list of token ids"),
    (lambda d: Vocabulary().decode(torch.tensor(3)), r"ids has shape \(\)"),
    (lambda d: Vocabulary().decode(torch.tensor([[1]])), r"ids has shape \(1, 1\)"),
    (lambda d: Vocabulary().decode(torch.tensor([1.0])), r"ids is torch\.float32"),
])
def test_bad_input(call, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)
