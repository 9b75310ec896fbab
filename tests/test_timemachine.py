"""The Time Machine: found, downloaded or refused, and never half written. Nothing here touches the network."""

import http.client
import io
import os
import urllib.error
from pathlib import Path

import pytest

from d2lmini import letters, load_corpus, load_text, text


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No copy on this machine and no network; returns the cache folder."""
    monkeypatch.delenv("D2LMINI_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def no_network(*args, **kwargs):
        raise urllib.error.URLError("no network in this test")
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    return tmp_path / "cache" / "d2lmini"


def answer_with(monkeypatch, data: bytes):
    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **kwargs: io.BytesIO(data))


def accept_anything(monkeypatch):
    monkeypatch.setattr(text, "_check_timemachine", lambda *args: None)


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*")) if folder.exists() else []


def test_the_published_text_is_found_and_checked():
    folders = [f for f in text.data_folders() if (f / "timemachine.txt").is_file()]
    if not folders:
        pytest.skip("The Time Machine is not on this machine: put timemachine.txt into a folder and name it D2LMINI_DATA")
    got = letters(load_text("timemachine"))
    assert got.startswith(("the time machine", " the time machine")) and len(got) > 170_000
    corpus = load_corpus("timemachine")
    assert len(corpus.valid) > 15_000 and len(corpus.train) + len(corpus.valid) == pytest.approx(len(got), abs=2)


def test_no_copy_and_no_network_says_what_to_do(nowhere):
    with pytest.raises(ConnectionError, match="could not be downloaded .*tide_clock.*D2LMINI_DATA.*path"):
        load_text("timemachine")
    assert files(nowhere) == []


@pytest.mark.parametrize("error", [OSError("reset"), TimeoutError("slow"), http.client.IncompleteRead(b"the")])
def test_a_download_that_breaks_off_leaves_nothing(nowhere, monkeypatch, error):
    class Broken(io.BytesIO):
        def read(self, *args):
            raise error
    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **kwargs: Broken())
    with pytest.raises(ConnectionError, match="could not be downloaded"):
        load_text("timemachine")
    assert files(nowhere) == []


def test_a_download_of_something_else_is_refused_and_not_kept(nowhere, monkeypatch):
    answer_with(monkeypatch, b"<html>Please log in to this network</html>")
    with pytest.raises(ValueError, match="is not The Time Machine .* SHA-256"):
        load_text("timemachine")
    assert files(nowhere) == []


def test_a_good_download_is_kept_and_used_again(nowhere, monkeypatch):
    accept_anything(monkeypatch)
    answer_with(monkeypatch, b"The Time Traveller\n")
    assert load_text("timemachine") == "The Time Traveller\n"
    assert files(nowhere) == ["timemachine.txt"]
    answer_with(monkeypatch, b"another answer")
    assert load_text("timemachine") == "The Time Traveller\n"


@pytest.mark.parametrize("step", ["write", "rename"])
def test_a_full_disk_leaves_nothing_half_written(nowhere, monkeypatch, step):
    accept_anything(monkeypatch)
    answer_with(monkeypatch, b"The Time Traveller\n")

    def half(self, data, **kwargs):
        self.write_bytes(data[:3].encode())
        raise OSError("disk full")

    def fail(*args):
        raise OSError("disk full")
    monkeypatch.setattr(Path, "write_text", half) if step == "write" else monkeypatch.setattr(os, "replace", fail)
    assert load_text("timemachine") == "The Time Traveller\n"  # the reader gets the text all the same
    assert files(nowhere) == []


def test_a_wrong_file_in_the_named_folder_is_refused(nowhere, monkeypatch, tmp_path):
    monkeypatch.setenv("D2LMINI_DATA", str(tmp_path))
    for data in (b"not the book", b"\xff\xfe not even text"):
        (tmp_path / "timemachine.txt").write_bytes(data)
        with pytest.raises(ValueError, match=r"the text at .*timemachine\.txt is not The Time Machine"):
            load_text("timemachine")


def test_the_named_folder_comes_first_and_the_cache_last(nowhere, monkeypatch, tmp_path):
    accept_anything(monkeypatch)
    monkeypatch.setenv("D2LMINI_DATA", str(tmp_path))
    assert text.data_folders() == [tmp_path, nowhere]
    for folder, words in ((nowhere, "from the cache"), (tmp_path, "from the folder")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "timemachine.txt").write_text(words)
    assert load_text("timemachine") == "from the folder"
    (tmp_path / "timemachine.txt").unlink()
    assert load_text("timemachine") == "from the cache"


def test_line_ends_do_not_change_the_checksum(monkeypatch):
    seen = []
    monkeypatch.setattr(text, "TIMEMACHINE_SHA256", "0" * 64)
    for copy in ("One day\nit came.", "One day\r\nit came.\r\n\r\n", "  One day it came."):
        with pytest.raises(ValueError, match="SHA-256 ([0-9a-f]{12})") as error:
            text._check_timemachine(copy, "here")
        seen.append(str(error.value))
    assert len(set(seen)) == 1
