# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of the encoders of tests/encoders, computed by PyTorch on the CPU in float64.

Usage: torch_encoders.py FOLDER. Writes FOLDER/JOB.json (the losses of five steps, the gradient norm of the first,
and the names and sizes of the parameters) and FOLDER/JOB.npy (the gradients of the first step, parameter after
parameter, float64) for the jobs vit and regression.
"""
import json
import math
import struct
import sys

import torch

torch.set_default_dtype(torch.float64)

SEQ, BATCH, LAYERS, HIDDEN, HEADS, FFN, EPS = 8, 12, 4, 8, 4, 12, 1e-5
PATCH, CLASSES = 6, 12
FEATURES, OUTPUTS = 5, 3
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


def labels(step, place):
    return torch.tensor([d % CLASSES for d in drawn(step * BATCH, BATCH, place)])


def block_shapes(layer):
    p = f"layers.{layer}."
    square, wide = (HIDDEN, HIDDEN), (FFN, HIDDEN)
    shapes = {p + "norm1": (HIDDEN,), p + "norm1.bias": (HIDDEN,), p + "norm2": (HIDDEN,), p + "norm2.bias": (HIDDEN,)}
    for name in ("wq", "wk", "wv", "wo"):
        shapes[p + name], shapes[p + name + ".bias"] = square, (HIDDEN,)
    shapes[p + "w1"], shapes[p + "w1.bias"] = wide, (FFN,)
    shapes[p + "w2"], shapes[p + "w2.bias"] = wide[::-1], (HIDDEN,)
    return shapes


def shapes_of(job):
    width = PATCH if job == "vit" else FEATURES
    shapes = {"we": (HIDDEN, width), "we.bias": (HIDDEN,), "wpe": (SEQ, HIDDEN)}
    for layer in range(LAYERS):
        shapes |= block_shapes(layer)
    shapes |= {"norm": (HIDDEN,), "norm.bias": (HIDDEN,)}
    if job == "vit":
        return shapes | {"classes": (CLASSES, HIDDEN), "classes.bias": (CLASSES,)}
    return shapes | {"w1": (FFN, HIDDEN), "w1.bias": (FFN,), "w2": (OUTPUTS, FFN), "w2.bias": (OUTPUTS,)}


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def norm(p, name, x):
    return torch.nn.functional.layer_norm(x, (HIDDEN,), p[name], p[name + ".bias"], EPS)


def linear(p, name, x):
    return torch.nn.functional.linear(x, p[name], p[name + ".bias"])


def encode(p, x):
    """x: (BATCH, SEQ, features). Returns the means of the sequences."""
    x = linear(p, "we", x) + p["wpe"]
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        h = norm(p, name + "norm1", x)
        q, k, v = (linear(p, name + w, h).reshape(BATCH, SEQ, HEADS, -1).transpose(1, 2) for w in ("wq", "wk", "wv"))
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + linear(p, name + "wo", o.transpose(1, 2).reshape(BATCH, SEQ, HIDDEN))
        x = x + linear(p, name + "w2", gelu(linear(p, name + "w1", norm(p, name + "norm2", x))))
    return norm(p, "norm", x).mean(dim=1)


def loss_of(job, p, step):
    width = PATCH if job == "vit" else FEATURES
    means = encode(p, real_input(step, 1, BATCH * SEQ, width).reshape(BATCH, SEQ, width))
    if job == "vit":
        return torch.nn.functional.cross_entropy(linear(p, "classes", means), labels(step, 2))
    y = linear(p, "w2", gelu(linear(p, "w1", means)))
    return torch.nn.functional.mse_loss(y, real_input(step, 2, BATCH, OUTPUTS))


def write_npy(path, values):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        out.write(struct.pack(f"<{len(values)}d", *values))


def run(job, folder):
    p = {name: weight(name, shape) for name, shape in shapes_of(job).items()}
    groups = [
        {"params": [w for w in p.values() if w.dim() == 2], "weight_decay": DECAY},
        {"params": [w for w in p.values() if w.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=ADAM_EPS)
    losses, first = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(job, p, step)
        loss.backward()
        if step == 0:
            gradients = [g for w in p.values() for g in w.grad.flatten().tolist()]
            first = {"grad_norm": math.sqrt(sum(g * g for g in gradients))}
            write_npy(f"{folder}/{job}.npy", gradients)
        torch.nn.utils.clip_grad_norm_(p.values(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    sizes = {name: w.numel() for name, w in p.items()}
    with open(f"{folder}/{job}.json", "w") as out:
        json.dump({"losses": losses, **first, "parameters": sizes}, out, indent=1)
        out.write("\n")


for each in ("vit", "regression"):
    run(each, sys.argv[1])
