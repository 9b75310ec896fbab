"""The record's recipe: Muon in tiles, the protocol, the published model, the runs that the benchmarks make of them."""

import pytest
import torch
from torch import nn

from d2lmini import Muon, make_optimizers, orthogonalize


def update(gradient, **settings):
    """The step that Muon takes on a matrix of zeros, over its learning rate."""
    weight = nn.Parameter(torch.zeros_like(gradient))
    weight.grad = gradient.clone()
    Muon([weight], lr=0.5, momentum=0.0, **settings).step()
    return weight.detach() / -0.5


@pytest.mark.parametrize("shape", [(35, 14), (14, 35), (21, 21)])
def test_every_tile_is_made_orthogonal_by_itself(shape):
    gradient = torch.randn(*shape, generator=torch.Generator().manual_seed(3))
    rows, columns = shape
    cut = 0 if rows >= columns else 1
    tiles = [orthogonalize(tile) for tile in gradient.split(7, dim=cut)]
    scale = min(1, rows / columns) ** 0.5
    torch.testing.assert_close(update(gradient, tile=7), torch.cat(tiles, dim=cut) * scale)


def test_a_last_tile_that_is_narrower_is_made_orthogonal_too():
    gradient = torch.randn(17, 11, generator=torch.Generator().manual_seed(4))
    last = orthogonalize(gradient[15:])
    torch.testing.assert_close(update(gradient, tile=5)[15:], last)


@pytest.mark.parametrize("shape", [(40, 13), (13, 40)])
def test_tiles_leave_the_size_of_the_update_as_it_was(shape):
    gradient = torch.randn(*shape, generator=torch.Generator().manual_seed(5))
    ratio = update(gradient, tile=5, steps=9).norm() / update(gradient, steps=9).norm()
    assert 0.8 < ratio < 1.25


@pytest.mark.parametrize("tile", [11, 17, 40])
def test_a_tile_as_wide_as_the_matrix_is_the_whole_matrix(tile):
    gradient = torch.randn(17, 11, generator=torch.Generator().manual_seed(6))
    assert torch.equal(update(gradient, tile=tile), update(gradient))


def test_tiles_cannot_be_negative():
    with pytest.raises(ValueError, match="tile=-1"):
        Muon([nn.Parameter(torch.ones(3, 2))], tile=-1)


def test_make_optimizers_hands_the_tile_to_muon():
    model = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(5, 7)])})
    assert make_optimizers(model, tile=2)[0].param_groups[0]["tile"] == 2
