"""The package promises torch >= 2.6: by reading, that it uses no name that came later."""

import ast
import re

import pytest
from conftest import ROOT

# Public names of torch 2.13 that torch 2.6 does not have, found by comparing the two.
NEWER_THAN_2_6 = {
    "AcceleratorError", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions", "ScalingType", "SwizzleType",
    "_foreach_clone", "_foreach_mm", "_foreach_powsum", "const_data_ptr", "float4_e2m1fn_x2", "float8_e8m0fnu",
    "grad_dtype", "grouped_mm", "hash_tensor", "linear_cross_entropy", "scaled_grouped_mm", "scaled_mm",
    "swap_in_optimizer_params_and_state", "thread_safe_generator", "torch.optim.Muon", "torch.nn.attention.varlen",
}


def names(tree):
    """Every attribute and import in a syntax tree, as its last name and, where it starts at torch, in full."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            yield node.module
            for alias in node.names:
                yield from (alias.name, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Attribute):
            yield from (node.attr, ast.unparse(node))


def too_new(source: str) -> set[str]:
    return set(names(ast.parse(source))) & NEWER_THAN_2_6


def test_the_promise_stands():
    assert re.search(r'"torch>=2\.6"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted((ROOT / "d2lmini").rglob("*.py")), ids=lambda p: p.stem)
def test_no_name_that_came_after_torch_2_6(path):
    assert not too_new(path.read_text(encoding="utf-8"))


def test_the_reading_finds_what_it_looks_for():
    assert too_new("import torch\ntorch.optim.Muon([])") == {"torch.optim.Muon"}
    assert too_new("from torch.optim import Muon") == {"torch.optim.Muon"}
    assert too_new("from torch.nn.functional import grouped_mm") == {"grouped_mm"}
    assert too_new("from .optim import Muon\nMuon([])\nx.hash_tensor()") == {"hash_tensor"}
