# SPDX-License-Identifier: Apache-2.0
"""Mixture of experts, on one rank or split over several.

p = softmax(router x) over all experts in fp32; the k largest, divided by their sum (norm_topk_prob), then
rounded to x's dtype; y = sum over them of p_e * w2_e(silu(w1_e x) * w3_e x); dropless (p_e multiplies before w2_e).
One rank: tokens sorted by expert, offsets on the device, torch._grouped_mm, no host sync (a loop in fp32/fp64).
--ep N: experts split over N data-parallel ranks (rank r of a group holds experts r*E/N .. (r+1)*E/N-1), tokens sent by
all_to_all_single. Its split sizes must be host integers (NCCL takes host counts; torch has no device-side
ones): the counts are exchanged first and read back, with one host sync per layer in forward, as torchtitan does.
With --ddp (bf16 parameters, fp32 master) or --fsdp (experts sharded over the dp/ep ranks that hold the same ones).
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from baseline.settings import F32, Ctx


class Spread(torch.autograd.Function):
    """[tokens, C] -> [tokens*k, C], ordered by expert. Backward is a gather and a sum, without atomics."""

    @staticmethod
    def forward(ctx, x, order, inv, k):
        ctx.save_for_backward(inv)
        ctx.k = k
        return x.index_select(0, order // k if k > 1 else order)

    @staticmethod
    def backward(ctx, g):
        (inv,) = ctx.saved_tensors
        g = g.index_select(0, inv)
        return (g.view(-1, ctx.k, g.shape[-1]).sum(1) if ctx.k > 1 else g), None, None, None


class Collect(torch.autograd.Function):
    """The inverse: [tokens*k, C] -> [tokens, C], the sum of the k rows of each token."""

    @staticmethod
    def forward(ctx, y, order, inv, k):
        ctx.save_for_backward(order)
        ctx.k = k
        y = y.index_select(0, inv)
        return y.view(-1, k, y.shape[-1]).sum(1) if k > 1 else y

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g.index_select(0, order // ctx.k if ctx.k > 1 else order), None, None, None


def grouped_mm(x, w, offs):
    """Grouped GEMM: rows offs[e-1]..offs[e] of x times w[e]^T."""
    if x.dtype == torch.bfloat16:
        return torch._grouped_mm(x, w.transpose(-2, -1), offs=offs)
    ends = offs.tolist()  # fp32, fp64: tests only
    return torch.cat([x[b:e] @ w[i].t() for i, (b, e) in enumerate(zip([0] + ends[:-1], ends))])


def experts_ffn(x, p, offs, wa, wb, w2):
    """p * w2(silu(w1 x) * w3 x), with w1 and w3 stacked in wa if wb is None."""
    if wb is None:
        a, b = grouped_mm(x, wa, offs).chunk(2, dim=-1)
    else:
        a, b = grouped_mm(x, wa, offs), grouped_mm(x, wb, offs)
    return grouped_mm(F.silu(a) * b * p[:, None], w2, offs)


class Experts(nn.Module):
    """The experts of this rank, stacked: w13 [n, 2*FF, C] (or w1 and w3) and w2 [n, C, FF]."""

    ffn = staticmethod(experts_ffn)

    def __init__(self, cfg, fused, **kw):
        super().__init__()
        n = cfg.E // Ctx.ep_size
        self.ids = range(Ctx.ep_rank * n, (Ctx.ep_rank + 1) * n)
        self.fused = fused
        if fused:
            self.w13 = nn.Parameter(torch.empty(n, 2 * cfg.FF, cfg.C, **kw))
        else:
            self.w1 = nn.Parameter(torch.empty(n, cfg.FF, cfg.C, **kw))
            self.w3 = nn.Parameter(torch.empty(n, cfg.FF, cfg.C, **kw))
        self.w2 = nn.Parameter(torch.empty(n, cfg.C, cfg.FF, **kw))

    def forward(self, x, p, offs):
        if self.fused:
            return Experts.ffn(x, p, offs, self.w13, None, self.w2)
        return Experts.ffn(x, p, offs, self.w1, self.w3, self.w2)


class MoE(nn.Module):
    def __init__(self, cfg, fused, **kw):
        super().__init__()
        self.E, self.K = cfg.E, cfg.K
        self.router = nn.Linear(cfg.C, cfg.E, bias=False, **kw)
        self.experts = Experts(cfg, fused, **kw)

    def route(self, x):
        """Rows sorted by expert, their weights, the sort and its inverse, end offsets, and the sum of p per expert."""
        x = x.flatten(0, 1)
        prob = F.softmax(self.router(x).to(F32), dim=-1)
        p, e = torch.topk(prob, self.K, dim=-1)
        p = (p / p.sum(-1, keepdim=True)).to(x.dtype)
        e, order = torch.sort(e.flatten().to(torch.int32), stable=True)
        inv = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=x.device))
        offs = torch.searchsorted(e, torch.arange(self.E, device=x.device, dtype=torch.int32), right=True).to(torch.int32)
        rows = Spread.apply(x, order, inv, self.K)
        p = Spread.apply(p.reshape(-1, 1), order, inv, 1).squeeze(1)
        return rows, p, order, inv, offs, prob.sum(0)


@torch._dynamo.disable
def ep_exchange(rows, p, offs):
    """Sends rows to their experts' ranks. Returns received rows and weights, sorted by expert, and the way back."""
    import torch.distributed._functional_collectives as funcol

    n, g = Ctx.ep_size, Ctx.ep_group
    counts = torch.diff(offs, prepend=offs.new_zeros(1))
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts, group=g)
    mine, got = torch.stack([counts.view(n, -1).sum(1), theirs.view(n, -1).sum(1)]).tolist()  # the host sync
    rows = funcol.all_to_all_single_autograd(rows, got, mine, g)
    p = funcol.all_to_all_single_autograd(p, got, mine, g)
    local = torch.arange(theirs.numel() // n, device=rows.device, dtype=torch.int32).repeat(n)
    e, order = torch.sort(local.repeat_interleave(theirs, output_size=sum(got)), stable=True)
    inv = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=rows.device))
    rows = Spread.apply(rows, order, inv, 1)
    p = Spread.apply(p[:, None], order, inv, 1).squeeze(1)
    return rows, p, theirs.view(n, -1).sum(0).cumsum(0).to(torch.int32), (order, inv, mine, got)


@torch._dynamo.disable
def ep_return(out, way):
    import torch.distributed._functional_collectives as funcol

    order, inv, mine, got = way
    out = Collect.apply(out, order, inv, 1)
    return torch.ops._c10d_functional.wait_tensor(funcol.all_to_all_single_autograd(out, mine, got, Ctx.ep_group))
