"""The drawing of each analysis that has one of its own: a function from its evidence to blocks.

Others have a plot with a line per backbone and a point per head.
"""

from collections.abc import Callable, Mapping

from layerboard.leaderboards.blocks.blocks import Block
from layerboard.leaderboards.inside.drawings import attention, pixels, residuals, tokens
from layerboard.leaderboards.inside.evidence import Evidence

DRAWINGS: Mapping[str, Callable[[Evidence], list[Block]]] = {
    "attention-maps": attention.draw_maps,
    "attention-distance": attention.draw_distance,
    "attention-shares": attention.draw_shares,
    "localisation": tokens.draw_localisation,
    "position-audit": tokens.draw_position,
    "saliency": attention.draw_saliency,
    "receptive-field": pixels.draw_fields,
    "inspect": pixels.draw_weights,
    "residuals": residuals.draw_residuals,
    "residual-cka": residuals.draw_similarity,
    "locality": attention.draw_locality,
    "token-probes": tokens.draw_tokens,
    "label-free": tokens.draw_label_free,
}
