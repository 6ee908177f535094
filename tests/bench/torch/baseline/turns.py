# SPDX-License-Identifier: Apache-2.0
"""Turns: a process that measures one token file after another, so that another program can run between them."""
import json
import statistics
import sys

from baseline.data import Batches, Data
from baseline.timing import first_steps, timed_steps


def take_turns(a, p, work, step, graph, notes):
    """For each token file named on stdin, prints the loss of its first step and the median of its timed steps."""
    for line in sys.stdin:
        batches = Batches(Data(line.strip(), work.cfg.vtok, work.T, a.data_seed), 1, 1, 0, work.B, p.device)
        step.set_documents(batches.step(0)[0][0])
        first = first_steps(a, p, work, graph if graph and graph.captured else step, graph, batches, notes)
        ahead = [batches.step(a.loss_steps + i) for i in range(min(a.steps, 8))]
        p.sync()
        timed = timed_steps(a, p, first.step, ahead)
        print(json.dumps({"loss": float(first.losses[0]), "step_ms": statistics.median(timed.ms), "notes": notes}), flush=True)
