"""Interactive figures: each takes data and returns a piece of HTML that needs no kernel, no network and no library.

The same call works in JupyterLab, Colab, VS Code and the built page, and on your own model's numbers.
``live`` is for what needs Python: controls in a live kernel, a still in the page.
"""

from .alignment_explorer import alignment_explorer
from .cost_dial import cost_dial
from .generation_explorer import generation_explorer, prefix_tree
from .gradient_highway import gradient_highway
from .live import live
from .mask_character import mask_character, predict_each
from .mask_explorer import mask_explorer
from .softmax_stepper import softmax_stepper

__all__ = [
    "alignment_explorer", "cost_dial", "generation_explorer", "gradient_highway", "live", "mask_character", "mask_explorer",
    "predict_each", "prefix_tree", "softmax_stepper",
]
