# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of the encoders of tests/encoders, computed by PyTorch on the CPU in float64.

Usage: torch_encoders.py FOLDER. Writes FOLDER/JOB.json and FOLDER/JOB.npy (hashed.py) for the jobs vit and regression.
"""
import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from hashed import drawn, real_input, write_run

SEQ, BATCH, LAYERS, HIDDEN, HEADS, FFN, EPS = 8, 12, 4, 8, 4, 12, 1e-5
PATCH, CLASSES = 6, 12
FEATURES, OUTPUTS = 5, 3


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


def backward(job):
    def of_step(p, step):
        loss = loss_of(job, p, step)
        loss.backward()
        return loss.item()

    return of_step


for each in ("vit", "regression"):
    write_run(f"{sys.argv[1]}/{each}", shapes_of(each), backward(each))
