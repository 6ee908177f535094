# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: this process's device, the meshes of all processes, and their communication groups."""
import os
import sys

import torch
import torch.distributed as dist

from baseline.settings import Ctx


class Processes:
    def __init__(self, a):
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.local = int(os.environ.get("LOCAL_RANK", 0))
        self.cuda = a.device == "cuda"
        if self.cuda:
            torch.cuda.set_device(self.local)
            self.device = torch.device("cuda", self.local)
        else:
            self.device = torch.device("cpu")
        self.par = self.world > 1 or a.fsdp or a.ddp or a.tp > 1 or a.pp > 1 or a.cp > 1
        if self.par:
            for k, v in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29511"), ("RANK", "0"), ("WORLD_SIZE", "1")):
                os.environ.setdefault(k, v)
            kw = {"device_id": self.device} if self.cuda else {}
            dist.init_process_group("nccl" if self.cuda else "gloo", **kw)
        self.tp_mesh = self.cp_mesh = self.pp_mesh = self.fsdp_mesh = self.ep_mesh = None
        self.tp_group = self.pp_group = self.red_group = self.ep_group = None
        self.dp, self.dp_rank = 1, 0

    def make_meshes(self, a, dp):
        """red_group: the ranks over which losses and, without FSDP, gradients are averaged."""
        self.dp = dp
        if not self.par:
            return
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh(a.device, (a.pp, dp, a.cp, a.tp), mesh_dim_names=("pp", "dp", "cp", "tp"))
        self.dp_rank = mesh["dp"].get_local_rank()
        if a.tp > 1:
            self.tp_mesh = mesh["tp"]
            self.tp_group = self.tp_mesh.get_group()
            Ctx.tp = True
        if a.pp > 1:
            self.pp_mesh = mesh["pp"]
            self.pp_group = self.pp_mesh.get_group()
        if a.cp > 1:
            self.cp_mesh = mesh["cp"]
            cp_group = self.cp_mesh.get_group()
            self.fsdp_mesh = mesh["dp", "cp"]._flatten("dp_cp")
        else:
            self.fsdp_mesh = mesh["dp"]
        self.red_group = self.fsdp_mesh.get_group()
        if a.replicate > 1:  # then world == dp
            self.fsdp_mesh = init_device_mesh(a.device, (a.replicate, dp // a.replicate), mesh_dim_names=("replicate", "shard"))
        if a.ep > 1:  # then world == dp
            self.ep_mesh = init_device_mesh(a.device, (dp // a.ep, a.ep), mesh_dim_names=("edp", "ep"))
            self.ep_group = self.ep_mesh["ep"].get_group()
            Ctx.ep_group, Ctx.ep_size, Ctx.ep_rank = self.ep_group, a.ep, self.ep_mesh["ep"].get_local_rank()
        if a.cp > 1 and a.cp_impl == "ulysses":
            Ctx.ulysses_group, Ctx.ulysses_size = cp_group, a.cp
        if a.cp > 1 and a.cp_impl == "ring":
            Ctx.expand_kv = True

    def sync(self):
        if self.cuda:
            torch.cuda.synchronize()

    def leave(self):
        """Exit without the teardown, which can hang on captured collectives."""
        if self.par:
            dist.barrier()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
