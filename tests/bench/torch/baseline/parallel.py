# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism with sequence parallelism, FSDP2 and DDP, for a model or one pipeline stage."""


def apply_tp(model, mesh):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    plan = {}
    if model.wte is not None:
        plan["wte"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    if model.wpe is not None:
        plan["wpe"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    if model.norm is not None:
        plan["norm"] = SequenceParallel()
        plan["lm_head"] = ColwiseParallel(input_layouts=Shard(1))  # local logits, which VocabParallelCE takes
    parallelize_module(model, mesh, plan)
    for blk in model.layers.values():
        bp = {
            "norm1": SequenceParallel(),
            "attn": PrepareModuleInput(
                input_layouts=(Shard(1), None, None), desired_input_layouts=(Replicate(), None, None)
            ),
            "attn.wq": ColwiseParallel(),
            "attn.wk": ColwiseParallel(),
            "attn.wv": ColwiseParallel(),
            "attn.wo": RowwiseParallel(output_layouts=Shard(1)),
            "norm2": SequenceParallel(),
            "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "mlp.w1": ColwiseParallel(),
            "mlp.w2": RowwiseParallel(output_layouts=Shard(1)),
        }
        if not blk.mlp.gelu:
            bp["mlp.w3"] = ColwiseParallel()
        if blk.attn.qk_norm:  # on local heads; sums the weight's gradient over the ranks
            bp["attn.q_norm"] = SequenceParallel(sequence_dim=2, use_local_output=True)
            bp["attn.k_norm"] = SequenceParallel(sequence_dim=2, use_local_output=True)
        parallelize_module(blk, mesh, bp)
    model.retie()


def apply_fsdp(model, mesh, reshard, param_dtype, reduce_dtype, edp_mesh=None):
    """fp32 sharded parameters, bf16 compute, gradients reduced in --reduce dtype (fp32 by default)."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    # cast_forward_inputs=False keeps the fp32 RoPE tables that the blocks take as inputs in fp32
    mp = MixedPrecisionPolicy(param_dtype=param_dtype, reduce_dtype=reduce_dtype, cast_forward_inputs=False)
    kw = {"mesh": mesh, "mp_policy": mp}
    if model.wte is not None and not model.tied:
        fully_shard(model.wte, reshard_after_forward=reshard, **kw)
    for blk in model.layers.values():
        if edp_mesh is not None:  # already split over the ep ranks: shard over the ranks that hold the same experts
            fully_shard(blk.mlp.experts, reshard_after_forward=reshard, **dict(kw, mesh=edp_mesh))
            blk.mlp.experts.set_gradient_divide_factor(float(mesh.size()))
            if mesh.device_type == "cpu":  # gloo has no scaled sum
                blk.mlp.experts.set_force_sum_reduction_for_comms(True)
        fully_shard(blk, reshard_after_forward=reshard, **kw)
    if model.norm is not None and not model.tied:
        fully_shard([model.norm, model.lm_head], reshard_after_forward=False, **kw)
    fully_shard(model, reshard_after_forward=False, **kw)


def apply_ddp(lm, a, p, prec, experts):
    from torch.nn.parallel import DistributedDataParallel as DDP

    if experts:
        expert_ids = {id(e) for e in experts}
        skip = [n for n, q in lm.named_parameters() if id(q) in expert_ids]
        DDP._set_params_and_buffers_to_ignore_for_model(lm, skip)
    return DDP(lm, device_ids=[p.local] if p.cuda else None, process_group=p.red_group,
               gradient_as_bucket_view=prec != "master", static_graph=a.accum == 1,
               broadcast_buffers=False, bucket_cap_mb=100)
