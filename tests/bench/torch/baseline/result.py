# SPDX-License-Identifier: Apache-2.0
"""The printed line.

FLOPs per token: 6*N_matmul + 12*L*(H*D)*T (nanoGPT/PaLM count) -> mfu_*; mfu_causal_* halves the attention term.
"""
import contextlib
import statistics
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist

from baseline.settings import F32


def group_size(g):
    return dist.get_world_size(g) if g is not None else 1


@dataclass(frozen=True)
class Measured:
    losses: list  # the first steps', and the last timed step's
    aux_losses: list
    ms: list  # median, minimum and ninth decile
    bytes: list  # peaks of allocated and of reserved memory


def over_ranks(a, p, first, timed):
    """Losses are averaged over the ranks that share the batch; times and memory are the largest."""
    ms = timed.ms
    lt = torch.stack([v.reshape(()) for v in first.losses] + [timed.last.reshape(())]).to(p.device).to(F32)
    med = torch.tensor([statistics.median(ms), min(ms), sorted(ms)[int(0.9 * (len(ms) - 1))]], device=p.device)
    mem = torch.tensor([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()] if p.cuda else [0, 0],
                       dtype=torch.float64, device=p.device)
    if p.par:
        if group_size(p.red_group) > 1:
            dist.all_reduce(lt, group=p.red_group)
            lt /= group_size(p.red_group)
        if a.pp > 1:  # only the last stage's ranks hold losses; the others hold zeros
            dist.all_reduce(lt, group=p.pp_group)
        dist.all_reduce(med, op=dist.ReduceOp.MAX)
        dist.all_reduce(mem, op=dist.ReduceOp.MAX)
    at = torch.stack(first.auxs).to(F32) if first.auxs else None
    if first.auxs and p.par and group_size(p.red_group) > 1:
        dist.all_reduce(at, group=p.red_group)
        at /= group_size(p.red_group)
    return Measured(lt.tolist(), at.tolist() if first.auxs else [], med.tolist(), mem.tolist())


@dataclass(frozen=True)
class Arithmetic:
    n_mm: int  # GEMM parameters per token
    n_all: int
    f_tok: int
    f_causal: int


def arithmetic(cfg, T, tied):
    C, HD, KD = cfg.C, cfg.H * cfg.D, cfg.KV * cfg.D
    ffn = (2 if cfg.arch == "gpt2" else 3) * C * cfg.FF
    if cfg.E:  # only the parameters that a token uses
        ffn = cfg.K * ffn + cfg.E * C
    per_layer = C * (HD + 2 * KD) + HD * C + ffn
    n_mm = cfg.L * per_layer + cfg.V * C
    n_all = n_mm + (0 if tied else cfg.V * C) + (T * C if cfg.arch == "gpt2" else 0)
    if cfg.E:
        n_all += cfg.L * (cfg.E - cfg.K) * 3 * C * cfg.FF
    att = 12 * cfg.L * HD * T
    return Arithmetic(n_mm, n_all, 6 * n_mm + att, 6 * n_mm + att // 2)


def result(a, p, work, GB, scope, whole_graph, first, timed, setup_s, notes):
    measured = over_ranks(a, p, first, timed)
    lt, med, mem = measured.losses, measured.ms, measured.bytes
    cfg, T, tied, world = work.cfg, work.T, work.tied, p.world
    n = arithmetic(cfg, T, tied)
    nsteps = len(timed.ms)
    tok = GB * T
    sec = med[0] / 1e3
    tfs, tfc = (tok * f / sec / world / 1e12 for f in (n.f_tok, n.f_causal))
    digits = 12 if F32 is torch.float64 else 6
    res = {
        "ok": True, "tag": a.tag, "model": a.model, "layers": cfg.L, "params_m": round(n.n_all / 1e6, 1),
        "gpus": world, "dp": p.dp, "tp": a.tp, "pp": a.pp, "cp": a.cp,
        "mode": ("fsdp" if a.fsdp else "ddp" if a.ddp else "single" if world == 1 else "mp"),
        "pp_schedule": a.pp_schedule if a.pp > 1 else None, "cp_impl": a.cp_impl if a.cp > 1 else None,
        "batch": work.B, "seq": T, "accum": a.accum, "tokens_per_step": tok, "precision": work.prec,
        "compile": a.compile_mode if a.compile else None, "compile_scope": scope if a.compile else None,
        "whole_graph": whole_graph, "sdpa": a.sdpa, "ac": a.ac, "async_tp": a.async_tp,
        "steps": nsteps, "step_ms": round(med[0], 3), "step_ms_min": round(med[1], 3), "step_ms_p90": round(med[2], 3),
        "wall_ms": round(timed.wall * 1e3 / nsteps, 3),
        "tok_s": round(tok / sec), "tok_s_gpu": round(tok / sec / world),
        "tflops_gpu": round(tfs, 1), "mfu_989": round(tfs / 989, 4), "mfu_790": round(tfs / 790, 4),
        "mfu_causal_989": round(tfc / 989, 4), "mfu_causal_790": round(tfc / 790, 4),
        "peak_gib": round(mem[0] / 2**30, 2), "reserved_gib": round(mem[1] / 2**30, 2),
        "losses": [round(v, digits) for v in lt[:-1]], "last_loss": round(lt[-1], 6),
        "first_step_s": round(first.seconds or 0, 1), "setup_s": round(setup_s, 1), "notes": notes,
        "torch": torch.__version__, "device": torch.cuda.get_device_name() if p.cuda else "cpu",
    }
    if a.fp8:
        res["fp8"] = a.fp8
    if cfg.E:
        res.update(ep=a.ep, experts=cfg.E, top_k=cfg.K,
                   active_params_m=round((n.n_mm + (0 if tied else cfg.V * cfg.C)) / 1e6, 1),
                   aux_losses=[round(v, digits) for v in measured.aux_losses])
    if p.cuda:
        with contextlib.suppress(Exception):
            res["cudnn"] = torch.backends.cudnn.version()
            res["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return res


def failure(a, error):
    return {"ok": False, "tag": a.tag, "model": a.model, "error": repr(error)[:600],
            "argv": sys.argv[1:], "torch": torch.__version__}
