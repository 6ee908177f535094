# SPDX-License-Identifier: Apache-2.0
"""The modules of train_baseline.py. torch reads these variables at its import, and no module imports it before this one."""
import os
import sys

# NVLink multicast must stay off on the shared hosts.
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
if not any(k in " ".join(sys.argv) for k in ("--graph", "--cudagraphs", "reduce-overhead", "max-autotune")):
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # not with graph-private pools
os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
