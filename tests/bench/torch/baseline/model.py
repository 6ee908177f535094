# SPDX-License-Identifier: Apache-2.0
"""The network.

gpt2: learned positions, LayerNorm(eps 1e-5, bias), biases everywhere but lm_head, tanh-GELU, tied head,
vocab padded to 50304 (padded logits take part in the softmax, as in nanoGPT).
llama: RMSNorm(eps 1e-5), RoPE half-split (rotate_half as in Hugging Face), GQA, SwiGLU w2(silu(w1 x)*w3 x).
qwen3: llama with RMSNorm eps 1e-6, theta 1e6, a separate head_dim (wq [H*D, C], wo [C, H*D]) and an RMSNorm over
head_dim, with one weight for all heads, on q and on k before RoPE.
qwen3 MoE: experts instead of the MLP.
"""
import torch
import torch.nn as nn

from baseline.blocks import Block, MoEBlock, make_norm
from baseline.settings import F32, Ctx


class Model(nn.Module):
    """The whole network or one pipeline stage: `ids` lists the layers of this rank."""

    def __init__(self, cfg, T, ids, first, last, fused, tied, device, dtype):
        super().__init__()
        kw = {"device": "meta", "dtype": dtype}
        self.cfg, self.ids, self.tied = cfg, list(ids), tied and first and last
        self.wte = nn.Embedding(cfg.V, cfg.C, **kw) if first else None
        self.wpe = nn.Embedding(T, cfg.C, **kw) if first and cfg.arch == "gpt2" else None
        block = MoEBlock if cfg.E else Block
        self.layers = nn.ModuleDict({str(i): block(cfg, fused, **kw) for i in self.ids})
        self.norm = make_norm(cfg, **kw) if last else None
        self.lm_head = nn.Linear(cfg.C, cfg.V, bias=False, **kw) if last else None
        self.to_empty(device=device)
        self.retie()
        self.pos = torch.arange(T, device=device)
        self.cos = self.sin = None
        if cfg.arch != "gpt2":
            inv = cfg.theta ** (-torch.arange(0, cfg.D, 2, dtype=torch.float64) / cfg.D)
            ang = torch.outer(torch.arange(T, dtype=torch.float64), inv)
            self.cos = ang.cos().to(F32).to(device)
            self.sin = ang.sin().to(F32).to(device)

    def retie(self):
        if self.tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, x, pos=None):
        cos, sin = self.cos, self.sin
        if pos is not None and cos is not None:
            cos, sin = cos[pos], sin[pos]
        if self.wte is not None:
            x = self.wte(x)
            if Ctx.tp:  # a plain tensor: torch.compile mishandles the collective's lazy result
                x = x.clone()
            if self.wpe is not None:
                x = x + self.wpe((self.pos if pos is None else pos)[None])
        counts = psum = 0
        for blk in self.layers.values():
            if self.cfg.E:
                x, c, s = blk(x, cos, sin)
                counts, psum = counts + c, psum + s
            else:
                x = blk(x, cos, sin)
        if self.norm is not None:
            x = self.lm_head(self.norm(x))
        if self.cfg.E:
            n = x.shape[0] * x.shape[1] * len(self.ids)
            return x, self.cfg.E * ((counts / n) * (psum / n)).sum()
        return x
