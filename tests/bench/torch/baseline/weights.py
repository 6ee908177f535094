# SPDX-License-Identifier: Apache-2.0
"""The initial weights of a model, specified so that another program can be compared number for number.

w[i] = float32( k * (a * 2^-24) ), k = 2*(z >> 40) + 1 - 2^24 (odd, |k| < 2^24, exact in float32),
z = splitmix64(key + i) (wrapping uint64), key = fnv1a64(name) ^ seed, i = row-major flat index in the
UNSHARDED, UNFUSED tensor; a = std*sqrt(3), (a * 2^-24) rounded once to float32.  So uniform(-a, a).
std = 0.02; 0.02/sqrt(2*L) for layers.N.wo and layers.N.w2.  Norm weights 1, biases 0.
Names: wte, wpe, layers.N.{norm1,wq,wk,wv,wo,norm2,w1,w3,w2}, norm, lm_head (all [out, in] row-major).
Qwen3 adds layers.N.{q_norm,k_norm} (head_dim values, 1). MoE: layers.N.router [experts, C] (std 0.02) and, each
hashed separately, layers.N.experts.E.{w1,w3} [FF, C] (std 0.02; w1 gate, w3 up) and layers.N.experts.E.w2 [C, FF]
(std 0.02/sqrt(2*L)) instead of layers.N.{w1,w3,w2}.
With bf16 parameters the same float32 value is rounded to nearest even.
"""
import math

import torch

from baseline.hashing import hash_uniform_


@torch.no_grad()
def init_weights(model, seed):
    cfg = model.cfg
    res = 0.02 / math.sqrt(2 * cfg.L)

    def lin(m, names, rows, std):
        o = 0
        for nm, r in zip(names, rows):
            hash_uniform_(m.weight[o : o + r], nm, std, seed)
            o += r
        if getattr(m, "bias", None) is not None:
            m.bias.zero_()

    def norm(m):
        m.weight.fill_(1.0)
        if getattr(m, "bias", None) is not None:
            m.bias.zero_()

    if model.wte is not None:
        hash_uniform_(model.wte.weight, "wte", 0.02, seed)
    if model.wpe is not None:
        hash_uniform_(model.wpe.weight, "wpe", 0.02, seed)
    for i in model.ids:
        b, p = model.layers[str(i)], f"layers.{i}."
        norm(b.norm1)
        norm(b.norm2)
        a, m = b.attn, b.mlp
        if a.fused:
            lin(a.wqkv, [p + "wq", p + "wk", p + "wv"], [a.HD, a.KD, a.KD], 0.02)
        else:
            for nm, w in (("wq", a.wq), ("wk", a.wk), ("wv", a.wv)):
                lin(w, [p + nm], [w.weight.shape[0]], 0.02)
        lin(a.wo, [p + "wo"], [cfg.C], res)
        if a.qk_norm:
            norm(a.q_norm)
            norm(a.k_norm)
        if cfg.E:
            lin(m.router, [p + "router"], [cfg.E], 0.02)
            for j, e in enumerate(m.experts.ids):
                pe = p + f"experts.{e}."
                if m.experts.fused:
                    hash_uniform_(m.experts.w13[j, : cfg.FF], pe + "w1", 0.02, seed)
                    hash_uniform_(m.experts.w13[j, cfg.FF :], pe + "w3", 0.02, seed)
                else:
                    hash_uniform_(m.experts.w1[j], pe + "w1", 0.02, seed)
                    hash_uniform_(m.experts.w3[j], pe + "w3", 0.02, seed)
                hash_uniform_(m.experts.w2[j], pe + "w2", res, seed)
            continue
        if m.fused:
            lin(m.w13, [p + "w1", p + "w3"], [cfg.FF, cfg.FF], 0.02)
        else:
            lin(m.w1, [p + "w1"], [cfg.FF], 0.02)
            if not m.gelu:
                lin(m.w3, [p + "w3"], [cfg.FF], 0.02)
        lin(m.w2, [p + "w2"], [cfg.C], res)
    if model.norm is not None:
        norm(model.norm)
    if model.lm_head is not None and not model.tied:
        lin(model.lm_head, ["lm_head"], [cfg.V], 0.02)
