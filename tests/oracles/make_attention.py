#!/usr/bin/env python3
"""Oracles of attention, by PyTorch in float64: make_attention.py sinks|value_heads|windows OUT

A decoder with grouped heads and rotary positions. In `windows` its four layers have windows of 1, 2, 3 and 5
tokens. In the other cases it has two layers, and the first has a window of 5 tokens. In `sinks` each head has a sink: one more column of the scores, whose weight is dropped after the softmax, as in
transformers, models/gpt_oss. In `value_heads` the value heads have fewer elements than the key heads in the first
layer, and more in the second. README.md in each folder describes the files.
"""
import json
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCAB, SEQ, ROWS = 8, 4, 2, 4, 12, 16, 16, 4
THETA, EPS = 100.0, 1e-5
WINDOWS = {'sinks': [5, SEQ], 'value_heads': [5, SEQ], 'windows': [1, 2, 3, 5]}
VALUE_HEADS = {'sinks': [HEAD] * 2, 'value_heads': [2, 6], 'windows': [HEAD] * 4}


def weights(case):
    g = torch.Generator().manual_seed(7)
    shapes = {'wte': (VOCAB, HIDDEN), 'norm': (HIDDEN,), 'lm_head': (VOCAB, HIDDEN)}
    for n in range(len(WINDOWS[case])):
        of_layer = {'norm1': (HIDDEN,), 'wq': (HEADS * HEAD, HIDDEN), 'wk': (KV_HEADS * HEAD, HIDDEN),
                    'wv': (KV_HEADS * VALUE_HEADS[case][n], HIDDEN), 'sinks': (HEADS,),
                    'wo': (HIDDEN, HEADS * VALUE_HEADS[case][n]), 'norm2': (HIDDEN,), 'w1': (FFN, HIDDEN),
                    'w3': (FFN, HIDDEN), 'w2': (HIDDEN, FFN)}
        if case != 'sinks':
            del of_layer['sinks']
        shapes.update({f'layers.{n}.{name}': shape for name, shape in of_layer.items()})
    made = {}
    for name, shape in shapes.items():
        u = 2 * torch.rand(shape, generator=g) - 1
        made[name] = (1 + 0.1 * u if 'norm' in name else u).contiguous()
    return made


def norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * gain


def rotate(x):
    powers = torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD
    angles = torch.arange(SEQ, dtype=torch.float64)[:, None] * THETA**-powers
    cos, sin = angles.cos().repeat(1, 2)[:, None], angles.sin().repeat(1, 2)[:, None]
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def attention(w, n, window, x):
    q, k, v = (x @ w[f'layers.{n}.{name}'].T for name in ('wq', 'wk', 'wv'))
    q = rotate(q.view(ROWS, SEQ, HEADS, HEAD))
    k, v = (t.view(ROWS, SEQ, KV_HEADS, -1) for t in (k, v))
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, 2) for t in (rotate(k), v))
    scores = torch.einsum('bqhd,bkhd->bhqk', q, k) / math.sqrt(HEAD)
    distance = torch.arange(SEQ)[:, None] - torch.arange(SEQ)
    scores = scores.masked_fill((distance < 0) | (distance >= window), -math.inf)
    sinks = w.get(f'layers.{n}.sinks')
    if sinks is not None:
        scores = torch.cat((scores, sinks.view(1, HEADS, 1, 1).expand(ROWS, HEADS, SEQ, 1)), -1)
    shares = scores.softmax(-1)[..., :SEQ]
    return torch.einsum('bhqk,bkhd->bqhd', shares, v).reshape(ROWS, SEQ, -1)


def logits(case, w, tokens):
    x = w['wte'][tokens]
    for n, window in enumerate(WINDOWS[case]):
        of = {name: w[f'layers.{n}.{name}'] for name in ('norm1', 'wo', 'norm2', 'w1', 'w2', 'w3')}
        x = x + attention(w, n, window, norm(x, of['norm1'])) @ of['wo'].T
        h = norm(x, of['norm2'])
        x = x + (torch.nn.functional.silu(h @ of['w1'].T) * (h @ of['w3'].T)) @ of['w2'].T
    return norm(x, w['norm']) @ w['lm_head'].T


def main():
    case, out = sys.argv[1], Path(sys.argv[2])
    w = weights(case)
    save_file(w, out / 'model.safetensors')
    w = {name: t.double().requires_grad_() for name, t in w.items()}
    g = torch.Generator().manual_seed(8)
    rows = torch.randint(0, VOCAB, (ROWS, SEQ + 1), generator=g)
    z = logits(case, w, rows[:, :-1])
    loss = torch.nn.functional.cross_entropy(z.reshape(-1, VOCAB), rows[:, 1:].reshape(-1))
    loss.backward()
    save_file({name: t.grad for name, t in w.items()}, out / 'gradients.safetensors')
    save_file({'logits': z[0].detach()}, out / 'logits.safetensors')
    expected = {'torch': torch.__version__, 'loss': loss.item(), 'rows': rows.tolist()}
    (out / 'expected.json').write_text(json.dumps(expected) + '\n')


main()
