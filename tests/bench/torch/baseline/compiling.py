# SPDX-License-Identifier: Apache-2.0
"""torch.compile: the compiled parts of the model, and the settings."""
import contextlib
import os
from dataclasses import dataclass

import torch

from baseline.experts import Experts, experts_ffn
from baseline.settings import Ctx


@dataclass(frozen=True)
class Compiling:
    kw: dict
    scope: str  # block | model


def prepare_compiling(a, p, notes):
    if a.compile and a.pp > 1 and any(n in a.pp_schedule for n in ("Zero", "DualPipe")):
        a.compile = False
        notes.append("not compiled: torch does not offer torch.compile with the " + a.pp_schedule + " schedule")
    kw = {"dynamic": False}
    if a.compile_mode != "default":
        kw["mode"] = a.compile_mode
    if os.environ.get("BASELINE_COMPILE_BACKEND"):  # tests: aot_eager
        kw = {"dynamic": False, "backend": os.environ["BASELINE_COMPILE_BACKEND"]}
    scope = a.compile_scope
    if scope == "auto":
        scope = "block" if (a.fsdp or a.tp > 1 or a.pp > 1 or a.ep > 1) else "model"
    if a.compile:
        configure_torch(a, p)
    return Compiling(kw, scope)


def configure_torch(a, p):
    import torch._dynamo.config as dyn
    import torch._inductor.config as ind

    dyn.cache_size_limit = max(64, getattr(dyn, "cache_size_limit", 8))
    if a.async_tp:
        ind._micro_pipeline_tp = True
        with contextlib.suppress(Exception):
            from torch.distributed._symmetric_memory import enable_symm_mem_for_group

            enable_symm_mem_for_group(p.tp_group.group_name)
    if a.pp > 1:
        import torch._functorch.config as fc

        fc.donated_buffer = False  # split backward (dI/dW) keeps graphs alive


def apply_block_compile(model, kw):
    if Ctx.ep_size > 1:  # only the parts between the exchanges: the number of the experts' rows varies
        ffn = torch.compile(experts_ffn, **{k: v for k, v in kw.items() if k != "dynamic"})

        def run_ffn(x, p, offs, *w):
            torch._dynamo.mark_dynamic(x, 0)
            torch._dynamo.mark_dynamic(p, 0)
            return ffn(x, p, offs, *w)

        Experts.ffn = staticmethod(torch._dynamo.disable(run_ffn, recursive=False))
        for blk in model.layers.values():
            blk = getattr(blk, "_checkpoint_wrapped_module", blk)
            blk.before, blk.after = torch.compile(blk.before, **kw), torch.compile(blk.after, **kw)
        return
    for n, blk in list(model.layers.items()):
        model.layers[n] = torch.compile(blk, **kw)
