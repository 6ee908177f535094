# SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism: the stages of each rank, and the step by torch's schedules."""
import inspect
from dataclasses import dataclass

import torch

from baseline.loss import plain


def split_layers(L, S, spec):
    if spec:
        n = [int(v) for v in spec.split(",")]
        if len(n) != S or sum(n) != L:
            raise ValueError(f"--pp-split needs {S} numbers that add up to {L}")
    else:
        n = [L // S + (1 if i < L % S else 0) for i in range(S)]
        # the last stage also holds the head: give it the smaller share
        n.sort(reverse=True)
        if min(n) < 1:
            raise ValueError(f"{L} layers cannot fill {S} stages")
    out, o = [], 0
    for k in n:
        out.append(list(range(o, o + k)))
        o += k
    return out


@dataclass(frozen=True)
class Stages:
    """`held`: for each stage of this rank, its number, its layers, and whether it is the first and the last."""

    held: list
    number: int
    schedule: type = None
    multi: bool = False


def stages_of(a, p, cfg, notes):
    if a.pp <= 1:
        return Stages([(0, list(range(cfg.L)), True, True)], 1)
    from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class

    sched_cls = get_schedule_class(a.pp_schedule)
    multi = issubclass(sched_cls, PipelineScheduleMulti)
    per = (a.pp_virtual or 2) if multi else 1
    vshape = sched_cls.__name__ in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")
    if vshape:
        per = 2
    num_stages = a.pp * per
    chunks = split_layers(cfg.L, num_stages, a.pp_split)
    r = p.pp_mesh.get_local_rank()
    idx = [r, num_stages - 1 - r] if vshape else [r + k * a.pp for k in range(per)]
    if cfg.tied:
        notes.append("head untied under pp")
    return Stages([(i, chunks[i], i == 0, i == num_stages - 1) for i in idx], num_stages, sched_cls, multi)


class PipelineStep:
    def __init__(self, a, p, work, stages, parts, loss_fn, opt):
        from torch.distributed.pipelining import PipelineStage

        self.opt, self.device = opt, p.device
        nmb = a.pp_microbatches or work.B
        if work.B % nmb:
            raise ValueError("--batch must be a multiple of --pp-microbatches")
        made = [PipelineStage(m, i, stages.number, p.device, group=p.pp_group)
                for m, (i, _, _, _) in zip(parts, stages.held)]
        self.has_first = any(d[2] for d in stages.held)
        self.has_last = any(d[3] for d in stages.held)
        self.sched = stages.schedule(made if stages.multi else made[0], n_microbatches=nmb, loss_fn=loss_fn)
        self.skw = {"return_outputs": False} if "return_outputs" in inspect.signature(self.sched.step).parameters else {}

    def __call__(self, xs, ys):
        losses = [] if self.has_last else None
        args = (xs[0],) if self.has_first else ()
        self.sched.step(*args, target=ys[0] if self.has_last else None, losses=losses, **self.skw)
        self.opt.accumulate()
        self.opt.step()
        if self.has_last:
            return torch.stack([plain(v) for v in losses]).mean()
        return torch.zeros((), device=self.device)
