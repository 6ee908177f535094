# SPDX-License-Identifier: Apache-2.0
"""The layers of the network: attention, then an MLP or experts."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from baseline.attention import Attention
from baseline.experts import Collect, MoE, ep_exchange, ep_return
from baseline.settings import F32, Ctx


def make_norm(cfg, **kw):
    return nn.LayerNorm(cfg.C, eps=cfg.eps, **kw) if cfg.arch == "gpt2" else nn.RMSNorm(cfg.C, eps=cfg.eps, **kw)


class MLP(nn.Module):
    def __init__(self, cfg, fused, **kw):
        super().__init__()
        self.gelu = cfg.arch == "gpt2"
        self.fused = fused and not self.gelu
        if self.gelu:
            self.w1 = nn.Linear(cfg.C, cfg.FF, bias=True, **kw)
        elif self.fused:
            self.w13 = nn.Linear(cfg.C, 2 * cfg.FF, bias=False, **kw)
        else:
            self.w1 = nn.Linear(cfg.C, cfg.FF, bias=False, **kw)
            self.w3 = nn.Linear(cfg.C, cfg.FF, bias=False, **kw)
        self.w2 = nn.Linear(cfg.FF, cfg.C, bias=self.gelu, **kw)

    def forward(self, x):
        if self.gelu:
            return self.w2(F.gelu(self.w1(x), approximate="tanh"))
        if self.fused:
            a, b = self.w13(x).chunk(2, dim=-1)
        else:
            a, b = self.w1(x), self.w3(x)
        return self.w2(F.silu(a) * b)


class Block(nn.Module):
    second_half = MLP

    def __init__(self, cfg, fused, **kw):
        super().__init__()
        self.norm1 = make_norm(cfg, **kw)
        self.attn = Attention(cfg, fused, **kw)
        self.norm2 = make_norm(cfg, **kw)
        self.mlp = self.second_half(cfg, fused, **kw)

    def forward(self, x, cos, sin):
        x = x + self.attn(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class MoEBlock(Block):
    """Returns x and, for the auxiliary loss, each expert's token count (no gradient) and summed probability."""

    second_half = MoE

    def before(self, x, cos, sin):
        x = x + self.attn(self.norm1(x), cos, sin)
        return x, *self.mlp.route(self.norm2(x))

    def after(self, x, out, order, inv):
        return x + Collect.apply(out, order, inv, self.mlp.K).view_as(x)

    def forward(self, x, cos, sin):
        x, rows, p, order, inv, offs, psum = self.before(x, cos, sin)
        counts = torch.diff(offs, prepend=offs.new_zeros(1)).to(F32)
        if Ctx.ep_size == 1:
            out = self.mlp.experts(rows, p, offs)
        else:
            rows, p, offs, way = ep_exchange(rows, p, offs)
            out = ep_return(self.mlp.experts(rows, p, offs), way)
        return self.after(x, out, order, inv), counts, psum
