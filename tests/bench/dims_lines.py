#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the time of `rankc dims` for 100,000 lines, without and with groups: legal and illegal dims of up to 64 ranks.

  tests/bench/dims_lines.py build/codegen/rankc
"""
import itertools
import json
import math
import random
import resource
import subprocess
import sys
import time

LINES = 100_000
LAYOUTS = ["folded", "folded_over_replicas", "independent"]


def some_dims(draw):
    """Infinite random dims whose degrees multiply to the world, except for one line in eight. ep may not fit."""
    while True:
        line = {degree: draw.choice([1, 1, 2, 2, 4, 3]) for degree in ("pp", "dp_replicate", "dp_shard", "cp", "tp")}
        line["world"] = math.prod(line.values()) + (draw.randrange(8) == 0)
        if line["world"] > 64:
            continue
        line["dp_shard"] = draw.choice(["infer", line["dp_shard"]])
        line["ep"] = draw.choice([1, 1, 2, 4])
        line["expert_layout"] = draw.choice(LAYOUTS)
        line["model"] = {"heads": 48, "kv_heads": 24, "experts": 48, "top_k": 2, "layers": 48, "seq": 4608}
        yield line


def seconds(tool, lines):
    begin, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    answered = subprocess.run([tool, "dims"], input=lines, capture_output=True, check=True).stdout
    took = time.perf_counter() - begin
    return took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - cpu, answered


for groups in (False, True):
    made = itertools.islice(some_dims(random.Random(1)), LINES)
    lines = "".join(json.dumps({**line, "groups": groups}) + "\n" for line in made).encode()
    took, user, answered = seconds(sys.argv[1], lines)
    accepted = answered.count(b'"ok":true')
    print(f"groups {str(groups):5}  {LINES} lines, {accepted} accepted, {len(answered) / 1e6:.0f} MB: {took:.2f} s, {user:.2f} s of user time")
