# SPDX-License-Identifier: Apache-2.0
"""The step without pipeline stages: micro-steps one after another, then the optimizer."""
import contextlib

import torch
import torch.distributed as dist

from baseline.attention import Documents
from baseline.loss import LossModel, plain
from baseline.parallel import apply_ddp
from baseline.settings import F32, Ctx


class PlainStep:
    def __init__(self, a, p, work, model, loss_fn, opt, experts, compiling):
        self.a, self.p, self.work, self.base, self.opt, self.experts = a, p, work, model, opt, experts
        self.amp = torch.autocast(a.device, dtype=torch.bfloat16) if work.prec == "amp" else contextlib.nullcontext()
        self.mark = getattr(torch.compiler, "cudagraph_mark_step_begin", None)
        self.lm = LossModel(model, loss_fn)
        if a.ddp:
            self.lm = apply_ddp(self.lm, a, p, work.prec, experts)
        self.call = torch.compile(self.lm, **compiling.kw) if (a.compile and compiling.scope == "model") else self.lm
        self.documents = None
        self.aux_sum = torch.zeros((), dtype=F32, device=p.device)

    def cp_inputs(self, x, y):
        a, pos, cp_mesh = self.a, self.base.pos, self.p.cp_mesh
        if a.cp == 1:
            return x, y, None, contextlib.nullcontext()
        if a.cp_impl == "ulysses":
            r, n = cp_mesh.get_local_rank(), self.work.T // a.cp
            sl = slice(r * n, (r + 1) * n)
            return x[:, sl].contiguous(), y[:, sl].contiguous(), pos[sl], contextlib.nullcontext()
        from torch.distributed.tensor.experimental import context_parallel

        x, y, pos = x.clone(), y.clone(), pos.clone()
        ctx = context_parallel(cp_mesh, buffers=[x, y, pos], buffer_seq_dims=[1, 1, 0],
                               no_restore_buffers={x, y, pos})
        return x, y, pos, ctx

    @torch.no_grad()
    def reduce_experts(self):  # turns the exchanges' sums over the ep ranks into means over all dp ranks
        for e in self.experts:
            if self.p.dp > self.a.ep:
                dist.all_reduce(e.grad, group=self.p.ep_mesh["edp"].get_group())
        torch._foreach_mul_([e.grad for e in self.experts], 1.0 / self.p.dp)

    def take_aux(self):
        """The auxiliary losses since the last call."""
        aux = self.aux_sum.clone()
        self.aux_sum.zero_()
        return aux

    def set_documents(self, x):
        """Masks attention by the documents of x in all further steps."""
        if self.documents is None:
            self.documents = Documents(x, self.a.documents)
            Ctx.documents = self.documents.mask
        else:
            self.documents.replace(x)

    def __call__(self, xs, ys):
        a = self.a
        if a.documents >= 0 and self.documents is None:
            self.set_documents(xs[0])
        total = None
        n = len(xs)
        for i, (x, y) in enumerate(zip(xs, ys)):
            if self.mark is not None and a.compile and a.compile_mode in ("reduce-overhead", "max-autotune"):
                self.mark()
            lastm = i == n - 1
            sync = self.lm.no_sync() if (a.ddp and not lastm) else contextlib.nullcontext()
            if a.fsdp and n > 1 and a.fsdp_nosync:
                self.base.set_requires_gradient_sync(lastm)
            x, y, pos, cctx = self.cp_inputs(x, y)
            with sync, cctx:
                with self.amp:
                    loss = self.call(x, y) if pos is None else self.call(x, y, pos)
                if self.work.cfg.E:
                    loss, ax = loss
                    self.aux_sum.add_(ax, alpha=1.0 / n)
                (loss / n if n > 1 else loss).backward()
            if self.experts and a.ddp and lastm:
                self.reduce_experts()
            if not a.ddp or lastm:
                self.opt.accumulate()
            v = plain(loss) / n
            total = v if total is None else total + v
        self.opt.step()
        return total
