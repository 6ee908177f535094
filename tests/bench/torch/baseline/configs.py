# SPDX-License-Identifier: Apache-2.0
"""The models, and the configuration of a run."""
from dataclasses import dataclass, replace

from baseline.settings import BF16, F32


@dataclass(frozen=True)
class Cfg:
    arch: str
    L: int
    C: int
    H: int
    KV: int
    FF: int
    V: int
    T: int
    tied: bool = False
    theta: float = 500000.0
    vtok: int = 0
    hd: int = 0  # head size, if it is not C / H
    eps: float = 1e-5
    E: int = 0  # number of experts, each of width FF; a token takes K of them
    K: int = 0
    aux: float = 0.001

    @property
    def D(self):
        return self.hd or self.C // self.H


PRESETS = {
    "gpt2-124m": Cfg("gpt2", 12, 768, 12, 12, 3072, 50304, 1024, True, vtok=50257),
    "gpt2-350m": Cfg("gpt2", 24, 1024, 16, 16, 4096, 50304, 1024, True, vtok=50257),
    "gpt2-774m": Cfg("gpt2", 36, 1280, 20, 20, 5120, 50304, 1024, True, vtok=50257),
    "gpt2-1.5b": Cfg("gpt2", 48, 1600, 25, 25, 6400, 50304, 1024, True, vtok=50257),
    "llama-1b": Cfg("llama", 16, 2048, 32, 8, 8192, 128256, 8192, True, vtok=128256),
    "llama3-3b": Cfg("llama", 28, 3072, 24, 8, 8192, 128256, 4096, False, vtok=128256),
    "llama3-8b": Cfg("llama", 32, 4096, 32, 8, 14336, 128256, 8192, False, vtok=128256),
    "llama3-70b": Cfg("llama", 80, 8192, 64, 8, 28672, 128256, 8192, False, vtok=128256),
    "tiny-gpt2": Cfg("gpt2", 4, 64, 4, 4, 256, 512, 64, True, vtok=500),
    "tiny-llama": Cfg("llama", 8, 64, 8, 4, 176, 512, 64, False, vtok=500),
    "qwen3-0.6b": Cfg("qwen3", 28, 1024, 16, 8, 3072, 151936, 4096, True, 1e6, vtok=151936, hd=128, eps=1e-6),
    # Qwen3-30B-A3B has 48 such layers; 8 with fp32 master weights, moments and gradients (18 B each) fit an H200
    "qwen3-moe-mini": Cfg("qwen3", 8, 2048, 32, 4, 768, 151936, 4096, False, 1e6, vtok=151936, hd=128, eps=1e-6, E=128, K=8),
    "tiny-qwen3": Cfg("qwen3", 4, 64, 4, 2, 176, 512, 64, True, 1e6, vtok=500, hd=32, eps=1e-6),
    "tiny-moe": Cfg("qwen3", 4, 64, 4, 2, 48, 512, 64, False, 1e6, vtok=500, hd=32, eps=1e-6, E=8, K=2),
}


@dataclass(frozen=True)
class Work:
    cfg: Cfg
    T: int
    B: int  # rows per data-parallel rank and micro-step
    prec: str
    tied: bool  # embedding and head; not under pp

    @property
    def pdtype(self):
        return BF16 if self.prec in ("master", "bf16") else F32


def work_of(a):
    cfg = PRESETS[a.model]
    if a.layers:
        cfg = replace(cfg, L=a.layers)
    if a.vocab:
        cfg = replace(cfg, V=a.vocab, vtok=min(cfg.vtok, a.vocab))
    prec = a.precision
    if prec == "auto":
        prec = "fp32" if a.fsdp else "master"
    return Work(cfg, a.seq or cfg.T, a.batch or 1, prec, cfg.tied and a.pp == 1)
