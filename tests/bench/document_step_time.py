#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps on packed documents: python3 document_step_time.py BUILD/tests/bench [ROW...]

For each row and mean document length, the program of whole sequences and the program of documents take turns on the same
tokens. PyTorch with flex attention runs on the same documents, unless NO_TORCH is set in the environment.
Document lengths are exponentially distributed. Prints medians and spreads over ROUNDS (3) turns.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from gpu_step_time import torch

# row: program of whole sequences, program of documents, vocabulary size, end of a document, bytes per token, PyTorch's forms
ROWS = {
    "gpt2-124m-b16": ("gpt2_124m_b16", "gpt2_124m_b16_documents", 50256, 50256, 2,
                      [f"--model gpt2-124m --sdpa cudnn --batch 16 --compile{more}" for more in ("", " --graph")]),
    "llama3-3b-12l-b2": ("llama3_3b_12l_b2", "llama3_3b_12l_b2_documents", 128000, 128001, 4,
                         ["--model llama3-3b --layers 12 --sdpa cudnn --batch 2 --compile --compile-scope block"]),
}
MEANS = [int(mean) for mean in os.environ.get("MEANS", "200 1000 4000").split()]
ROUNDS, WARM, STEPS = int(os.environ.get("ROUNDS", "3")), 6, 20


def write_tokens(path, count, vocabulary, end, token_bytes, mean):
    """Random tokens in llm.c's format; documents end with `end`."""
    draw = np.random.default_rng(3)
    tokens = draw.integers(0, vocabulary, count)
    ends = np.cumsum(np.maximum(8, draw.exponential(mean, 4 + 2 * count // mean).astype(np.int64))) - 1
    tokens[ends[ends < count]] = end
    header = np.zeros(256, np.int32)
    header[:3] = (20240801 if token_bytes == 4 else 20240520, 7 if token_bytes == 4 else 1, count)
    with open(path, "wb") as f:
        f.write(header.tobytes() + tokens.astype(np.uint32 if token_bytes == 4 else np.uint16).tobytes())


def rankc(folder, program, data):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:
        subprocess.run([os.path.join(folder, program), "train", "--steps", str(WARM + STEPS), "--init", "hash:1", "--data", data,
                        "--metrics", f.name], check=True, stdout=subprocess.DEVNULL)
        return statistics.median(json.loads(line)["step_ms"] for line in list(open(f.name))[WARM:])


def text_of(times):
    return f"{statistics.median(times):8.2f} ms ({100 * (max(times) / min(times) - 1):.1f} %)"


def main():
    folder = sys.argv[1]
    for row in sys.argv[2:] or ROWS:
        plain, packed, vocabulary, end, token_bytes, forms = ROWS[row]
        for mean in MEANS:
            with tempfile.NamedTemporaryFile(suffix=".bin") as data:
                write_tokens(data.name, 40 * 16 * 1024 + 1, vocabulary, end, token_bytes, mean)
                turns = [(rankc(folder, plain, data.name), rankc(folder, packed, data.name)) for _ in range(ROUNDS)]
                theirs = [] if os.environ.get("NO_TORCH") else [
                    torch(f"{form} --documents {end} --data {data.name}", 1, STEPS, WARM) for form in forms]
            whole, documents = [a for a, _ in turns], [b for _, b in turns]
            line = (f"{row:<18} documents of {mean:>5}: whole {text_of(whole)}, documents {text_of(documents)}, "
                    f"ratio {statistics.median(documents) / statistics.median(whole):.3f}")
            good = [t["step_ms"] for t in theirs if t.get("ok")]
            if good:
                line += f"; PyTorch {min(good):.2f} ms, {min(good) / statistics.median(documents):.3f} x"
            print(line + "".join(f"; PyTorch failed: {t.get('error', '')[-300:]}" for t in theirs if not t.get("ok")), flush=True)


if __name__ == "__main__":
    main()
