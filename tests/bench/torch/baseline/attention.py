# SPDX-License-Identifier: Apache-2.0
"""Attention with RoPE, GQA and, over context-parallel ranks, an all-to-all from positions to heads (Ulysses)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from baseline.settings import F32, Ctx


def seq_to_head(q, k, v):
    """Ulysses: [B, T/P, H, D] -> [B, T, H/P, D] for q, k, v in one all-to-all."""
    import torch.distributed._functional_collectives as funcol

    P = Ctx.ulysses_size
    B, Tl, _, D = q.shape
    parts = [t.reshape(B, Tl, P, t.shape[2] // P, D) for t in (q, k, v)]
    sizes = [p.shape[3] for p in parts]
    x = torch.cat(parts, dim=3).permute(2, 0, 1, 3, 4).contiguous()  # [P, B, Tl, h, D]
    x = funcol.all_to_all_single_autograd(x, None, None, Ctx.ulysses_group)
    x = x.permute(1, 0, 2, 3, 4).reshape(B, P * Tl, sum(sizes), D)
    return x.split(sizes, dim=2)


def head_to_seq(o):
    """The inverse, for the attention output: [B, T, H/P, D] -> [B, T/P, H, D]."""
    import torch.distributed._functional_collectives as funcol

    P = Ctx.ulysses_size
    B, T, h, D = o.shape
    x = o.reshape(B, P, T // P, h, D).permute(1, 0, 2, 3, 4).contiguous()
    x = funcol.all_to_all_single_autograd(x, None, None, Ctx.ulysses_group)
    return x.permute(1, 2, 0, 3, 4).reshape(B, T // P, P * h, D)


def rope(x, cos, sin):
    a, b = x.to(F32).chunk(2, dim=-1)
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    return torch.cat((a * c - b * s, b * c + a * s), dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, cfg, fused, **kw):
        super().__init__()
        self.D, self.HD, self.KD = cfg.D, cfg.H * cfg.D, cfg.KV * cfg.D
        self.gqa = cfg.KV != cfg.H
        self.rep = cfg.H // cfg.KV
        self.fused = fused
        bias = cfg.arch == "gpt2"
        if fused:
            self.wqkv = nn.Linear(cfg.C, self.HD + 2 * self.KD, bias=bias, **kw)
        else:
            self.wq = nn.Linear(cfg.C, self.HD, bias=bias, **kw)
            self.wk = nn.Linear(cfg.C, self.KD, bias=bias, **kw)
            self.wv = nn.Linear(cfg.C, self.KD, bias=bias, **kw)
        self.wo = nn.Linear(self.HD, cfg.C, bias=bias, **kw)
        self.qk_norm = cfg.arch == "qwen3"
        if self.qk_norm:
            self.q_norm = nn.RMSNorm(cfg.D, eps=cfg.eps, **kw)
            self.k_norm = nn.RMSNorm(cfg.D, eps=cfg.eps, **kw)

    def forward(self, x, cos, sin):
        B, T = x.shape[0], x.shape[1]
        if self.fused:
            q, k, v = self.wqkv(x).split([self.HD, self.KD, self.KD], dim=-1)
        else:
            q, k, v = self.wq(x), self.wk(x), self.wv(x)
        q, k, v = (t.reshape(B, T, -1, self.D) for t in (q, k, v))
        if self.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        if cos is not None:
            q, k = rope(q, cos, sin), rope(k, cos, sin)
        if Ctx.ulysses_group is not None:
            q, k, v = seq_to_head(q, k, v)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        gqa = self.gqa
        if gqa and Ctx.expand_kv:
            k, v, gqa = k.repeat_interleave(self.rep, 1), v.repeat_interleave(self.rep, 1), False
        if Ctx.documents is not None:
            o = flex_attention(q, k, v, block_mask=Ctx.documents, enable_gqa=gqa).transpose(1, 2)
        else:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa).transpose(1, 2)
        if Ctx.ulysses_group is not None:
            o = head_to_seq(o)
        return self.wo(o.reshape(B, T, -1))


class Documents:
    """The block mask of the documents in a batch; each document ends with the token."""

    TENSORS = [f"{part}{side}_{what}" for part in ("", "full_") for side in ("kv", "q") for what in ("num_blocks", "indices")]

    def __init__(self, x, token):
        self.token = token
        self.ids = self.ids_of(x)
        self.mask = self.mask_of(self.ids)

    def ids_of(self, x):
        ends = x == self.token
        return ends.cumsum(1) - ends.long()

    @staticmethod
    def mask_of(ids):
        batch, seq = ids.shape
        return create_block_mask(lambda b, h, q, k: (q >= k) & (ids[b, q] == ids[b, k]), batch, None, seq, seq,
                                 device=ids.device)

    def replace(self, x):
        """Takes the documents of another batch. Compiled and captured steps keep the tensors that they read."""
        ids = self.ids_of(x)
        fresh = self.mask_of(ids)
        self.ids.copy_(ids)
        for name in self.TENSORS:
            getattr(self.mask, name).copy_(getattr(fresh, name))


def choose_kernels(sdpa):
    if sdpa != "auto":
        b = torch.backends.cuda
        b.enable_flash_sdp(sdpa == "flash")
        b.enable_mem_efficient_sdp(sdpa == "efficient")
        b.enable_math_sdp(sdpa == "math")
        b.enable_cudnn_sdp(sdpa == "cudnn")
    torch.set_float32_matmul_precision("high")
