# SPDX-License-Identifier: Apache-2.0
"""--fp8: float8 matmuls, forward, dX and dW, in every linear of the blocks (not head, embedding, router, experts).

Scaled dynamically, amax in the tensor's own dtype, out in bf16, bias added after: q = cast(saturate(x * s)),
s = max(type) / max(amax, 1e-12). fp8 GEMMs of y use fast accumulation, those of dX and dW do not (as torchao).
rowwise: e4m3 throughout, a scale per row of each operand of each GEMM, s rounded down to a power of two.
tensorwise: one scale a tensor, e4m3, gradients e5m2.   rowwise_gw_hp: y rowwise; dX with gradients rowwise and
weights tensorwise, all e4m3, power-of-two scales; dW in bf16.
torchao-rowwise, torchao-tensorwise, torchao-rowwise_gw_hp: the same recipes by torchao.float8 (its rowwise dX and dW
run the tensorwise GEMM with scale 1 and multiply by the scales afterwards; here they run the rowwise GEMM).
"""
import torch
import torch.nn as nn

from baseline.settings import F32

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def f8_cast(x, dtype, dim=None, pow2=False):
    """x in float8 and its scales: one per slice along dim (kept, size 1), or one for the whole tensor."""
    amax = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    top = torch.finfo(dtype).max
    s = top / amax.to(torch.float32).clamp(min=1e-12)
    if pow2:
        s = torch.exp2(torch.floor(torch.log2(s)))
    return (x.to(torch.float32) * s).clamp(-top, top).to(dtype), s


def f8_mm(a, sa, b, sb, out, fast):
    """a [M, K] times b [N, K]^T. sa and sb are the scales already applied to a and b: [M, 1] and [N, 1], or scalars."""
    sa, sb = sa.reciprocal(), sb.reciprocal()
    if sb.dim():
        sb = sb.t()
    if not a.is_cuda:  # tests
        return ((a.to(F32) * sa) @ (b.to(F32).t() * sb)).to(out)
    return torch._scaled_mm(a.contiguous(), b.contiguous().t(), scale_a=sa, scale_b=sb.contiguous(), out_dtype=out,
                            use_fast_accum=fast)


class F8Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, mode):
        ctx.save_for_backward(x, w)
        ctx.mode = mode
        d, pow2 = (None, False) if mode == "tensorwise" else (-1, True)
        return f8_mm(*f8_cast(x, E4M3, d, pow2), *f8_cast(w, E4M3, d, pow2), x.dtype, True)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if ctx.mode == "tensorwise":
            (gq, gs), (wq, ws), (xq, xs) = f8_cast(g, E5M2), f8_cast(w, E4M3), f8_cast(x, E4M3)
            dx = f8_mm(gq, gs, wq.t(), ws, x.dtype, False)
            return dx, f8_mm(gq.t(), gs, xq.t(), xs, w.dtype, False), None
        gq, gs = f8_cast(g, E4M3, -1, True)
        if ctx.mode == "rowwise_gw_hp":
            wq, ws = f8_cast(w, E4M3, None, True)
            dx = f8_mm(gq, gs, wq.t(), ws.expand(w.shape[1], 1), x.dtype, False)
            return dx, g.t() @ x, None
        wq, ws = f8_cast(w, E4M3, 0, True)
        dx = f8_mm(gq, gs, wq.t(), ws.t(), x.dtype, False)
        (gq, gs), (xq, xs) = f8_cast(g, E4M3, 0, True), f8_cast(x, E4M3, 0, True)
        return dx, f8_mm(gq.t(), gs.t(), xq.t(), xs.t(), w.dtype, False), None


class F8Linear(nn.Linear):
    mode = ""

    def forward(self, x):
        y = F8Matmul.apply(x.reshape(-1, x.shape[-1]), self.weight, self.mode).view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


def apply_fp8(model, mode):
    for blk in model.layers.values():
        mods = [(n, m) for n, m in blk.named_modules() if isinstance(m, nn.Linear) and not n.endswith("router")]
        for n, m in mods:
            if m.in_features % 16 or m.out_features % 16:
                raise ValueError("--fp8 needs sizes that are multiples of 16: " + n)
        if mode.startswith("torchao-"):
            from torchao.float8 import Float8LinearConfig, convert_to_float8_training

            recipe = {"rowwise_gw_hp": "rowwise_with_gw_hp"}.get(mode[8:], mode[8:])
            names = {n for n, _ in mods}
            convert_to_float8_training(blk, config=Float8LinearConfig.from_recipe_name(recipe),
                                       module_filter_fn=lambda m, fqn, names=names: fqn in names)
        else:
            for _, m in mods:
                m.__class__, m.mode = F8Linear, mode
