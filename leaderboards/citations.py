"""Where the published numbers come from, one entry a file below ``published/``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers were published.

    Attributes:
        key: Short name, that of its file.
        citation: The publication.
    """

    key: str
    citation: str


SOURCES: tuple[Source, ...] = (
    Source(
        "teaching-matters",
        "Walmer et al., Teaching Matters: Investigating the Role of Supervision in Vision Transformers, "
        "CVPR 2023, arXiv:2212.03862",
    ),
    Source("dino-readme", "facebookresearch/dino, README"),
    Source(
        "dino",
        "Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021, "
        "arXiv:2104.14294",
    ),
    Source(
        "vit",
        "Dosovitskiy et al., An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale, "
        "ICLR 2021, arXiv:2010.11929",
    ),
    Source("dinov2-readme", "facebookresearch/dinov2, README"),
    Source("revisitop-readme", "filipradenovic/revisitop, README"),
    Source("spair-others", "results on SPair-71k as third parties tell them"),
    Source("aim-readme", "apple/ml-aim, aim-v1/README.md, commit bd9e068"),
    Source("capi-readme", "facebookresearch/capi, README, commit 98b4fa1"),
    Source("dino-threads", "facebookresearch/dino, authors in threads of issues"),
    Source("dinov3-card", "facebookresearch/dinov3, MODEL_CARD.md, commit 6876159"),
    Source("franca-readme", "valeoai/Franca, README, commit 24f8c60"),
    Source("hummingbird-readme", "vpariza/open-hummingbird-eval, README, commit 5e79da2"),
    Source("insid3-readme", "visinf/INSID3, README, commit f1c9622"),
    Source("pe-readme", "facebookresearch/perception_models, apps/pe/README.md, commit 3e352cc"),
    Source("radio-report", "NVlabs/RADIO, RADIOv2.5_tech_report.md, commit c0f3701"),
    Source("tips-readme", "google-deepmind/tips, README, commit 4db271d"),
)
