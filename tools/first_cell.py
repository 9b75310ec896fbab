# @title Get d2lmini
# The same in every chapter; `python -m tools.setup_cell --all` writes it.
def get_d2lmini(address, tag):
    """Make d2lmini importable without changing anything else that is installed; return one line for the reader."""
    import importlib
    import pathlib
    import shutil
    import subprocess
    import sys
    from importlib.util import find_spec

    def there(name):  # a folder that only has the name holds no code of its own
        spec = find_spec(name)
        return spec is not None and spec.origin is not None

    lacking = [name for name in ("torch", "numpy", "matplotlib", "tqdm") if not there(name)]
    if lacking:
        raise RuntimeError(
            f"This kernel has no {', '.join(lacking)}. Install with `%pip install {' '.join(lacking)}` in a new cell, "
            "or choose the environment that the book was installed into, and run this cell again.")
    line = "d2lmini is ready."
    here = pathlib.Path.cwd()
    checkout = next((f for f in (here, *here.parents) if (f / "d2lmini" / "__init__.py").is_file()), None)
    if not there("d2lmini") and checkout:  # the book's own folder, opened without installing anything
        sys.path.append(str(checkout))
    elif not there("d2lmini") and "google.colab" not in sys.modules:
        source = f'"git+{address}@{tag}"' if address else "PATH_TO_THE_BOOKS_FOLDER"
        raise RuntimeError(
            "This kernel has no d2lmini, and the notebook is not in the book's folder. Open it there, or run "
            f"`%pip install --no-deps {source}` in a new cell and then this cell again.")
    elif not there("d2lmini"):
        if not address:
            raise RuntimeError(
                "This copy of the chapter does not know the book's address, so Colab cannot fetch d2lmini. Write the "
                "address of its repository between the quotes in the last line of this cell and run it again.")
        if shutil.which("git") is None:
            raise RuntimeError("Fetching d2lmini needs git. Run `!apt-get install -y git` in a new cell, then this one again.")
        wanted = [f"git+{address}@{tag}"] + [n for n in ("jupyterquiz",) if not there(n)]
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-color", "--no-deps", *wanted],
                              capture_output=True, text=True)
        if done.returncode:
            said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()] or ["nothing"]
            said = next((f"ERROR{line[5:]}" for line in said if line.lower().startswith("error")), said[-1])  # older pip: error
            raise RuntimeError(
                f"d2lmini could not be fetched from {address} at {tag}. Check the network and that this address "
                f"opens in a browser, then run this cell again. pip's answer: {said}")
        line = f"d2lmini {tag} was fetched from {address}; nothing that was here is changed."
    importlib.invalidate_caches()
    import d2lmini

    if f"v{d2lmini.__version__}" != tag:
        return f"d2lmini {d2lmini.__version__} is ready; this chapter was written with {tag}."
    return line


print(get_d2lmini("", "v0.0.0"))
