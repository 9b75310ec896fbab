"""Corpora and character vocabularies."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import urllib.request
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch

from .checks import check_choice, check_ids, check_int, check_number, check_text

CORPORA = ("tide_clock", "timemachine")
TIMEMACHINE_URL = "http://d2l-data.s3-accelerate.amazonaws.com/timemachine.txt"
# Of the letters alone, so that a copy with other line ends or blank lines still counts as the same text.
TIMEMACHINE_SHA256 = "2332beb8e60d589e4ffe93af561b52c21b74b820549f38fec59577a24b6fd94a"
ALPHABET = "abcdefghijklmnopqrstuvwxyz "


def letters(text: str) -> str:
    """Reduce text to lower-case a-z, every other run of characters becoming one space."""
    return re.sub("[^a-z]+", " ", check_text("text", text).lower())


def data_folders() -> list[Path]:
    """Folders searched for a corpus that the package does not ship: ``D2LMINI_DATA``, then the cache."""
    named = os.environ.get("D2LMINI_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "d2lmini"
    return [Path(named), cache] if named else [cache]


def load_text(name: str | os.PathLike = "tide_clock") -> str:
    """Return the text of a corpus, by name or from a path.

    Args:
        name: "tide_clock" (the novella that the package ships), "timemachine" (looked for in the folder that
            the environment variable D2LMINI_DATA names, then in the cache, else downloaded and checked), or
            the path of a UTF-8 text file of yours.
    Returns:
        The text as it stands in the file.
    Raises:
        ValueError: if there is neither such a corpus nor such a file, the file cannot be read, is not UTF-8 text or
            is empty, or a checksum does not match.
        ConnectionError: if a download is needed and fails; the message says what to do instead.
    """
    if name == "tide_clock":
        return (resources.files(__package__) / "data_files" / "tide_clock.txt").read_text(encoding="utf-8")
    if name == "timemachine":
        return _load_timemachine()
    shown = repr(name if len(str(name)) < 80 else f"{str(name)[:80]}...")
    try:
        path = Path(name).expanduser()
        if not path.is_file():
            raise FileNotFoundError
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"name={shown} is not UTF-8 text; save the file as UTF-8.") from None
    except (OSError, RuntimeError, TypeError) as error:  # no such file; no such home folder; a name that is no path
        raise ValueError(f"name={shown} is neither a corpus ({', '.join(CORPORA)}) nor a file that can be read"
                         f"{f' ({error})' if str(error) else ''}; give one of these names or the path of a text file.") from None
    if not text.strip():
        raise ValueError(f"name={shown} is an empty file; give a text of at least a few thousand characters.")
    return text


def _load_timemachine() -> str:
    for folder in data_folders():
        path = folder / "timemachine.txt"
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            _check_timemachine(text, str(path))
            return text
    folder = data_folders()[-1]
    try:
        with urllib.request.urlopen(TIMEMACHINE_URL, timeout=20) as response:
            text = response.read().decode("utf-8", errors="replace")
    except (OSError, http.client.HTTPException) as error:  # the latter when the answer breaks off
        raise ConnectionError(
            f"The corpus 'timemachine' is not on this machine and could not be downloaded ({error}). Use the shipped "
            f"corpus, name='tide_clock'; or put the text as timemachine.txt into a folder and set the environment "
            f"variable D2LMINI_DATA to it; or pass the path of any text file.") from None
    _check_timemachine(text, TIMEMACHINE_URL)
    part = folder / f"timemachine.{os.getpid()}.part"
    try:  # keep a copy: written whole under another name, then renamed, so that no half file can stay
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, folder / "timemachine.txt")
    except OSError:  # a full disk or a read-only home costs a second download, nothing more
        with contextlib.suppress(OSError):
            part.unlink()
    return text


def _check_timemachine(text: str, where: str) -> None:
    got = hashlib.sha256(letters(text).strip().encode()).hexdigest()
    if got != TIMEMACHINE_SHA256:
        raise ValueError(f"the text at {where} is not The Time Machine that the published figures used: its letters "
                         f"have SHA-256 {got[:12]}..., expected {TIMEMACHINE_SHA256[:12]}...; if "
                         f"that is a file, delete it to try again, or pass its path as the corpus to use it anyway.")


class Vocabulary:
    """Characters and their ids: the characters in order, then ``<unk>``, then special tokens.

    Args:
        characters: the known characters, a str or a list; each once, order kept.
        specials: further tokens behind ``<unk>``, such as ("<mask>",).
    Raises:
        ValueError: if there are no characters, one is not a single character, or a token stands twice.
    """

    def __init__(self, characters=ALPHABET, specials: tuple[str, ...] = ()):
        known = list(characters) if isinstance(characters, (str, list, tuple)) else []  # a set has no order to keep
        if not known or any(not isinstance(c, str) or len(c) != 1 for c in known):
            raise ValueError(f"characters={characters!r} are not one or more single characters; give a str or a list.")
        if not isinstance(specials, (list, tuple)) or any(not isinstance(s, str) or not s for s in specials):
            raise ValueError(f"specials={specials!r} is not a tuple of tokens; give one such as ('<mask>',).")
        self.tokens = [*known, "<unk>", *specials]
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError(f"characters={characters!r} with specials={specials!r} repeat a token; give each once.")
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.unk_id = self.ids["<unk>"]

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> torch.Tensor:
        """Return the ids (length,) int64 of a text; a character outside the vocabulary becomes ``<unk>``."""
        check_text("text", text)
        return torch.tensor([self.ids.get(c, self.unk_id) for c in text], dtype=torch.int64)

    def decode(self, ids) -> str:
        """Return the text of ids (length,); special tokens are written out as ``<unk>``, ``<mask>``."""
        if isinstance(ids, torch.Tensor):
            ids = check_ids("ids", ids, ndim=1).tolist()
        elif not hasattr(ids, "__iter__"):
            raise ValueError(f"ids={ids!r} is not a list of token ids; give a list or a tensor (length,).")
        ids = list(ids)
        for i in ids:
            check_int("id", i, minimum=0, maximum=len(self) - 1)
        return "".join(self.tokens[i] for i in ids)


@dataclass(frozen=True)
class Corpus:
    """A text ready for training: its vocabulary and two disjoint, contiguous runs of ids.

    ``train`` comes first in the text and ``valid`` last; no character is in both, so no window is shared.
    """

    name: str
    vocab: Vocabulary
    train: torch.Tensor  # (characters,) int64
    valid: torch.Tensor  # (characters,) int64


def split_text(text: str, held_out: float = 0.1) -> tuple[str, str]:
    """Cut a text into a beginning for training and an end held out.

    The cut falls before the last chapter heading (a line such as "Chapter Three") that leaves at least
    ``held_out`` of the text behind it; in a text without headings, at the first line end that leaves at
    most that much, or where the share falls if there is none in the second half.

    Args:
        text: at least 2 characters.
        held_out: the share held out, in (0, 1).
    Returns:
        (training text, held-out text); joined they are the text.
    Raises:
        ValueError: if the text is too short or the share out of range.
    """
    check_number("held_out", held_out, 0, 1, low_open=True, high_open=True)
    if len(check_text("text", text)) < 2:
        raise ValueError(f"text has {len(text)} characters; give at least 2, and a few thousand to train on.")
    target = min(max(1, round(len(text) * (1 - held_out))), len(text) - 1)
    headings = [m.start() for m in re.finditer(r"^chapter\s+\S+\s*$", text, re.M | re.I) if 0 < m.start() <= target]
    if headings and headings[-1] > len(text) / 2:
        cut = headings[-1]
    else:
        line = text.find("\n", target) + 1
        cut = line if 0 < line < (target + len(text)) / 2 else target
    return text[:cut], text[cut:]


def load_corpus(name: str | os.PathLike = "tide_clock", *, form: str = "letters", held_out: float = 0.1,
                specials: tuple[str, ...] = ("<mask>",)) -> Corpus:
    """Load a corpus, reduce it to characters, and hold out its last chapters.

    Args:
        name: as in ``load_text``.
        form: "letters" (lower-case a-z and single spaces) or "raw" (every character as it stands; characters
            that only the held-out part has become ``<unk>``).
        held_out: share of the text held out at its end, in (0, 1); see ``split_text``.
        specials: special tokens behind ``<unk>``.
    Returns:
        A ``Corpus``.
    Raises:
        ValueError: as in ``load_text`` and ``split_text``; if a part holds no letters.
    """
    check_choice("form", form, ("letters", "raw"))
    train, valid = split_text(load_text(name), held_out)
    if form == "letters":
        train, valid = letters(train), letters(valid)
    if not train.strip() or not valid.strip():
        raise ValueError(f"name={str(name)!r} has too little text in form={form!r} to split; give a longer text.")
    vocab = Vocabulary(ALPHABET if form == "letters" else sorted(set(train)), specials)
    return Corpus(str(name), vocab, vocab.encode(train), vocab.encode(valid))


def ngram_entropy(ids: torch.Tensor, n: int) -> float:
    """Return the entropy of a character given the n-1 before it, by the text's own counts.

        H = -sum p(x_{t-n+1} ... x_t) log p(x_t | x_{t-n+1} ... x_{t-1})

    Args:
        ids: (characters,) int64, at least n of them.
        n: 1 for unigrams, 2 for bigrams, and so on.
    Returns:
        Nats per character. The text is its own table, so this flatters large n.
    Raises:
        ValueError: if ``n`` < 1 or the text is shorter than n.
    Built in chapter 2.
    """
    if len(check_ids("ids", ids, ndim=1)) < check_int("n", n):
        raise ValueError(f"ids has {len(ids)} characters; n={n} needs at least {n}.")
    grams, counts = ids.unfold(0, n, 1).unique(dim=0, return_counts=True)
    _, context = grams[:, :-1].unique(dim=0, return_inverse=True) if n > 1 else (None, torch.zeros_like(counts))
    totals = torch.zeros(int(context.max()) + 1).index_add(0, context, counts.float())
    return -(counts / counts.sum() * (counts / totals[context]).log()).sum().item()
