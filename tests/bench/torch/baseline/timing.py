# SPDX-License-Identifier: Apache-2.0
"""The steps of a run: first steps for their losses, then timed steps, then steps for a profile."""
import gc
import os
import sys
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist


def log(*a):
    if int(os.environ.get("RANK", "0")) == 0:
        print(*a, file=sys.stderr, flush=True)


@dataclass
class FirstSteps:
    losses: list
    auxs: list
    step: object  # the form of all further steps: captured, if requested and successful
    seconds: float = None  # of the first step


def first_steps(a, p, work, step, graph, batches, notes):
    t_begin = time.time()
    first = FirstSteps([], [], step)
    warm_eager = 4 if not a.ddp else 12
    for n in range(a.loss_steps):
        xs, ys = batches.step(n)
        if a.graph and not graph.captured and n == min(warm_eager, a.loss_steps - 1):
            try:
                graph.capture(xs, ys)
                first.step = graph
            except Exception as e:  # capture failed: continue eagerly, with a note
                notes.append("whole-step graph capture failed: " + repr(e)[:300])
                a.graph = False
                torch.cuda.synchronize()
        if a.graph and not graph.captured:
            first.losses.append(graph.warm_up(xs, ys))
        else:
            first.losses.append(first.step(xs, ys))
        if work.cfg.E:
            first.auxs.append(step.take_aux())
        if first.seconds is None:
            p.sync()
            first.seconds = time.time() - t_begin
            log(f"first step after {first.seconds:.1f} s")
    return first


@dataclass
class Timed:
    ms: list
    wall: float
    last: object  # the last step's loss


def timed_steps(a, p, step, batches):
    gc.collect()
    gc.disable()
    evs, walls, t0 = [], [], time.time()
    last = None
    for i in range(a.steps):
        xs, ys = batches[i % len(batches)]
        if p.cuda:
            e0, e1 = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            e0.record()
        w0 = time.perf_counter()
        last = step(xs, ys)
        if p.cuda:
            e1.record()
            evs.append((e0, e1))
        walls.append(time.perf_counter() - w0)
        if i % 5 == 4 or i == a.steps - 1:  # bound the queue, and agree whether to stop
            p.sync()
            stop = torch.tensor([1.0 if time.time() - t0 > a.max_seconds else 0.0], device=p.device)
            if p.par:
                dist.all_reduce(stop, op=dist.ReduceOp.MAX)
            if stop.item() > 0:
                break
    p.sync()
    wall = time.time() - t0
    return Timed([x.elapsed_time(y) for x, y in evs] if p.cuda else [w * 1e3 for w in walls], wall, last)


def profile_steps(a, p, step, batches):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        for i in range(2):
            step(*batches[i % len(batches)])
        p.sync()
    if p.rank == 0:
        prof.export_chrome_trace(a.profile)
        log(prof.key_averages().table(sort_by="cuda_time_total", row_limit=25))
