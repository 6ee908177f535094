# SPDX-License-Identifier: Apache-2.0
"""The loss: mean token cross-entropy in fp32 from bf16 logits.

MoE adds 0.001 * aux, as Hugging Face's load_balancing_loss_func does over all layers at once: aux = E * sum_e f_e P_e,
f_e = (number of the k*tokens*L choices that are e) / (tokens*L), P_e = mean of p_e over tokens and layers; no gradient
through f. "tokens" are those of one forward call, on one data-parallel rank in one micro-step. `losses` holds the
trained sum, `aux_losses` aux alone.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from baseline.settings import F32


def ce_loss(logits, y):
    return F.cross_entropy(logits.flatten(0, 1).to(F32), y.flatten(0, 1))


def _vp_max(z):
    return z.to(F32).amax(-1)


def _vp_sums(z, m, y, lo):
    zf = z.to(F32)
    t = y - lo
    inside = (t >= 0) & (t < z.shape[-1])
    zt = zf.gather(-1, t.clamp(0, z.shape[-1] - 1)[:, None]).squeeze(-1)
    return torch.stack([(zf - m[:, None]).exp().sum(-1), torch.where(inside, zt, torch.zeros_like(zt))])


def _vp_grad(z, lse, y, lo, scale):
    cols = torch.arange(z.shape[-1], device=z.device)
    p = (z.to(F32) - lse[:, None]).exp() - (cols[None, :] == (y - lo)[:, None]).to(F32)
    return (p * scale).to(z.dtype)


class VocabParallelCE(torch.autograd.Function):
    """Mean cross-entropy over logits whose vocabulary is split over the tensor-parallel group (as Megatron does)."""

    fns = (_vp_max, _vp_sums, _vp_grad)

    @staticmethod
    def forward(ctx, z, y, group, lo):
        fmax, fsums, _ = VocabParallelCE.fns
        m = fmax(z)
        dist.all_reduce(m, op=dist.ReduceOp.MAX, group=group)
        st = fsums(z, m, y, lo)
        dist.all_reduce(st, group=group)
        lse = m + st[0].log()
        ctx.save_for_backward(z, lse, y)
        ctx.lo = lo
        return (lse - st[1]).mean()

    @staticmethod
    def backward(ctx, g):
        z, lse, y = ctx.saved_tensors
        return VocabParallelCE.fns[2](z, lse, y, ctx.lo, g / z.shape[0]), None, None, None


class LossModel(nn.Module):
    def __init__(self, model, loss_fn):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn

    def forward(self, x, y, pos=None):
        z = self.model(x, pos)
        if isinstance(z, tuple):  # MoE: logits and the auxiliary loss
            return self.loss_fn(z[0], y) + self.model.cfg.aux * z[1], z[1].detach()
        return self.loss_fn(z, y)


def loss_function(a, p, cfg, compiling):
    loss_kw = {k: v for k, v in compiling.kw.items() if k != "mode"}
    if a.tp > 1:
        if a.compile:
            VocabParallelCE.fns = tuple(torch.compile(f, **loss_kw) for f in (_vp_max, _vp_sums, _vp_grad))
        group, lo = p.tp_group, p.tp_mesh.get_local_rank() * (cfg.V // a.tp)

        def loss_fn(z, y):
            return VocabParallelCE.apply(z.flatten(0, 1), y.flatten(0, 1), group, lo)

        return loss_fn
    if a.compile and compiling.scope == "block":
        return torch.compile(ce_loss, **loss_kw)
    return ce_loss


def plain(t):
    """The loss as a number, for the report."""
    return t.detach().to(F32).clone()
