# SPDX-License-Identifier: Apache-2.0
"""A run, from its arguments to its printed line."""
import json
import time

import torch
import torch.distributed as dist

from baseline.arguments import check_layout, check_work, resolve_names
from baseline.attention import choose_kernels
from baseline.building import build_parts, transform
from baseline.compiling import prepare_compiling
from baseline.configs import work_of
from baseline.data import Batches, Data
from baseline.loss import loss_function
from baseline.optimizers import make_optimizer, parameters_of
from baseline.pipeline import PipelineStep, stages_of
from baseline.processes import Processes
from baseline.result import result
from baseline.steps import PlainStep
from baseline.timing import first_steps, log, profile_steps, timed_steps
from baseline.turns import take_turns
from baseline.whole_graph import WholeGraph


def run(a):
    t_begin = time.time()
    notes = []
    resolve_names(a)
    p = Processes(a)
    dp = check_layout(a, p.world)
    work = work_of(a)
    check_work(a, work)
    p.make_meshes(a, dp)
    choose_kernels(a.sdpa)

    stages = stages_of(a, p, work.cfg, notes)
    parts = build_parts(a, p, work, stages)
    compiling = prepare_compiling(a, p, notes)
    transform(a, p, work, parts, compiling, notes)
    params, experts = parameters_of(parts, a.ep)
    opt = make_optimizer(a, p, work.prec, params, experts)
    if p.cuda:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    loss_fn = loss_function(a, p, work.cfg, compiling)
    data = Data(a.data, work.cfg.vtok, work.T, a.data_seed)
    batches = Batches(data, a.accum, dp, p.dp_rank, work.B, p.device)
    if a.pp > 1:
        step = PipelineStep(a, p, work, stages, parts, loss_fn, opt)
    else:
        step = PlainStep(a, p, work, parts[0], loss_fn, opt, experts, compiling)
    graph = WholeGraph(step, *batches.step(0)) if a.graph else None
    if a.turns:
        return take_turns(a, p, work, step, graph, notes)

    setup_s = time.time() - t_begin
    first = first_steps(a, p, work, step, graph, batches, notes)
    ahead = [batches.step(a.loss_steps + i) for i in range(min(a.steps, 8))]  # on the device, bounded
    p.sync()
    if p.par:
        dist.barrier()
    log(f"timing; peak so far {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if p.cuda else "timing")
    timed = timed_steps(a, p, first.step, ahead)
    if a.profile and p.cuda:
        profile_steps(a, p, first.step, ahead)

    whole_graph = bool(a.graph and graph.captured)
    res = result(a, p, work, batches.GB, compiling.scope, whole_graph, first, timed, setup_s, notes)
    if p.rank == 0:
        print(json.dumps(res), flush=True)
    p.leave()
