"""For each analysis what is drawn of it; others get a line a backbone and a point a head."""

from collections.abc import Callable

from leaderboards.pages.inside.criteria import draw_label_free
from leaderboards.pages.inside.evidence import Evidence
from leaderboards.pages.inside.fields import draw_fields, draw_locality
from leaderboards.pages.inside.heads import draw_distance
from leaderboards.pages.inside.looks import draw_maps
from leaderboards.pages.inside.objects import draw_saliency
from leaderboards.pages.inside.places import draw_localisation, draw_position, draw_tokens
from leaderboards.pages.inside.residual import draw_residuals, draw_similarity
from leaderboards.pages.inside.shares import draw_shares
from leaderboards.pages.inside.weights import draw_weights
from tasks.blocks import Block

DRAWINGS: dict[str, Callable[[Evidence], list[Block]]] = {
    "attention-distance": draw_distance,
    "attention-maps": draw_maps,
    "attention-shares": draw_shares,
    "inspect": draw_weights,
    "locality": draw_locality,
    "label-free": draw_label_free,
    "localisation": draw_localisation,
    "position-audit": draw_position,
    "receptive-field": draw_fields,
    "residual-cka": draw_similarity,
    "residuals": draw_residuals,
    "saliency": draw_saliency,
    "token-probes": draw_tokens,
}
"""Names of tasks and what draws them."""
