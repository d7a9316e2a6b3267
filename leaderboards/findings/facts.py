"""Facts about backbones apart from records, and which licences allow commercial use: no legal advice."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Literal

from layerboard.zoo.spec import entry_name


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a backbone that filters, limits and costs need."""

    supervision: str = ""  # supervision in a word or two, such as ``labels``; "" if unknown
    licence: str = ""  # SPDX id or name of the licence of its weights; "" if unknown
    parameters: float = nan  # weights of the whole network; NaN if unknown
    widths: tuple[int, ...] = ()  # dimension of a vector after each block, from block 1; empty if unknown
    toy: bool = False  # whether it is one of this package's small networks for synthetic images

    def costs_at(self, layer: int, depth: int) -> tuple[float, float]:
        """About how many weights there are up to a block, the same in each, and its vector's dimension.

        Each is NaN if it is unknown.
        """
        width = self.widths[layer - 1] if len(self.widths) == depth else nan
        return self.parameters * layer / depth, width


UNKNOWN = Facts()  # facts about a user's own backbone


def facts_about(name: str, facts: Mapping[str, Facts]) -> Facts:
    """The facts about a backbone or a variant of one, from facts by entry."""
    return facts.get(entry_name(name), UNKNOWN)


Use = Literal["allowed", "not allowed", "unknown"]

NOTE = "What licences allow is read from their names and is no legal advice."

COMMERCIAL_USE: dict[str, Use] = {  # by the licence's name in the registry; any other is unknown
    "Apache-2.0": "allowed",
    "MIT": "allowed",
    "BSD-2-Clause": "allowed",
    "BSD-3-Clause": "allowed",
    "CC-BY-4.0": "allowed",
    "CC0-1.0": "allowed",
    "CC-BY-NC-4.0": "not allowed",
    "CC-BY-NC-SA-4.0": "not allowed",
    "Apple AMLR (authors' repository: Apple sample code)": "not allowed",  # for research only
    "RAIL, research only (Franca)": "not allowed",
    "FAIR Noncommercial Research License": "not allowed",
    "NVIDIA Open Model License": "allowed",
    "DINOv3": "unknown",  # custom terms, with conditions
    # two licences of the same weights, the stricter first
    "Apache-2.0 (authors' repository: MIT)": "allowed",
    "CC-BY-4.0 (on the Hub: Apache-2.0)": "allowed",
    "CC-BY-NC-4.0 (copy on the Hub: Apache-2.0)": "not allowed",
    "Apache-2.0 (two other sources: MIT)": "allowed",
}


def commercial_use(licence: str) -> Use:
    """Whether a licence of that name allows commercial use."""
    return COMMERCIAL_USE.get(licence, "unknown")


def fits_licence(licence: str, wanted: str) -> bool:
    """Whether a licence matches the one wanted, as in ``list`` and ``recommend``.

    ``wanted`` is ``any`` or "" for all, ``commercial`` for those known to allow commercial use, or else part
    of the name, in any case.
    """
    if wanted.lower() == "commercial":
        return commercial_use(licence) == "allowed"
    return wanted.lower() == "any" or wanted.lower() in licence.lower()
