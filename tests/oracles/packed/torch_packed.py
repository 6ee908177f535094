# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of the Llama of tests/packed, computed by PyTorch on the CPU in float64.

Usage: torch_packed.py FOLDER. Writes FOLDER/llama.json and FOLDER/llama.npy (hashed.py). Its first step is computed
as one batch and as four microbatches whose gradients are added up, and the two must agree.
"""
import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from hashed import drawn, gradients_of, real_input, weight, write_run

SEQ, BATCH, MICROBATCHES, END, IGNORED = 16, 8, 4, 3, -100
LAYERS, HIDDEN, HEADS, KV_HEADS, FFN, VOCAB, THETA, EPS = 2, 8, 4, 2, 12, 16, 10000.0, 1e-5
HEAD = HIDDEN // HEADS
PENALTY, OWN_LOSS = 0.5, 0.25  # the factors of the penalty by token weights, and of the loss over labels that count


def shapes():
    out = {"wte": (VOCAB, HIDDEN)}
    for n in range(LAYERS):
        p = f"layers.{n}."
        out |= {p + "norm1": (HIDDEN,), p + "wq": (HIDDEN, HIDDEN), p + "wo": (HIDDEN, HIDDEN)}
        out |= {p + w: (KV_HEADS * HEAD, HIDDEN) for w in ("wk", "wv")}
        out |= {p + "norm2": (HIDDEN,), p + "w1": (FFN, HIDDEN), p + "w3": (FFN, HIDDEN), p + "w2": (HIDDEN, FFN)}
    return out | {"norm": (HIDDEN,), "lm_head": (VOCAB, HIDDEN)}


def batch(step, across=END):
    """Tokens, labels and token weights of a step, (BATCH, SEQ) each. A row has one token more, its last label.
    The labels of tokens `across` are ignored."""
    rows = drawn(step * BATCH * (SEQ + 1), BATCH * (SEQ + 1), 100)
    rows = torch.tensor([END if d % 5 == 0 else d % VOCAB for d in rows]).reshape(BATCH, SEQ + 1)
    tokens, labels = rows[:, :-1], rows[:, 1:].clone()
    masked = torch.tensor(drawn(step * BATCH * SEQ, BATCH * SEQ, 200)).reshape(BATCH, SEQ) % 8
    labels[masked < torch.arange(BATCH)[:, None]] = IGNORED  # another share in each row
    labels[tokens == across] = IGNORED
    return tokens, labels, real_input(step, 1, BATCH * SEQ, 1).reshape(BATCH, SEQ)


def sees(tokens):
    """The keys that a query sees: those of its own document, up to itself."""
    document = torch.cumsum(tokens == END, 1) - (tokens == END).long()
    return (document[:, :, None] == document[:, None, :]) & torch.ones(SEQ, SEQ).tril().bool()


def rms_norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * gain


def rotate(x):
    """x: (rows, heads, SEQ, HEAD). Pairs are elements i and i + HEAD / 2."""
    angles = torch.arange(SEQ)[:, None] * THETA ** (-torch.arange(0, HEAD, 2) / HEAD)
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def decode(p, tokens):
    x = p["wte"][tokens]
    mask = sees(tokens)[:, None]
    for n in range(LAYERS):
        of = {name: p[f"layers.{n}.{name}"] for name in ("norm1", "wq", "wk", "wv", "wo", "norm2", "w1", "w3", "w2")}
        h = rms_norm(x, of["norm1"])
        q, k, v = ((h @ of[w].T).unflatten(-1, (-1, HEAD)).transpose(1, 2) for w in ("wq", "wk", "wv"))
        k, v = (y.repeat_interleave(HEADS // KV_HEADS, 1) for y in (rotate(k), v))
        o = torch.nn.functional.scaled_dot_product_attention(rotate(q), k, v, attn_mask=mask)
        x = x + o.transpose(1, 2).flatten(2) @ of["wo"].T
        h = rms_norm(x, of["norm2"])
        x = x + (torch.nn.functional.silu(h @ of["w1"].T) * (h @ of["w3"].T)) @ of["w2"].T
    return x


def loss_of(p, tokens, labels, weights, count):
    """The part of some rows in the loss of a step of `count` labels."""
    x = decode(p, tokens)
    logits = rms_norm(x, p["norm"]) @ p["lm_head"].T
    cross_entropy = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    squares = x.pow(2).sum(-1)
    penalty = (weights * squares).sum() / (BATCH * SEQ)
    return (cross_entropy + OWN_LOSS * squares[labels != IGNORED].sum()) / count + PENALTY * penalty


def backward(p, step, microbatches=MICROBATCHES):
    tokens, labels, weights = batch(step)
    count, loss = (labels != IGNORED).sum(), 0.0
    for rows in torch.arange(BATCH).chunk(microbatches):
        part = loss_of(p, tokens[rows], labels[rows], weights[rows], count)
        part.backward()
        loss += part.item()
    return loss


def check_accumulation():
    """One batch and four microbatches have the same loss and the same gradients."""
    found = []
    for microbatches in (1, MICROBATCHES):
        p = {name: weight(name, shape) for name, shape in shapes().items()}
        found.append([backward(p, 0, microbatches)] + gradients_of(p))
    worst = max(abs(a - b) for a, b in zip(*found))
    assert worst < 1e-14, worst


def wrong_losses():
    """Losses of step 0 by other rules: the mean of the microbatches' own means, and labels across documents."""
    p = {name: weight(name, shape) for name, shape in shapes().items()}
    tokens, labels, weights = batch(0)
    means = 0.0
    for rows in torch.arange(BATCH).chunk(MICROBATCHES):
        own = MICROBATCHES * (labels[rows] != IGNORED).sum()
        means += loss_of(p, tokens[rows], labels[rows], weights[rows], own).item()
    labels = batch(0, across=VOCAB)[1]
    counted = loss_of(p, tokens, labels, weights, (labels != IGNORED).sum()).item()
    return {"mean_of_means": means, "across_documents": counted}


if __name__ == "__main__":
    check_accumulation()
    write_run(f"{sys.argv[1]}/llama", shapes(), backward, {"wrong": wrong_losses()})
