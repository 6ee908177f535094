#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how long `rankc dims` takes for 100,000 lines, without groups and with: legal and illegal dims of up to 64 ranks.

  tests/bench/dims_lines.py build/codegen/rankc
"""
import itertools
import json
import random
import subprocess
import sys
import time

LINES = 100_000
LAYOUTS = ["folded", "folded_over_replicas", "independent"]


def some_dims(draw):
    """Endless dims: powers of two and others, one degree inferred as often as not."""
    while True:
        line = {"world": draw.randint(1, 64), "expert_layout": draw.choice(LAYOUTS)}
        for degree in ("pp", "dp_replicate", "cp", "tp", "ep"):
            line[degree] = draw.choice([1, 1, 1, 2, 2, 4, 3])
        line["dp_shard"] = draw.choice(["infer", 1, 2])
        line["model"] = {"heads": 48, "kv_heads": 24, "experts": 48, "top_k": 2, "layers": 48, "seq": 4608}
        yield line


def seconds(tool, lines):
    begin = time.perf_counter()
    answered = subprocess.run([tool, "dims"], input=lines, capture_output=True, check=True).stdout
    took = time.perf_counter() - begin
    return took, answered


for groups in (False, True):
    made = itertools.islice(some_dims(random.Random(1)), LINES)
    lines = "".join(json.dumps({**line, "groups": groups}) + "\n" for line in made).encode()
    took, answered = seconds(sys.argv[1], lines)
    accepted = answered.count(b'"ok":true')
    print(f"groups {str(groups):5}  {LINES} lines, {accepted} accepted, {len(answered) / 1e6:.0f} MB: {took:.2f} s")
