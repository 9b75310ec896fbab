"""d2lmini: transformer families from one set of small parts.

Notation, in comments and docstrings:
    B batch, T target (query) length, S source (key) length, D model width, H heads, d_k = D/H head width,
    F feed-forward width, V vocabulary size. For Perceivers: N inputs, M latents, O output queries.

Conventions: batch first; masks are boolean, True = may attend, broadcastable to (B, H, T, S); losses in nats
per token; times in seconds.
"""

from .attention import MultiHeadAttention, attention, attention_weights
from .batches import MaskedBatch, mask_tokens, masked_batches, pad_batch, random_windows, windows
from .blocks import Block, FeedForward, RMSNorm, make_norm
from .claims import claim, say
from .generation import Cache, generate
from .losses import bits_per_token, masked_loss, next_token_loss, perplexity
from .masks import causal_mask, combine, padding_mask, prefix_mask
from .models import Config, Decoder, Encoder
from .optim import Muon, constant, linear_decay, make_optimizers, orthogonalize
from .perceiver import Perceiver, PerceiverIO, fourier_positions
from .positions import AddedPositions, Rotary, sinusoidal_table
from .results import load_results, save_results
from .sampling import next_token_distribution
from .seq2seq import EncoderDecoder, PairBatch, exact_match, greedy_decode, pair_batch, seq2seq_loss
from .tasks import ToyTask, corrupt_spans, random_spans, restore_spans, span_batches
from .text import Corpus, Vocabulary, letters, load_corpus, load_text, split_text
from .text_perceiver import TextPerceiver
from .training import History, NonFiniteLoss, device, evaluate, fit, progress, seed_everything, token_losses

__version__ = "0.1.0"

__all__ = [
    "AddedPositions", "Block", "Cache", "Config", "Corpus", "Decoder", "Encoder", "EncoderDecoder", "FeedForward",
    "History", "MaskedBatch", "MultiHeadAttention", "Muon", "NonFiniteLoss", "PairBatch", "Perceiver",
    "PerceiverIO", "RMSNorm", "Rotary", "TextPerceiver", "ToyTask", "Vocabulary", "attention", "attention_weights",
    "bits_per_token", "causal_mask", "claim", "combine", "constant", "corrupt_spans", "device", "evaluate",
    "exact_match", "fit", "fourier_positions", "generate", "greedy_decode", "letters", "linear_decay",
    "load_corpus", "load_results", "load_text", "make_norm", "make_optimizers", "mask_tokens", "masked_batches",
    "masked_loss", "next_token_distribution", "next_token_loss", "orthogonalize", "pad_batch", "padding_mask",
    "pair_batch", "perplexity", "prefix_mask", "progress", "random_spans", "random_windows", "restore_spans",
    "save_results", "say", "seed_everything", "seq2seq_loss", "sinusoidal_table", "span_batches", "split_text",
    "token_losses", "windows",
]
