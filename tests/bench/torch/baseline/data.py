# SPDX-License-Identifier: Apache-2.0
"""The tokens of every step.

tokens  sample s (global, 0-based): start = splitmix64(2*s + data_seed) % Vtok,
        stride = 1 + splitmix64(2*s + 1 + data_seed) % 7; tok[t] = (start + stride*t) % Vtok, t = 0..T;
        input tok[:T], target tok[1:T+1].  `--data FILE` instead: sample s = tokens[s*T : s*T+T+1] (wraps).
        `--data rand`: tok[t] = splitmix64(s*(T+1) + t + data_seed) % Vtok.
order   step n, micro-step m, data-parallel rank r, row b -> s = n*GB + m*(dp*B) + r*B + b,  GB = accum*dp*B.
        With --pp the local batch is split in order into microbatches of B/microbatches rows.
"""
import numpy as np
import torch

from baseline.hashing import splitmix64_np


class Data:
    def __init__(self, src, vtok, T, seed):
        self.src, self.vtok, self.T, self.seed = src, vtok, T, seed
        self.tokens = None
        if src not in ("arith", "rand"):
            head = np.fromfile(src, dtype=np.int32, count=256)
            if head.size == 256 and head[0] in (20240520, 20240801):  # llm.c .bin header
                dt = np.uint32 if head[0] == 20240801 else np.uint16
                self.tokens = np.memmap(src, dtype=dt, mode="r", offset=1024)
            else:
                self.tokens = np.memmap(src, dtype=np.uint16, mode="r")
            if self.tokens.size < T + 1:
                raise ValueError("token file is shorter than one sequence")

    def sample(self, s):
        T = self.T
        if self.tokens is not None:
            nseq = (self.tokens.size - 1) // T
            o = (s % nseq) * T
            return np.asarray(self.tokens[o : o + T + 1], dtype=np.int64)
        sd = np.uint64(self.seed)
        if self.src == "rand":
            i = np.arange(T + 1, dtype=np.uint64) + np.uint64(s * (T + 1)) + sd
            return (splitmix64_np(i) % np.uint64(self.vtok)).astype(np.int64)
        h = splitmix64_np(np.array([2 * s, 2 * s + 1], dtype=np.uint64) + sd)
        start, stride = int(h[0]) % self.vtok, 1 + int(h[1]) % 7
        return (start + stride * np.arange(T + 1, dtype=np.int64)) % self.vtok

    def batch(self, first, B, device):
        a = torch.from_numpy(np.stack([self.sample(first + b) for b in range(B)])).to(device)
        return a[:, :-1].contiguous(), a[:, 1:].contiguous()


class Batches:
    """The micro-step batches of any step, for one data-parallel rank."""

    def __init__(self, data, accum, dp, dp_rank, B, device):
        self.data, self.accum, self.dp, self.dp_rank, self.B, self.device = data, accum, dp, dp_rank, B, device
        self.GB = accum * dp * B

    def step(self, n):
        xs, ys = [], []
        for m in range(self.accum):
            x, y = self.data.batch(n * self.GB + m * self.dp * self.B + self.dp_rank * self.B, self.B, self.device)
            xs.append(x)
            ys.append(y)
        return xs, ys
