"""The claims: words and source of each, what it needs, and its statistic."""

from collections.abc import Callable
from dataclasses import dataclass

from layerboard.leaderboards.claims import attention, scores, similarity
from layerboard.leaderboards.claims.effects import Effect
from layerboard.leaderboards.claims.networks import (
    ANY,
    AVERAGED,
    CLASS_VITS,
    CONVNETS,
    PATCHES,
    SHARES,
    SKIPLESS,
    SUPERVISED,
    VITS,
    Relation,
    of_method,
    size_pairs,
)

WALMER = "Walmer et al., CVPR 2023, table 3"
RAGHU = "Raghu et al., NeurIPS 2021"
SIMEONI = "Siméoni et al., DINOv3, arXiv:2508.10104, appendix B.2"
BOLYA = "Bolya et al., Perception Encoder, arXiv:2504.13181, table 13"
SLIDES = "slides on Raghu et al."


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of a paper as a test of records.

    ``effect`` turns readings and the groups of networks of each relation into a number that is above 0 if the
    claim holds; ``statistic`` says in words which, and ``null`` what varies if there is nothing in the claim.
    ``tasks`` are those without whose records it is not measured.
    """

    number: int
    words: str
    source: str
    tasks: tuple[str, ...]
    relations: tuple[Relation, ...]
    statistic: str
    null: str
    effect: Callable[..., Effect]


LAYERS = "the layers of a network in another order"
UNITS = "heads, layers, tokens or pairs of either side in each other's place"
ITEMS = "the images, objects or pairs score alike on either side"
LABELS = "the networks with each other's training"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        number=1,
        words="From the middle on, the class token of ViTs trained on labels or texts looks at few "
        "places, and heads look at the same ones.",
        source=f"{WALMER}, row 1",
        tasks=("attention-shares", "attention-maps"),
        relations=(SUPERVISED,),
        statistic="entropy of the class token, first minus second half of the blocks; correlation of the "
        "mean maps of two heads, second minus first half; the least sure of all networks",
        null=LAYERS,
        effect=attention.sparse_and_shared,
    ),
    Claim(
        number=2,
        words="Every ViT has local heads that look to one side.",
        source=f"{WALMER}, row 2",
        tasks=("attention-maps",),
        relations=(VITS,),
        statistic="share of heads of the kind offset minus 5 %; the least sure of all networks",
        null="one head in twenty is taken for such a head",
        effect=attention.offset_heads,
    ),
    Claim(
        number=3,
        words="In which order local and global heads follow over depth depends on the training method.",
        source=f"{WALMER}, row 3",
        tasks=("attention-distance",),
        relations=(of_method("labels", "texts", "contrast", "reconstruction", least=2),),
        statistic="correlation of two curves of attention distance over relative depth, mean within a "
        "method minus mean between two",
        null=LABELS,
        effect=attention.order_by_method,
    ),
    Claim(
        number=4,
        words="Objects stand out in attention by the early to middle layers.",
        source=f"{WALMER}, row 4",
        tasks=("saliency",),
        relations=(VITS,),
        statistic="best IoU of a head, as a share of the network's best: second minus first third of the "
        "blocks, on average, against random orders; second third minus 95 % of the last; minus "
        "that of a uniform map at some early block of each network",
        null=LAYERS,
        effect=attention.early_saliency,
    ),
    Claim(
        number=5,
        words="Networks trained by reconstruction have a class token that says something of the image.",
        source=f"{WALMER}, row 5",
        tasks=("cluster-image",),
        relations=(of_method("reconstruction"),),
        statistic="purity of the class token at some block minus the highest of untrained baselines; the "
        "least of all networks",
        null=ITEMS,
        effect=scores.meaningful_class_token,
    ),
    Claim(
        number=6,
        words="Features of networks trained on labels or texts have the most meaning, in images, objects "
        "and parts.",
        source=f"{WALMER}, row 6",
        tasks=scores.CLUSTERINGS,
        relations=(SUPERVISED, of_method("contrast", "reconstruction")),
        statistic="purity of the best layer, of these minus of self-supervised networks; the least sure "
        "of three clusterings",
        null=ITEMS,
        effect=scores.supervised_most_semantic,
    ),
    Claim(
        number=7,
        words="Local tasks are best at a middle to late layer, before the last.",
        source=f"{WALMER}, row 7",
        tasks=scores.LOCAL,
        relations=(VITS,),
        statistic="share of networks whose best layer is in the second half and not the last, minus that "
        "of random orders; the least sure of two tasks",
        null=LAYERS,
        effect=scores.middle_peaks,
    ),
    Claim(
        number=8,
        words="No network is the best in every task.",
        source=f"{WALMER}, row 8",
        tasks=(),
        relations=(ANY,),
        statistic="score of the best other network minus its own in some task; the least sure of all "
        "networks",
        null=ITEMS,
        effect=scores.no_single_best,
    ),
    Claim(
        number=9,
        words="Where such sparse attention falls depends on the image more than on the head.",
        source=f"{WALMER}, row 9",
        tasks=("attention-maps",),
        relations=(SUPERVISED,),
        statistic="distance of the class token's maps of two images minus that of two heads, second half "
        "of the blocks; the least sure of all networks",
        null=UNITS,
        effect=attention.by_image,
    ),
    Claim(
        number=10,
        words="Larger ViTs have heads that look along a diagonal.",
        source=f"{WALMER}, row 10",
        tasks=("attention-maps",),
        relations=(size_pairs(),),
        statistic="share of offset heads with an offset in both directions, larger minus smaller; the "
        "least of all pairs",
        null=UNITS,
        effect=attention.diagonal_heads,
    ),
    Claim(
        number=11,
        words="The order of local and global heads does not depend on size and patch size.",
        source=f"{WALMER}, row 11",
        tasks=("attention-distance",),
        relations=(size_pairs(), VITS),
        statistic="as 3, with the sizes of one training in place of the networks of one method",
        null=LABELS,
        effect=attention.order_by_training,
    ),
    Claim(
        number=12,
        words="Objects stand out by the early to middle layers of larger ViTs, too.",
        source=f"{WALMER}, row 12",
        tasks=("saliency",),
        relations=(size_pairs(),),
        statistic="as 4, of the larger of two sizes",
        null=LAYERS,
        effect=attention.early_saliency_of_larger,
    ),
    Claim(
        number=13,
        words="With larger patches, the class token's attention gets less sparse.",
        source=f"{WALMER}, row 13",
        tasks=("attention-shares",),
        relations=(PATCHES,),
        statistic="entropy of the class token in the second half, coarser minus finer patches; the least "
        "of all pairs",
        null=UNITS,
        effect=attention.sparser_with_small_patches,
    ),
    Claim(
        number=14,
        words="Last layers of two sizes are more alike after self-supervised training than after supervised.",
        source=f"{WALMER}, row 14",
        tasks=("cka",),
        relations=(size_pairs("contrast", "reconstruction"), size_pairs("labels", "texts")),
        statistic="CKA of the last blocks of two sizes, mean of self-supervised minus mean of supervised "
        "pairs",
        null=UNITS,
        effect=similarity.alike_over_sizes,
    ),
    Claim(
        number=15,
        words="Networks trained by reconstruction have an X in their CKA over depth.",
        source=f"{WALMER}, row 15",
        tasks=("cka",),
        relations=(of_method("reconstruction"),),
        statistic="CKA near the other diagonal minus CKA of pairs of blocks as far apart, against random "
        "orders; the least sure of all networks",
        null=LAYERS,
        effect=similarity.crossing,
    ),
    Claim(
        number=16,
        words="Late layers of larger networks trained by reconstruction act like a decoder.",
        source=f"{WALMER}, row 16",
        tasks=("cka",),
        relations=(size_pairs("reconstruction"),),
        statistic="the contrast of 15, larger minus smaller; the least sure of all pairs",
        null=LAYERS,
        effect=similarity.crossing_by_size,
    ),
    Claim(
        number=17,
        words="What attention adds becomes unlike what the skip carries in the middle to late layers of "
        "ViTs trained on labels or texts.",
        source=f"{WALMER}, row 17",
        tasks=("residual-cka",),
        relations=(SUPERVISED,),
        statistic="largest fall of the mean CKA of skip and branch at a block from the middle on, minus "
        "that of random orders; the least sure of all networks",
        null=LAYERS,
        effect=similarity.shifted,
    ),
    Claim(
        number=18,
        words="A larger BEiT has much better features of parts.",
        source=f"{WALMER}, row 18",
        tasks=("cluster-part",),
        relations=(size_pairs(family="BEiT"),),
        statistic="purity of parts at the best layer, larger minus smaller",
        null=ITEMS,
        effect=scores.better_parts,
    ),
    Claim(
        number=19,
        words="Larger networks are better in every task, and smaller patches in local tasks.",
        source=f"{WALMER}, row 19",
        tasks=(),
        relations=(size_pairs(), PATCHES),
        statistic="score of the best layer, larger minus smaller, and finer minus coarser patches; the "
        "least of all pairs and tasks",
        null=ITEMS,
        effect=scores.larger_is_better,
    ),
    Claim(
        number=20,
        words="Ranks of networks trained by reconstruction vary most over tasks.",
        source=f"{WALMER}, row 20",
        tasks=(),
        relations=(of_method("labels", "texts", "contrast", "reconstruction", least=2),),
        statistic="standard deviation of a network's ranks over tasks, mean of those by reconstruction "
        "minus the others'",
        null=LABELS,
        effect=scores.varied_ranks,
    ),
    Claim(
        number=21,
        words="Layers of a ViT are more alike over depth than those of a ConvNet.",
        source=f"{RAGHU}, figure 1",
        tasks=("cka",),
        relations=(VITS, CONVNETS),
        statistic="mean CKA of a block with all others, ViT minus ConvNet; the least sure of all pairs",
        null=UNITS,
        effect=similarity.uniform_over_depth,
    ),
    Claim(
        number=22,
        words="The lower half of a ConvNet is like the lowest quarter of a ViT.",
        source=f"{RAGHU}, figure 2",
        tasks=("cka",),
        relations=(VITS, CONVNETS),
        statistic="a quarter minus the relative depth of the ViT's most similar block, mean over the "
        "ConvNet's lower half; the least sure of all pairs",
        null=LAYERS,
        effect=similarity.lower_half_in_quarter,
    ),
    Claim(
        number=23,
        words="Low layers of ViTs have local and global heads, and few local ones if there were few data.",
        source=f"{RAGHU}, figures 3 and 4",
        tasks=("attention-distance",),
        relations=(VITS, SHARES),
        statistic="range of the heads' distances, lowest quarter minus later blocks; distance of heads in"
        " the lowest quarter, part of the data minus all; the least sure of all",
        null=UNITS,
        effect=attention.local_and_global,
    ),
    Claim(
        number=24,
        words="Low layers of ViTs have larger effective receptive fields than those of a ConvNet.",
        source=f"{RAGHU}, figure 6",
        tasks=("receptive-field",),
        relations=(VITS, CONVNETS),
        statistic="half radius in the first third of the blocks, ViT minus ConvNet; the least sure of all"
        " pairs",
        null=UNITS,
        effect=attention.wide_fields,
    ),
    Claim(
        number=25,
        words="Skip connections carry more in ViTs than in ConvNets, first of the class token, later of "
        "patches.",
        source=f"{RAGHU}, figure 7",
        tasks=("residuals",),
        relations=(CLASS_VITS, CONVNETS),
        statistic="norm of skip over branch of patches, ViT minus ConvNet; class token minus patches, "
        "first half minus second; the least sure of all pairs",
        null=UNITS,
        effect=attention.strong_skips,
    ),
    Claim(
        number=26,
        words="Without the skips of a block, the network falls into two parts there, and accuracy falls.",
        source=f"{RAGHU}, figure 8",
        tasks=("cka", "knn"),
        relations=(SKIPLESS,),
        statistic="change of CKA by the missing skips, mean of pairs of blocks on one side minus pairs "
        "across, against random orders; k-NN accuracy with skips minus without; the least sure "
        "of all pairs",
        null=f"{LAYERS}; {ITEMS}",
        effect=similarity.parted,
    ),
    Claim(
        number=27,
        words="ViTs keep the place of patches up to the last layer, those trained on the mean less.",
        source=f"{RAGHU}, figures 9 and 10",
        tasks=("localisation",),
        relations=(AVERAGED,),
        statistic="share of tokens of the last block that find their place, minus one half; minus that of"
        " training on the mean; the least sure of all pairs",
        null=UNITS,
        effect=scores.keeps_places,
    ),
    Claim(
        number=28,
        words="Single patch tokens tell the class after training on their mean, and badly after training "
        "on the class token.",
        source=f"{RAGHU}, figure 11",
        tasks=("token-probes",),
        relations=(AVERAGED,),
        statistic="accuracy of probes on single tokens of the last block, trained on the mean minus on "
        "the class token; the least sure of all pairs",
        null=UNITS,
        effect=scores.tokens_with_class,
    ),
    Claim(
        number=29,
        words="Low layers are learnt from little data, high layers need much.",
        source=f"{RAGHU}, figure 12",
        tasks=("cka",),
        relations=(SHARES,),
        statistic="CKA of the same blocks of trainings on all and part of the data, first half minus "
        "second; the least sure of all pairs",
        null=LAYERS,
        effect=similarity.little_data_for_low_layers,
    ),
    Claim(
        number=30,
        words="More data help the middle layers most.",
        source=f"{RAGHU}, figure 13",
        tasks=("fewshot",),
        relations=(SHARES,),
        statistic="gain of few-shot accuracy by all data over a part, middle third of the blocks minus "
        "the others; the least sure of all pairs",
        null=LAYERS,
        effect=scores.data_helps_the_middle,
    ),
    Claim(
        number=31,
        words="Some layers are redundant: the next one is nearly the same, in CKA and accuracy.",
        source=SLIDES,
        tasks=("cka", "knn"),
        relations=(ANY,),
        statistic="CKA of a block and the next minus 0.95, and 5 points minus their difference in "
        "accuracy, of some block of some network",
        null=ITEMS,
        effect=similarity.redundant_blocks,
    ),
    Claim(
        number=32,
        words="Correspondence and tracking are best earlier than classification.",
        source=SIMEONI,
        tasks=("knn", *scores.LOCAL),
        relations=(ANY,),
        statistic="relative depth of the best layer of k-NN minus the mean of local tasks, mean over "
        "networks",
        null=LAYERS,
        effect=scores.geometry_before_class,
    ),
    Claim(
        number=33,
        words="ViTs trained on texts lose tracking in the last layer.",
        source=BOLYA,
        tasks=("davis",),
        relations=(of_method("texts"),),
        statistic="score of the best earlier layer minus that of the last; the least sure of all networks",
        null=ITEMS,
        effect=scores.lost_tracking,
    ),
)
