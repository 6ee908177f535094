#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of torch_losses_fp8.jsonl: python3 torch_losses_fp8.py PATH_OF_train_baseline.py --fp8 RECIPE ARGUMENTS...

Runs train_baseline.py in float64 on the CPU, with fp8 operands of the linear layers. The scale equals torchao's to the last
bit: the amax in float32, divided in float64 and rounded to float32 (torchao.float8.float8_utils.amax_to_scale); for
rowwise scales, rounded down to a power of two by its exponent.
"""
import os
import sys

os.environ["BASELINE_TEST_FP64"] = "1"
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv.pop(1))))
import train_baseline
from baseline import eight_bits

import torch


def f8_cast(x, dtype, dim=None, pow2=False):
    top = torch.finfo(dtype).max
    amax = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    s = (top / amax.to(torch.float32).to(torch.float64).clamp(min=1e-12)).to(torch.float32)
    if pow2:
        s = torch.ldexp(torch.ones_like(s), torch.frexp(s).exponent - 1)
    return (x.to(torch.float32) * s).clamp(-top, top).to(dtype), s


eight_bits.f8_cast = f8_cast
sys.argv[1:1] = ["--device", "cpu", "--precision", "fp32", "--no-fuse", "--steps", "1"]
train_baseline.main()
