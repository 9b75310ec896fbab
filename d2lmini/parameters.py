"""Parameter counts by formula: one tower or two, tables tied or not, blocks shared or not; and published models."""

from __future__ import annotations

from dataclasses import dataclass, field

from .checks import check_flags, check_int
from .models import Config


def block_parameters(config: Config, cross: bool = False) -> int:
    """Count one block.

        attention      4 D^2                      + 3 D with qkv_bias, + D with bias
        feed-forward   3 D F (swiglu), 2 D F (gelu)   + 2 F + D, F + D with bias
        norms          2 n, n = D (rms) or 2 D (layer)
        cross          one attention and one norm more

    Args:
        config: of the model that the block belongs to.
        cross: with cross-attention, as in the decoder of an encoder-decoder.
    Built in chapter 7.
    """
    check_flags(cross=cross)
    d, f = config.d_model, config.inner_width
    inward = 2 if config.activation == "swiglu" else 1
    attention = 4 * d * d + 3 * d * config.qkv_bias + d * config.bias
    feed_forward = (inward + 1) * d * f + (inward * f + d) * config.bias
    return (1 + cross) * attention + feed_forward + (2 + cross) * norm_parameters(config)


def norm_parameters(config: Config) -> int:
    """n: D gains, and as many shifts in a LayerNorm."""
    return config.d_model * (2 if config.norm == "layer" else 1)


def tower_parameters(config: Config, cross: bool = False, distinct: int | None = None) -> int:
    """Count a tower: token table V D, learned positions max_len D, L blocks, and a last norm if it is pre-norm.

    Args:
        config, cross: as in ``block_parameters``.
        distinct: how many different blocks the L layers use; all L if None, 1 if every layer is the same block.
    Raises:
        ValueError: if ``distinct`` is outside [1, L].
    Source: Lan et al. 2020 (ALBERT), section 3.1, for shared blocks. Built in chapter 7.
    """
    blocks = config.num_layers if distinct is None else check_int("distinct", distinct, maximum=config.num_layers)
    tables = config.vocab_size + config.max_len * (config.positions == "learned")
    last = norm_parameters(config) if config.norm_first else 0
    return tables * config.d_model + blocks * block_parameters(config, cross) + last


def model_parameters(config: Config, decoder: Config | None = None, *, shared: bool = True,
                     distinct: int | None = None) -> int:
    """Count an encoder or a decoder by one config, or an encoder-decoder by two.

    Args:
        config: of the only tower, or of the encoder.
        decoder: of the decoder, if there is one.
        shared: the two towers use one token table; no matter for one tower.
        distinct: different blocks in each tower; see ``tower_parameters``.
    Returns:
        Parameters of ``Encoder(config)``, ``Decoder(config)`` or ``EncoderDecoder(config, decoder, shared=shared)``,
        with an output head of V D more if the (last) tower's config is not tied.
    Built in chapter 7.
    """
    check_flags(shared=shared)
    last = config if decoder is None else decoder
    table = last.vocab_size * last.d_model
    total = tower_parameters(config, distinct=distinct) + (0 if last.tied else table)
    if decoder is not None:
        total += tower_parameters(decoder, cross=True, distinct=distinct) - (table if shared else 0)
    return total


@dataclass(frozen=True)
class Published:
    """A published model: configs that count it, what it has besides, and what its authors say.

    ``beside`` names parameters that the book's models do not have; ``says`` is the number of the paper, in millions;
    ``known`` the exact number of the released weights, where there are any.
    """

    config: Config
    says: float
    source: str
    decoder: Config | None = None
    beside: dict[str, int] = field(default_factory=dict)
    distinct: int | None = None
    known: int | None = None

    @property
    def total(self) -> int:
        return model_parameters(self.config, self.decoder, distinct=self.distinct) + sum(self.beside.values())


def _classic(vocab_size: int, max_len: int, **changes) -> Config:
    """A model of BERT-base's and GPT-2 small's shape: 12 blocks of width 768, LayerNorms, GELU, biases everywhere."""
    shape = dict(d_model=768, num_heads=12, num_layers=12, d_ff=3072, norm="layer", activation="gelu",
                 positions="learned", bias=True, qkv_bias=True, norm_first=False)
    return Config(vocab_size, max_len, **shape | changes)


_T5 = Config(32128, 512, d_model=768, num_heads=12, num_layers=12, d_ff=3072, activation="gelu", positions="none")
_T5_1_1 = Config(32128, 512, d_model=768, num_heads=12, num_layers=12, d_ff=2048, positions="none", tied=False)
_2017 = Config(37000, 512, d_model=512, num_heads=8, num_layers=6, d_ff=2048, norm="layer", norm_first=False,
               activation="gelu", positions="sinusoidal")
_FF_BIASES_2017 = 12 * (2048 + 512)  # equation 2 of the paper has them; its projections have none

PUBLISHED = {
    "BERT-base": Published(
        _classic(30522, 512), 110, "Devlin et al. 2019, section 3", known=109_482_240,
        beside={"two segment vectors": 2 * 768, "a norm behind the tables": 2 * 768, "the pooler": 768 * 768 + 768}),
    "GPT-2 small": Published(
        _classic(50257, 1024, norm_first=True), 117, "Radford et al. 2019, table 2", known=124_439_808),
    "T5-base": Published(
        _T5, 220, "Raffel et al. 2020, section 3.1.2", decoder=_T5, known=222_903_552,
        beside={"relative position biases": 2 * 32 * 12}),
    "T5 1.1 base": Published(
        _T5_1_1, 250, "the T5 repository, released_checkpoints.md", decoder=_T5_1_1, known=247_577_856,
        beside={"relative position biases": 2 * 32 * 12}),
    "ALBERT-base": Published(
        _classic(1, 1, norm_first=False), 12, "Lan et al. 2020, table 1", distinct=1, known=11_683_584,
        beside={"tables of width 128": (30000 + 512 + 2 + 2) * 128 - 2 * 768, "128 to 768": 128 * 768 + 768,
                "the pooler": 768 * 768 + 768}),
    "Transformer base": Published(
        _2017, 65, "Vaswani et al. 2017, table 3", decoder=_2017, beside={"feed-forward biases": _FF_BIASES_2017}),
}
