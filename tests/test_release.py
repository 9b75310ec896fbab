"""What is released: wheel and sdist hold all that the notebooks need, shown by a wheel that stands alone."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from clean import Clean
from conftest import ROOT

import d2lmini
from tools import release

# Chapter 2 in short: its corpus, its masks, its encoder, a few of its steps, its stored results, its corpus's licence.
CHAPTER_2 = """
import json, pathlib, torch, d2lmini
from d2lmini import (Config, Encoder, fit, load_corpus, load_results, make_optimizers, masked_batches, masked_loss, random_windows,
                     seed_everything)
seed_everything(0)
corpus = load_corpus("tide_clock")
mask_id = corpus.vocab.ids["<mask>"]
model = Encoder(Config(len(corpus.vocab), 64, num_layers=2, positions="rotary"))
batches = masked_batches(random_windows(corpus.train, 64, 8, seed=0), mask_id, 0, fraction=0.3)
history = fit(model, masked_loss, batches, steps=12, optimizers=make_optimizers(model, lr=0.02, adam_lr=0.01))
folder = pathlib.Path(d2lmini.__file__).parent
print(json.dumps({
    "folder": str(folder), "losses": history.losses, "seeds": len(load_results("encoder_seeds")["runs"]),
    "files": sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.suffix in (".js", ".css", ".txt", ".json")),
}))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return release.build(tmp_path_factory.mktemp("dist"))


def test_wheel_and_sdist_hold_every_module_corpus_result_and_script(built):
    wheel, sdist = built
    assert release.missing(wheel, sdist) == []
    assert wheel.name == f"d2lmini-{d2lmini.__version__}-py3-none-any.whl" and sdist.name == f"d2lmini-{d2lmini.__version__}.tar.gz"
    with zipfile.ZipFile(wheel) as w, tarfile.open(sdist) as s:
        tops = {name.split("/")[0] for name in w.namelist()}
        assert tops == {"d2lmini", f"d2lmini-{d2lmini.__version__}.dist-info"}
        assert sum("licenses/" in name for name in w.namelist()) >= 4
        assert not [name for name in s.getnames() if re.search(r"\.part$|__pycache__|/tests/|/chapters/", name)]


def test_a_file_that_is_not_carried_is_named(built, tmp_path):
    folder = tmp_path / "d2lmini" / "results"
    folder.mkdir(parents=True)
    (folder / "forgotten.json").write_text("{}")
    found = release.missing(*built, root=tmp_path)
    assert len(found) == 2 and all(line.endswith("lacks d2lmini/results/forgotten.json") for line in found)


def test_the_wheel_alone_runs_chapter_2_in_short(built, tmp_path):
    place = Clean(tmp_path / "env")
    done = place.call("import sys; from pip._internal.cli.main import main; sys.exit(main(sys.argv[1:]))",
                      "install", "--quiet", "--no-deps", "--no-index", built[0], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = place.call(CHAPTER_2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert Path(said["folder"]).is_relative_to(place.folder) and said["seeds"] >= 3
    assert len(said["losses"]) == 12 and said["losses"][-1] < said["losses"][0]
    here = {p.relative_to(ROOT / "d2lmini").as_posix() for pattern in release.CARRIED[1:] for p in ROOT.glob(pattern)}
    assert set(said["files"]) == here


def test_the_changelog_has_this_version_and_the_version_is_where_it_should_be():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(d2lmini.__version__)}$", text, re.M)
    done = subprocess.run([sys.executable, "-m", "tools.release", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "wheel" in done.stdout
