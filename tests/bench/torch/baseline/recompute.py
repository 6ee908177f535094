# SPDX-License-Identifier: Apache-2.0
"""--ac: backward recomputes blocks; selective keeps the outputs of attention, every other matmul and reduce-scatters."""
import contextlib

import torch


def apply_ac(model, mode):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    kw = {"preserve_rng_state": False}
    if mode == "selective":
        from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

        mms = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten._scaled_mm.default)
        save = set(mms)
        for n in (
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_cudnn_attention",
            "_scaled_dot_product_efficient_attention",
        ):
            op = getattr(torch.ops.aten, n, None)
            if op is not None:
                save.add(op.default)
        with contextlib.suppress(AttributeError):
            save.add(torch.ops._c10d_functional.reduce_scatter_tensor.default)

        def ctx_fn():
            count = {"f": 0, "r": 0}

            def policy(ctx, op, *a, **k):
                if op in mms:
                    key = "r" if ctx.is_recompute else "f"
                    count[key] += 1
                    return CheckpointPolicy.MUST_SAVE if count[key] % 2 else CheckpointPolicy.PREFER_RECOMPUTE
                return CheckpointPolicy.MUST_SAVE if op in save else CheckpointPolicy.PREFER_RECOMPUTE

            return create_selective_checkpoint_contexts(policy)

        kw["context_fn"] = ctx_fn
    for n, blk in list(model.layers.items()):
        model.layers[n] = checkpoint_wrapper(blk, **kw)
