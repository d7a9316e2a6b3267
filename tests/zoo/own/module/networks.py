"""Small networks as anybody writes them, each with a layout of its own."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

SIZE, PATCH, WIDTH = 32, 8, 12


class Block(nn.Module):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mlp(self.norm(x)).relu()


class Mixing(Block):
    """Of a block with heads in a list beside each other."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH)) for _ in range(4))

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return super().forward(x) + scale * sum(head(x) for head in self.heads) / 4


class Attending(Block):
    """With torch's attention, three heads, on tokens [batch tokens dim]."""

    batch_first = True

    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(WIDTH, 3, batch_first=self.batch_first)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        return super().forward(x + self.attn(normed, normed, normed, need_weights=False)[0])

    def probabilities(self, x: Tensor) -> Tensor:
        """By hand, [batch heads queries keys], of tokens [batch tokens dim]."""
        rows = nn.functional.linear(self.norm(x), self.attn.in_proj_weight, self.attn.in_proj_bias)
        query, key, _ = rows.unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
        return (query @ key.mT / 2).softmax(-1)


class AttendingFirst(Attending):
    """On tokens [tokens batch dim]."""

    batch_first = False


class FusedAttention(nn.Module):
    """As timm's, in its usual form of one step."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


class Projected(FusedAttention):
    """With a projection of the heads at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(super().forward(x))  # type: ignore[no-any-return]


class Fused(Block):
    """With such an attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = FusedAttention()

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + self.attn(self.norm(x)))

    def probabilities(self, x: Tensor) -> Tensor:
        """By hand, [batch heads queries keys]."""
        query, key, _ = self.attn.qkv(self.norm(x)).unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
        return (query @ key.mT / 2).softmax(-1)  # type: ignore[no-any-return]


class Calling(Block):
    """With torch's fused attention, called without a module: two heads of queries share one of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.keys = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries [batch 4 tokens 3], keys and values [batch 2 tokens 3], and a bias for each head."""
        query = self.query(self.norm(x)).unflatten(-1, (4, 3)).transpose(1, 2)
        key, value = self.keys(self.norm(x)).unflatten(-1, (2, 2, 3)).permute(2, 0, 3, 1, 4)
        return query, key, value, torch.arange(4.0)[:, None, None] * torch.eye(x.shape[1])

    def forward(self, x: Tensor) -> Tensor:
        query, key, value, bias = self.parts(x)
        heads = nn.functional.scaled_dot_product_attention(
            query, key, value, bias, scale=2.0, enable_gqa=True
        )
        return super().forward(x + heads.transpose(1, 2).flatten(2))

    def probabilities(self, x: Tensor) -> Tensor:
        """By hand, [batch heads queries keys]."""
        query, key, _, bias = self.parts(x)
        return (2 * query @ key[:, [0, 0, 1, 1]].mT + bias).softmax(-1)


class Twice(Attending):
    """With two attentions, of which neither is that of the block."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.MultiheadAttention(WIDTH, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + self.other(x, x, x)[0])


class InWindows(Attending):
    """Each half of the patches attends to itself."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.unflatten(1, (2, -1)).flatten(0, 1)).unflatten(0, (-1, 2)).flatten(1, 2)


class Usual(Block):
    """Norm, attention, norm, MLP, each with a module of its own, as timm's blocks have them."""

    attention: Callable[[], nn.Module] = Projected

    def __init__(self) -> None:
        super().__init__()
        del self.norm
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = type(self).attention()
        self.gamma = nn.Parameter(torch.full((WIDTH,), 1e-5))  # LayerScale, as small as it begins
        self.drop = nn.Identity()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attended(self, x: Tensor) -> Tensor:
        return self.drop(self.attn(x) * self.gamma)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attended(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class UsualTorch(Usual):
    """With torch's attention, in place, so that the input of a block is gone when it ends."""

    @staticmethod
    def attention() -> nn.Module:
        return nn.MultiheadAttention(WIDTH, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        x += self.attn(normed, normed, normed, need_weights=False)[0]
        x += self.mlp(self.norm2(x))
        return x


class Mixer(Usual):
    """Mixes tokens by a layer over these, and passes both gains through one module."""

    @staticmethod
    def attention() -> nn.Module:
        return nn.Linear((SIZE // PATCH) ** 2, (SIZE // PATCH) ** 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.norm1(x).mT).mT)
        return x + self.drop(self.mlp(self.norm2(x)))


class Beside(Usual):
    """Attention and MLP beside each other: there is no stream between them."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attended(self.norm1(x)) + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """Tokens with a class token and registers before them."""

    def __init__(self, prefix: int = 1, fixed: bool = False, kind: type[Block] = Block) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.prefix = nn.Parameter(torch.randn(1, prefix, WIDTH)) if prefix else None
        self.blocks = nn.ModuleList(kind() for _ in range(3))
        self.norm = nn.LayerNorm(WIDTH)
        self.fixed = fixed

    def embed(self, images: Tensor) -> Tensor:
        if self.fixed and images.shape[-1] != SIZE:
            raise ValueError(f"images of {SIZE} px only")
        x = self.patches(images).flatten(2).transpose(1, 2)
        return x if self.prefix is None else torch.cat([self.prefix.expand(len(x), -1, -1), x], dim=1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 0]


class Called(Vit):
    """Blocks that are called by keyword and give tuples."""

    class Inner(Block):
        def forward(self, *, mask: None, hidden: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
            return super().forward(hidden), mask

    def __init__(self) -> None:
        super().__init__(kind=Called.Inner)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images)
        for block in self.blocks:
            x, _ = block(mask=None, hidden=x)
        return self.norm(x)


class TokensFirst(Vit):
    """As OpenAI's CLIP passes tokens on."""

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images).transpose(0, 1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x.transpose(0, 1))


class ClassTokenLast(Vit):
    def embed(self, images: Tensor) -> Tensor:
        return super().embed(images).flip(1)


class Masked(Vit):
    """Patches are shown in another order each time."""

    def embed(self, images: Tensor) -> Tensor:
        x = super().embed(images)
        return torch.stack([one[torch.randperm(len(one))] for one in x])


class ConvBlock(nn.Module):
    def __init__(self, width: int, stride: int = 1, out: int | None = None) -> None:
        super().__init__()
        self.layer = nn.Sequential(
            *(nn.Sequential(nn.Conv2d(width, out or width, 3, stride, 1), nn.ReLU()) for _ in range(1)),
            *(nn.Sequential(nn.Conv2d(out or width, out or width, 3, 1, 1), nn.ReLU()) for _ in range(2)),
        )
        self.skip = nn.Conv2d(width, out or width, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.layer(x)
        out += self.skip(x)
        return out.relu_()


class ConvNet(nn.Module):
    """Stages with their own grids; a norm over maps at the end."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 6, 2, 2)
        self.layer1 = nn.Sequential(ConvBlock(6, 2, 8), ConvBlock(8))
        self.layer2 = nn.Sequential(ConvBlock(8, 2, 16), ConvBlock(16), ConvBlock(16))
        self.bn = nn.BatchNorm2d(16)

    def forward(self, images: Tensor) -> Tensor:
        return self.bn(self.layer2(self.layer1(self.stem(images)))).mean((2, 3))


class Swin(nn.Module):
    """Maps [batch height width dim], merged between stages; as many channels as cells at first."""

    class Stage(nn.Module):
        def __init__(self, width: int, merges: bool) -> None:
            super().__init__()
            self.merge = nn.Linear(width * 2, width) if merges else nn.Identity()
            self.blocks = nn.Sequential(*(Block(width) for _ in range(2)))

        def forward(self, x: Tensor) -> Tensor:
            if isinstance(self.merge, nn.Linear):
                x = torch.cat([x[:, ::2, ::2], x[:, 1::2, 1::2]], dim=-1)[..., : self.merge.in_features]
                x = self.merge(x)
            return self.blocks(x)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 8, 4, 4)
        self.layers = nn.ModuleList([Swin.Stage(8, merges=False), Swin.Stage(8, merges=True)])
        self.norm = nn.LayerNorm(8)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).permute(0, 2, 3, 1)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
