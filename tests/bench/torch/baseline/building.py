# SPDX-License-Identifier: Apache-2.0
"""This rank's parts of the model, one for each pipeline stage, and the wrappers applied to them, in order."""
import torch

from baseline.compiling import apply_block_compile
from baseline.eight_bits import apply_fp8
from baseline.model import Model
from baseline.parallel import apply_fsdp, apply_tp
from baseline.recompute import apply_ac
from baseline.settings import BF16
from baseline.weights import init_weights


def build_parts(a, p, work, stages):
    fused = a.tp == 1 and not a.no_fuse
    parts = []
    for _, ids, first, last in stages.held:
        m = Model(work.cfg, work.T, ids, first, last, fused, work.tied, p.device, work.pdtype)
        init_weights(m, a.seed)
        parts.append(m)
    return parts


def transform(a, p, work, parts, compiling, notes):
    for m in parts:
        if a.fp8:
            apply_fp8(m, a.fp8)
        if a.tp > 1:
            apply_tp(m, p.tp_mesh)
        if a.ac != "none":
            apply_ac(m, a.ac)
        if a.compile and compiling.scope == "block":
            fullgraph = not (a.cp > 1 or (work.cfg.E and BF16 is not torch.bfloat16))
            apply_block_compile(m, dict(compiling.kw, fullgraph=fullgraph))
        if a.fsdp:
            apply_fsdp(m, p.fsdp_mesh, not a.no_reshard and a.pp == 1, BF16,
                       torch.float32 if a.reduce == "fp32" else BF16, p.ep_mesh["edp"] if a.ep > 1 else None)
            if a.fsdp_nosync and a.pp > 1:
                notes.append("fsdp-nosync ignored with pp")
