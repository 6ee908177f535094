# SPDX-License-Identifier: Apache-2.0
"""The command line, and refused combinations of its options."""
import argparse

from baseline.configs import PRESETS


def parse(description):
    ap = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=description)
    ap.add_argument("--model", default="gpt2-124m", choices=sorted(PRESETS))
    ap.add_argument("--layers", type=int, default=0, help="use fewer (or more) layers than the preset")
    ap.add_argument("--vocab", type=int, default=0, help="override the (padded) vocabulary")
    ap.add_argument("--batch", type=int, default=0, help="rows per data-parallel rank and micro-step (per step with --pp)")
    ap.add_argument("--seq", type=int, default=0)
    ap.add_argument("--accum", type=int, default=1, help="gradient accumulation micro-steps (not with --pp)")
    ap.add_argument("--data", default="arith", help="arith | rand | a token file (llm.c .bin or raw uint16)")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--data-seed", type=int, default=1234)
    ap.add_argument("--lr", type=float, default=3e-4)
    ap.add_argument("--wd", type=float, default=0.1)
    ap.add_argument("--clip", type=float, default=1.0, help="0 turns clipping off")
    ap.add_argument("--precision", default="auto", choices=["auto", "master", "bf16", "amp", "fp32"])
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--compile-mode", default="default",
                    choices=["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
    ap.add_argument("--compile-scope", default="auto", choices=["auto", "block", "model"])
    ap.add_argument("--cudagraphs", action="store_true", help="= --compile --compile-mode reduce-overhead")
    ap.add_argument("--graph", action="store_true", help="capture the WHOLE step (fwd, bwd, optimizer) in one CUDA graph")
    ap.add_argument("--no-fuse", action="store_true", help="separate q/k/v and gate/up GEMMs")
    ap.add_argument("--sdpa", default="auto", choices=["auto", "cudnn", "flash", "efficient", "math"])
    ap.add_argument("--ac", default="none", choices=["none", "full", "selective"])
    ap.add_argument("--fsdp", action="store_true")
    ap.add_argument("--no-reshard", action="store_true", help="FSDP: keep parameters gathered after forward (ZeRO-2)")
    ap.add_argument("--reduce", default="fp32", choices=["fp32", "bf16"], help="FSDP gradient reduction dtype")
    ap.add_argument("--replicate", type=int, default=1, help="FSDP: groups of ranks that hold all weights each (HSDP)")
    ap.add_argument("--fsdp-nosync", action="store_true", help="FSDP: reduce gradients on the last micro-step only")
    ap.add_argument("--ddp", action="store_true")
    ap.add_argument("--tp", type=int, default=1)
    ap.add_argument("--async-tp", action="store_true", help="needs --compile")
    ap.add_argument("--pp", type=int, default=1)
    ap.add_argument("--pp-schedule", default="1F1B",
                    help="GPipe | 1F1B | Interleaved1F1B | LoopedBFS | InterleavedZeroBubble | ZBVZeroBubble | DualPipeV")
    ap.add_argument("--pp-virtual", type=int, default=0, help="stages per rank of a multi-stage schedule (default 2)")
    ap.add_argument("--pp-microbatches", type=int, default=0, help="default: one row each")
    ap.add_argument("--pp-split", default="", help="layers per stage, comma separated")
    ap.add_argument("--fp8", default="", choices=["", "rowwise", "tensorwise", "rowwise_gw_hp", "torchao-rowwise",
                                                  "torchao-tensorwise", "torchao-rowwise_gw_hp"])
    ap.add_argument("--ep", type=int, default=1, help="MoE: experts split over this many data-parallel ranks")
    ap.add_argument("--cp", type=int, default=1)
    ap.add_argument("--cp-impl", default="ulysses", choices=["ulysses", "ring"])
    ap.add_argument("--documents", type=int, default=-1, metavar="TOKEN",
                    help="flex attention within documents that end with TOKEN: those of the first batch, in every step")
    ap.add_argument("--turns", action="store_true",
                    help="with --documents: measure the token file of each line of stdin, and answer with a line of JSON")
    ap.add_argument("--loss-steps", type=int, default=20, help="first steps, untimed, whose losses are printed")
    ap.add_argument("--steps", type=int, default=20, help="timed steps")
    ap.add_argument("--max-seconds", type=float, default=40.0, help="stop the timed part after this long")
    ap.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    ap.add_argument("--profile", default="", help="write a chrome trace of 2 steps here (rank 0)")
    ap.add_argument("--tag", default="")
    return ap.parse_args()


def resolve_names(a):
    if a.cudagraphs:
        a.compile, a.compile_mode = True, "reduce-overhead"
    a.pp_schedule = {"ZBV": "ZBVZeroBubble", "DualPipe": "DualPipeV"}.get(a.pp_schedule, a.pp_schedule)


def check_layout(a, world):
    if world % (a.tp * a.pp * a.cp):
        raise ValueError(f"world size {world} is not a multiple of tp*pp*cp = {a.tp * a.pp * a.cp}")
    dp = world // (a.tp * a.pp * a.cp)
    if dp > 1 and not (a.fsdp or a.ddp):
        raise ValueError(f"{dp} data-parallel ranks: say --fsdp or --ddp (or use more --tp/--pp/--cp)")
    if a.cp > 1 and not (a.fsdp or a.ddp):
        raise ValueError("--cp needs --fsdp or --ddp, which reduce the gradients over the cp ranks")
    if a.cp > 1 and a.pp > 1:
        raise ValueError("--cp together with --pp is not offered here")
    if a.ddp and (a.fsdp or a.tp > 1 or a.pp > 1):
        raise ValueError("--ddp goes with plain data (or context) parallelism only")
    if a.pp > 1 and a.accum > 1:
        raise ValueError("with --pp use --batch/--pp-microbatches instead of --accum")
    if a.async_tp and not a.compile:
        raise ValueError("--async-tp needs --compile")
    moe = PRESETS[a.model].E > 0
    if moe and (a.tp > 1 or a.pp > 1 or a.cp > 1):
        raise ValueError("MoE goes with --ddp, --fsdp and --ep only")
    if a.ep > 1 and (not moe or dp % a.ep or PRESETS[a.model].E % a.ep):
        raise ValueError("--ep needs an MoE model, and must divide its experts and the data-parallel ranks")
    if a.ep > 1 and a.compile and a.compile_scope == "model":
        raise ValueError("--ep compiles by blocks")
    if a.replicate > 1 and (not a.fsdp or a.tp * a.pp * a.cp * a.ep > 1 or dp % a.replicate):
        raise ValueError("--replicate goes with --fsdp alone, and must divide the ranks")
    if a.fp8 and a.tp > 1:
        raise ValueError("--fp8 together with --tp is not offered here")
    if a.documents >= 0 and (a.accum > 1 or a.pp > 1 or a.fsdp or a.ddp or a.tp > 1 or a.cp > 1):
        raise ValueError("--documents: one GPU and one micro-step only")
    if a.turns and a.documents < 0:
        raise ValueError("--turns measures documents; add --documents TOKEN")
    if a.graph and (a.pp > 1 or a.fsdp or a.tp > 1 or a.cp > 1 or a.ep > 1 or a.device != "cuda"):
        raise ValueError("--graph: one GPU or --ddp only")
    return dp


def check_work(a, work):
    cfg, T = work.cfg, work.T
    if a.fsdp and work.prec not in ("fp32", "bf16"):
        raise ValueError("--fsdp takes --precision fp32 (sharded fp32 parameters, bf16 compute) or bf16")
    if a.cp > 1 and a.cp_impl == "ulysses" and (cfg.KV % a.cp or cfg.H % a.cp):
        raise ValueError("--cp-impl ulysses needs heads divisible by --cp; use --cp-impl ring")
    if a.tp > 1 and (cfg.KV % a.tp or cfg.H % a.tp or cfg.FF % a.tp or T % a.tp or cfg.V % a.tp):
        raise ValueError("heads, kv heads, ffn, vocabulary and sequence must be divisible by --tp")
