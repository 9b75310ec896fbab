"""A clean environment to try first cells in: all that the book needs is there, d2lmini is not.

Packages come from the environment that runs the tests, by a .pth line, so nothing is downloaded; what pip
installs goes into the new one. `colab=True` adds a stand-in for Colab's own module, loaded at start as there.
"""

import json
import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

from conftest import ROOT

RUN = """
import json, sys, nbformat
from nbclient import NotebookClient
path, folder, count = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
code = [c for c in notebook.cells if c.cell_type == "code"]
notebook.cells = code[:int(count)] if int(count) else code
NotebookClient(notebook, kernel_name="python3", timeout=600, resources={"metadata": {"path": folder}}).execute()
first = notebook.cells[0].outputs
claims = [o.metadata["d2lmini_claim"]["holds"] for c in notebook.cells for o in c.outputs if "d2lmini_claim" in o.get("metadata", {})]
print(json.dumps({"first": "".join(o.get("text", "") for o in first), "claims": claims}))
"""


class Clean:
    """An environment in `folder`; `python` is its interpreter."""

    def __init__(self, folder: Path, colab: bool = False):
        self.folder, self.python = folder, folder / "bin" / "python"
        venv.create(folder, with_pip=False, symlinks=True)
        self.site = next(folder.glob("lib/python*/site-packages"))
        (self.site / "everything_else.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        if colab:
            install_stand_in(self.site)
        # A folder where d2lmini may stand for the tests, and an installation in place, are not part of it.
        self.environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "D2LMINI_DATA")}
        self.environment |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "MPLBACKEND": "agg",
                             "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_DATA_DIR": str(folder / "jupyter")}

    def call(self, code: str, *arguments, cwd: Path, **environment):
        return subprocess.run([self.python, "-c", code, *map(str, arguments)], cwd=cwd, capture_output=True, text=True,
                              env=self.environment | environment)

    def versions(self) -> dict[str, str]:
        """Version and folder of what must stay as it is, as a fresh interpreter finds them."""
        code = ("import importlib.metadata as m, json\n"
                "print(json.dumps({n: [m.version(n), str(m.distribution(n).locate_file(''))] "
                "for n in ('torch', 'numpy', 'matplotlib', 'tqdm', 'ipython')}))")
        return json.loads(self.call(code, cwd=self.folder).stdout)

    def execute(self, notebook: Path, folder: Path, count: int = 0) -> dict:
        return execute(self.python, notebook, folder, count, environment=self.environment)


def install_stand_in(site: Path) -> None:
    """A module `google.colab` that is loaded when Python starts, as on Colab."""
    (site / "google" / "colab").mkdir(parents=True, exist_ok=True)
    (site / "google" / "colab" / "__init__.py").write_text('"""A stand-in."""\n')
    (site / "stand_in.pth").write_text("import google.colab\n")


def execute(python: Path, notebook: Path, folder: Path, count: int = 0, environment: dict | None = None) -> dict:
    """Run the first `count` code cells (0: all) with `folder` as the kernel's; what the first printed, which claims held."""
    done = subprocess.run([python, "-c", RUN, notebook, folder, str(count)], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def copy_of_the_book(folder: Path) -> Path:
    """What git would give a reader, as it stands now."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode:  # not a checkout: all that is not made
        made = shutil.ignore_patterns(".venv", ".matrix", "_build", "build", "dist", "__pycache__", ".ipynb_checkpoints")
        return Path(shutil.copytree(ROOT, folder, ignore=made, dirs_exist_ok=True))
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def repository(folder: Path, tag: str) -> str:
    """A git repository of the book with one commit and a tag; its address."""
    copy_of_the_book(folder)
    identity = ["-c", "user.name=A Reader", "-c", "user.email=reader@example.org"]
    for command in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", "All"], ["tag", tag]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)
    return folder.as_uri()


