# SPDX-License-Identifier: Apache-2.0
"""AdamW beta (0.9, 0.95), eps 1e-8, weight decay 0.1 on >=2-D tensors, constant lr, global-norm clip 1.0.

--precision master (default without --fsdp): bf16 parameters, fp32 master weights/moments/gradient accumulators.
"""
import torch
import torch.distributed as dist

from baseline.settings import F32


def is_dtensor(t):
    from torch.distributed.tensor import DTensor

    return isinstance(t, DTensor)


class MasterAdamW:
    """bf16 parameters, fp32 master copy + moments; works on the local shards (TP) of the parameters."""

    def __init__(self, params, a, capturable, reduce_groups, expert_ids):
        self.params = list(params)
        self.groups = reduce_groups  # {"tp": group or None, "pp": group or None}
        self.clip = a.clip
        self.bf = [self._local(p) for p in self.params]
        self.sharded = [is_dtensor(p) and any(pl.is_shard() for pl in p.placements) or id(p) in expert_ids for p in self.params]
        with torch.no_grad():
            self.master = [t.detach().to(F32).clone() for t in self.bf]
        for m in self.master:
            m.grad = torch.zeros_like(m)
        self.mask = torch.tensor(self.sharded, device=self.master[0].device)
        d = [m for m, p in zip(self.master, self.params) if p.dim() >= 2]
        nd = [m for m, p in zip(self.master, self.params) if p.dim() < 2]
        gs = [{"params": d, "weight_decay": a.wd}, {"params": nd, "weight_decay": 0.0}]
        gs = [g for g in gs if g["params"]]
        self.opt = torch.optim.AdamW(gs, lr=a.lr, betas=(0.9, 0.95), eps=1e-8, fused=True, capturable=capturable)
        self.fresh = True

    @staticmethod
    def _local(t):
        return t.to_local() if is_dtensor(t) else t

    def _local_grad(self, p):
        g = p.grad
        if is_dtensor(g):
            if tuple(g.placements) != tuple(p.placements):
                g = g.redistribute(p.device_mesh, p.placements)
            g = g.to_local()
        return g

    @torch.no_grad()
    def accumulate(self):
        grads = [self._local_grad(p) for p in self.params]
        mg = [m.grad for m in self.master]
        if self.fresh:
            torch._foreach_copy_(mg, grads)
        else:
            torch._foreach_add_(mg, grads)
        self.fresh = False
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        mg = [m.grad for m in self.master]
        if self.clip > 0:
            norms = torch.stack(torch._foreach_norm(mg))
            sq = norms * norms
            split = self.groups.get("tp") or self.groups.get("ep")
            if split is not None:
                sh = torch.where(self.mask, sq, torch.zeros_like(sq)).sum()
                dist.all_reduce(sh, group=split)
                tot = sh + torch.where(self.mask, torch.zeros_like(sq), sq).sum()
            else:
                tot = sq.sum()
            if self.groups.get("pp") is not None:
                dist.all_reduce(tot, group=self.groups["pp"])
            coef = (self.clip / (tot.sqrt() + 1e-6)).clamp(max=1.0)
            torch._foreach_mul_(mg, coef)
        self.opt.step()
        torch._foreach_copy_(self.bf, self.master)
        self.fresh = True


class PlainAdamW:
    """torch.optim.AdamW directly on the model's parameters (FSDP2 DTensors, or plain tensors)."""

    def __init__(self, params, a, capturable, reduce_groups, expert_ids):
        self.params = list(params)
        self.clip = a.clip
        self.groups = reduce_groups
        ep = [p for p in self.params if id(p) in expert_ids]  # on a separate mesh
        rest = [p for p in self.params if id(p) not in expert_ids]
        self.sets = [rest, ep] if ep else [self.params]
        d = [p for p in rest if p.dim() >= 2]
        nd = [p for p in rest if p.dim() < 2]
        gs = [{"params": d, "weight_decay": a.wd}, {"params": nd, "weight_decay": 0.0}, {"params": ep, "weight_decay": a.wd}]
        gs = [g for g in gs if g["params"]]
        self.opt = torch.optim.AdamW(gs, lr=a.lr, betas=(0.9, 0.95), eps=1e-8, fused=True, capturable=capturable)

    def accumulate(self):
        pass

    @torch.no_grad()
    def step(self):
        if self.clip > 0:
            from torch.nn.utils import clip_grads_with_norm_, get_total_norm

            tots = []
            for ps in self.sets:
                tot = get_total_norm([p.grad for p in ps if p.grad is not None])
                tots.append(tot.full_tensor() if is_dtensor(tot) else tot)
            tot = tots[0]
            if len(tots) > 1:
                sq = tots[1] * tots[1]
                dist.all_reduce(sq, group=self.groups["ep"])
                tot = (tot * tot + sq).sqrt()
            if self.groups.get("pp") is not None:
                sq = tot * tot
                dist.all_reduce(sq, group=self.groups["pp"])
                tot = sq.sqrt()
            for ps in self.sets:
                clip_grads_with_norm_(ps, self.clip, tot)
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)


def parameters_of(parts, ep):
    """All parameters, each once, and the parameters of expert-parallel experts."""
    params, seen, experts = [], set(), []
    for m in parts:
        for n, p in m.named_parameters():
            if id(p) not in seen:
                seen.add(id(p))
                params.append(p)
                if ep > 1 and ".experts." in n:
                    experts.append(p)
    return params, experts


def make_optimizer(a, p, prec, params, experts):
    groups = {"tp": p.tp_group, "pp": p.pp_group, "ep": p.ep_group}
    opt_cls = MasterAdamW if prec == "master" else PlainAdamW
    return opt_cls(params, a, a.graph, groups, {id(e) for e in experts})
