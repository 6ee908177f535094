# SPDX-License-Identifier: Apache-2.0
"""Reproducible random numbers from hashes, in numpy and in torch: FNV-1a of names, splitmix64, uniform tensors."""
import math

import numpy as np
import torch

MASK64 = (1 << 64) - 1
GOLDEN, M1, M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def fnv1a64(s):
    h = 0xCBF29CE484222325
    for b in s.encode():
        h = ((h ^ b) * 0x100000001B3) & MASK64
    return h


def splitmix64_np(x):
    x = x.astype(np.uint64)
    with np.errstate(over="ignore"):
        z = x + np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(M1)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(M2)
        return z ^ (z >> np.uint64(31))


def _s64(u):  # uint64 -> the int64 with the same bits
    u &= MASK64
    return u - (1 << 64) if u >= (1 << 63) else u


def _lsr(z, n):  # logical shift right on int64
    return (z >> n) & ((1 << (64 - n)) - 1)


@torch.no_grad()
def hash_uniform_(t, name, std, seed, chunk=1 << 24):
    """Fill the contiguous tensor t (any float dtype) with uniform numbers, as the docstring of weights.py specifies."""
    key = fnv1a64(name) ^ (seed & MASK64)
    scale = float(np.float32(std * math.sqrt(3.0) * 2.0**-24))
    if not t.is_contiguous():
        raise RuntimeError("hash_uniform_ needs a contiguous tensor: " + name)
    flat = t.view(-1)
    n = flat.numel()
    for o in range(0, n, chunk):
        m = min(chunk, n - o)
        z = torch.arange(o, o + m, dtype=torch.int64, device=t.device)
        z.add_(_s64(key + GOLDEN))
        z = (z ^ _lsr(z, 30)) * _s64(M1)
        z = (z ^ _lsr(z, 27)) * _s64(M2)
        z = z ^ _lsr(z, 31)
        k = (2 * _lsr(z, 40) + 1 - (1 << 24)).to(torch.float32)
        flat[o : o + m].copy_(k * scale)
