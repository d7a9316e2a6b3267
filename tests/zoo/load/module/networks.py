"""Small networks as anybody writes them, each with a layout of its own."""

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


class Transposed(Vit):
    """Patches column by column."""

    def embed(self, images: Tensor) -> Tensor:
        return super().embed(images.transpose(2, 3))


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

    def __init__(self, channels_last: bool = False) -> None:
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
