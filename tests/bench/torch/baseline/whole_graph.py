# SPDX-License-Identifier: Apache-2.0
"""--graph: the WHOLE step (forward, backward, optimizer) captured in one CUDA graph."""
import gc

import torch


class WholeGraph:
    """Replays the captured step on the batch that it is called with."""

    def __init__(self, step, xs, ys):
        self.step, self.xs, self.ys = step, xs, ys
        self.graph = self.out = None
        self.captured = False

    def fill(self, xs, ys):
        for d, s in zip(self.xs, xs):
            d.copy_(s)
        for d, s in zip(self.ys, ys):
            d.copy_(s)

    def warm_up(self, xs, ys):
        """An eager step on a side stream, which capture requires."""
        st = torch.cuda.Stream()
        st.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(st):
            loss = self.step(xs, ys)
        torch.cuda.current_stream().wait_stream(st)
        return loss

    def capture(self, xs, ys):
        self.graph = torch.cuda.CUDAGraph()
        self.fill(xs, ys)
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()  # the graph gets a separate pool; free the memory of the eager one
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.out = self.step(self.xs, self.ys)
        torch.cuda.synchronize()
        self.captured = True

    def __call__(self, xs, ys):
        self.fill(xs, ys)
        self.graph.replay()
        return self.out.clone()
