# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of the Llama of tests/packed with a weight for each label, by PyTorch on the CPU in float64.

Usage: torch_weighted.py FOLDER. Writes FOLDER/llama.json and FOLDER/llama.npy (hashed.py). Its first step is computed
as one batch and as four microbatches whose gradients are added up, and the two must agree.
"""
import pathlib
import sys

import torch

sys.path += [str(pathlib.Path(__file__).parents[1] / folder) for folder in ("", "packed")]
from hashed import gradients_of, weight, write_run
from torch_packed import BATCH, IGNORED, MICROBATCHES, batch, decode, rms_norm, shapes


def loss_of(p, tokens, labels, weights, weight_of_step):
    """The part of some rows in the loss of a step whose labels that count have this sum of weights."""
    logits = rms_norm(decode(p, tokens), p["norm"]) @ p["lm_head"].T
    losses = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none")
    return (weights.flatten() * losses).sum() / weight_of_step


def weight_of(labels, weights):
    return weights[labels != IGNORED].sum()


def backward(p, step, microbatches=MICROBATCHES):
    tokens, labels, weights = batch(step)
    of_step, loss = weight_of(labels, weights), 0.0
    for rows in torch.arange(BATCH).chunk(microbatches):
        part = loss_of(p, tokens[rows], labels[rows], weights[rows], of_step)
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
    """Losses of step 0 by other rules: the mean of the microbatches' own means, division by the number of labels,
    and no weights."""
    p = {name: weight(name, shape) for name, shape in shapes().items()}
    tokens, labels, weights = batch(0)
    means = 0.0
    for rows in torch.arange(BATCH).chunk(MICROBATCHES):
        own = MICROBATCHES * weight_of(labels[rows], weights[rows])
        means += loss_of(p, tokens[rows], labels[rows], weights[rows], own).item()
    count, ones = (labels != IGNORED).sum(), torch.ones_like(weights)
    return {"mean_of_means": means,
            "divided_by_labels": loss_of(p, tokens, labels, weights, count).item(),
            "without_weights": loss_of(p, tokens, labels, ones, count).item()}


check_accumulation()
write_run(f"{sys.argv[1]}/llama", shapes(), backward, {"wrong": wrong_losses()})
