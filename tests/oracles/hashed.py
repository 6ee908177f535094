# SPDX-License-Identifier: Apache-2.0
"""Weights and data by hash, and runs of PyTorch in float64 of which an oracle keeps the losses and gradients."""
import json
import math
import struct

import torch

torch.set_default_dtype(torch.float64)

LR, BETAS, ADAM_EPS, DECAY, CLIP, STEPS = 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0, 5
MASK = (1 << 64) - 1


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def splitmix64(x):
    z = x + 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def weight(name, shape):
    """Numbers from -0.25 to 0.25, around 1 for the gains of norms."""
    count = math.prod(shape)
    base = 1.0 if name.rsplit(".", 1)[-1] in ("norm", "norm1", "norm2") else 0.0
    key = fnv1a64(name)
    values = [base + 0.5 * ((splitmix64(key + i & MASK) >> 11) * 2.0**-53 - 0.5) for i in range(count)]
    return torch.tensor(values).reshape(shape).requires_grad_()


def drawn(first, count, place):
    return [((first + 17 * place + k) * 2654435761 & MASK) >> 8 for k in range(count)]


def real_input(step, place, rows, width):
    numbers = drawn(step * rows * width, rows * width, place)
    return torch.tensor([0.5 + (d % 1000) / 1000 for d in numbers]).reshape(rows, width)


def write_npy(path, values):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        out.write(struct.pack(f"<{len(values)}d", *values))


def gradients_of(parameters):
    return [g for w in parameters.values() for g in w.grad.flatten().tolist()]


def write_run(path, shapes, backward, more=None):
    """Writes path.json (the losses of five steps, the gradient norm of the first, the names and sizes of the
    parameters, and `more`) and path.npy (the gradients of the first step, parameter after parameter, float64).
    `backward(parameters, step)` adds the gradients of a step and returns its loss."""
    p = {name: weight(name, shape) for name, shape in shapes.items()}
    groups = [
        {"params": [w for w in p.values() if w.dim() == 2], "weight_decay": DECAY},
        {"params": [w for w in p.values() if w.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=ADAM_EPS)
    losses, first = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        losses.append(backward(p, step))
        if step == 0:
            gradients = gradients_of(p)
            first = {"grad_norm": math.sqrt(sum(g * g for g in gradients))}
            write_npy(f"{path}.npy", gradients)
        torch.nn.utils.clip_grad_norm_(p.values(), CLIP)
        optimizer.step()
    sizes = {name: w.numel() for name, w in p.items()}
    with open(f"{path}.json", "w") as out:
        json.dump({"losses": losses, **first, **(more or {}), "parameters": sizes}, out, indent=1)
        out.write("\n")
