# SPDX-License-Identifier: Apache-2.0
"""Process-wide settings: number formats, and choices that layers read when they are built and run."""
import os

import torch

# for equivalence tests on CPU with gloo, which has no bf16: compute in fp32
# BASELINE_TEST_FP64: everything in float64, for exact comparisons
F32 = torch.float64 if os.environ.get("BASELINE_TEST_FP64") else torch.float32
BF16 = F32 if os.environ.get("BASELINE_TEST_FP32") or F32 is torch.float64 else torch.bfloat16


class Ctx:
    """Run-time choices (groups of context and expert parallelism, GQA expansion), set together with the meshes."""

    ulysses_group = None
    ulysses_size = 1
    expand_kv = False
    tp = False
    documents = None  # the block mask of documents
    ep_group = None
    ep_size = 1
    ep_rank = 0
