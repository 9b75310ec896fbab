"""The exercises of all chapters: ``exercises.causal_mask.check(my_causal_mask)``, ``.hint()``, ``.solution()``.

An untouched stub counts as "not attempted yet"; nothing here ever raises because of an answer. Each solution lives once, as
ordinary code that the tests run, and so does each wrong answer that a check knows by name.
``python -m d2lmini.exercises --mutants`` hands every wrong answer to its check and prints what is said.
"""

from .base import exercises, progress, reset
from .chapter_1 import blocked, causal_mask, restart_rows, safe_attention, three_masks
from .chapter_1_formulas import formulas, shuffle_gap
from .chapter_2 import always_mask, mask_tokens, pair_losses, rule_run
from .chapter_2_states import hidden_accuracy, sentence_vector
from .chapter_3 import cached_attention, look_up, loss_in_words, nucleus, predictions
from .chapter_4 import alignment, corrupt, hit_rate, no_causal, two_blocks
from .chapter_5 import io_head, io_when, largest_term, read_flops, sweep_latents, weight_bytes
from .chapter_6 import layer_norm, norm_count, sandwich, unrolled
from .chapter_7 import families, interview, paired, parameters
from .quizzes import quiz

__all__ = [
    "alignment", "always_mask", "blocked", "cached_attention", "causal_mask", "corrupt", "exercises", "families",
    "formulas", "hidden_accuracy", "hit_rate", "interview", "io_head", "io_when", "largest_term", "layer_norm",
    "look_up", "loss_in_words", "mask_tokens", "no_causal", "norm_count", "nucleus", "pair_losses", "paired",
    "parameters", "predictions", "progress", "quiz", "read_flops", "reset", "restart_rows", "rule_run",
    "safe_attention", "sandwich", "sentence_vector", "shuffle_gap", "sweep_latents", "three_masks", "two_blocks",
    "unrolled", "weight_bytes",
]
