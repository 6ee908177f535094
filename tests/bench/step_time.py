#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step time of the host target against PyTorch on the CPU, side by side: python3 step_time.py BUILD/tests/bench

Both do the work of the tiny presets in f32 (same weights, tokens and optimizer). They take turns, so that a slowdown
of the machine affects both. Needs torch and numpy; prints a table of medians and their ratio.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, STEPS = 3, 60


def rankc(folder, name):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:
        subprocess.run([os.path.join(folder, name), "train", "--steps", str(STEPS), "--metrics", f.name],
                       check=True, stdout=subprocess.DEVNULL)
        return statistics.median(json.loads(line)["step_ms"] for line in open(f.name).readlines()[10:])


def torch(model, compiled):
    command = [sys.executable, os.path.join(HERE, "torch", "train_baseline.py"), "--model", model, "--batch", "8",
               "--device", "cpu", "--precision", "fp32", "--loss-steps", "5", "--steps", str(STEPS)]
    env = dict(os.environ, BASELINE_TEST_FP32="1")
    out = subprocess.run(command + (["--compile"] if compiled else []), check=True, capture_output=True, text=True, env=env)
    return json.loads(out.stdout.strip().splitlines()[-1])["step_ms"]


def main():
    folder = sys.argv[1]
    print(f"{'preset':<12} {'program':<22} {'median ms':>10} {'min':>8} {'max':>8} {'against best torch':>19}")
    for model, name in (("tiny-gpt2", "tiny_gpt2"), ("tiny-llama", "tiny_llama")):
        runs = {"torch eager": lambda: torch(model, False), "torch compiled": lambda: torch(model, True),
                "rankc, one rank": lambda: rankc(folder, name), "rankc, dp 2": lambda: rankc(folder, name + "_dp2")}
        times = {k: [] for k in runs}
        for _ in range(ROUNDS):
            for k, run in list(runs.items()):
                try:
                    times[k].append(run())
                except subprocess.CalledProcessError:
                    print(f"{model:<12} {k}: failed, left out")
                    del runs[k]
        medians = {k: statistics.median(v) for k, v in times.items() if v}
        best = min(v for k, v in medians.items() if k.startswith("torch"))
        for k, m in medians.items():
            print(f"{model:<12} {k:<22} {m:>10.2f} {min(times[k]):>8.2f} {max(times[k]):>8.2f} {best / m:>18.2f}x")


if __name__ == "__main__":
    main()
