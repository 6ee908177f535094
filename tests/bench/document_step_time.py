#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps on packed documents, beside steps on whole sequences and beside PyTorch's, on one GPU in one run.

    cmake --build BUILD --target bench_document_programs
    python3 tests/bench/document_step_time.py BUILD/tests/bench --out FILE.jsonl

In each round rankc's program of whole sequences runs once. Then, for each mean document length, rankc's program of
documents and PyTorch with compiled flex attention take turns on the same tokens. Lengths are exponentially distributed.
Prints medians and spreads over the rounds; the file has a line of JSON for each turn and each row. No round begins that
might end after --seconds, which include PyTorch's compilation.
"""
import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch", "train_baseline.py")
WARM, STEPS = 5, 15
COMPILE_SHARE = 0.6  # of the time; PyTorch that needs more has failed

# row: the programs of whole sequences and of documents, vocabulary, end of a document, bytes per token, PyTorch's forms,
# share of the time
ROWS = {
    "gpt2-124m-b16": ("gpt2_124m_b16", "gpt2_124m_b16_documents", 50256, 50256, 2,
                      [f"--model gpt2-124m --sdpa cudnn --batch 16 --compile{more}" for more in ("", " --graph")], 1),
    "llama3-3b-12l-b2": ("llama3_3b_12l_b2", "llama3_3b_12l_b2_documents", 128000, 128001, 4,
                         ["--model llama3-3b --layers 12 --sdpa cudnn --seq 4096 --batch 2 --compile --compile-scope block"],
                         2),
}


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
    """The loss of the first step, and the median of the timed steps."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:
        subprocess.run([os.path.join(folder, program), "train", "--steps", str(WARM + STEPS), "--init", "hash:1", "--data", data,
                        "--metrics", f.name], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(f.name)]
    return lines[0]["loss"], statistics.median(line["step_ms"] for line in lines[WARM:])


class Torch:
    """A process of PyTorch that stays between its turns."""

    def __init__(self, form, end):
        self.form, self.errors = form, tempfile.TemporaryFile(mode="w+")
        command = [sys.executable, BASELINE, *form.split(), "--documents", str(end), "--turns", "--loss-steps", str(WARM),
                   "--steps", str(STEPS), "--max-seconds", "15"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def begin(self, data):
        try:
            print(data, file=self.process.stdin, flush=True)
        except OSError:  # the process has ended; its answer says so
            pass

    def answer(self, seconds):
        if not select.select([self.process.stdout], [], [], max(0, seconds))[0]:
            self.end()
            return {"error": "no answer in time"}
        line = self.process.stdout.readline()
        if line and "step_ms" in (answer := json.loads(line)):
            return answer
        self.errors.seek(0)
        return {"error": line or self.errors.read()[-300:]}

    def end(self):
        self.process.kill()
        self.process.wait()


def spread(times):
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def text_of(times):
    return f"{statistics.median(times):.2f} ms ({100 * (max(times) / min(times) - 1):.1f} %)"


def measure(folder, row, files, workers, end_time, rounds, write):
    """Times of each round: {mean: [{"whole": ms, "documents": ms, form: ms}, ...]}, and the first loss on documents."""
    plain, packed = ROWS[row][:2]
    turns, first_loss = {mean: [] for mean in files}, None
    while len(turns[next(iter(files))]) < rounds:
        begin = time.time()
        whole = rankc(folder, plain, next(iter(files.values())))[1]
        for mean, data in files.items():
            loss, documents = rankc(folder, packed, data)
            first_loss = first_loss or loss
            turn = {"whole": whole, "documents": documents}
            for worker in workers:
                worker.begin(data)
                turn[worker.form] = worker.answer(60).get("step_ms")
            turns[mean].append(turn)
            write({"row": row, "mean": mean, "turn": turn})
        if 2 * time.time() - begin > end_time:
            break
    return turns, first_loss


def compare(row, mean, turns, write):
    """Prints a row of results and writes it."""
    times = {name: [turn[name] for turn in turns] for name in turns[0]}
    good = {name: all_ms for name, all_ms in times.items() if None not in all_ms}
    documents = statistics.median(good["documents"])
    ratio = documents / statistics.median(good["whole"])
    line = (f"{row:<17} mean {mean:>5}, {len(turns)} rounds: whole {text_of(good['whole'])}, "
            f"documents {text_of(good['documents'])}, {ratio:.3f} of whole")
    result = {"row": row, "mean": mean, "ratio": ratio, **{name: spread(all_ms) for name, all_ms in good.items()}}
    if theirs := {name: all_ms for name, all_ms in good.items() if name.startswith("--")}:
        best = min(theirs, key=lambda form: statistics.median(theirs[form]))
        result["speedup"] = statistics.median(theirs[best]) / documents
        line += f"; PyTorch {text_of(theirs[best])}, {result['speedup']:.3f} x"
    print(line, flush=True)
    write(result)


def parse():
    ap = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    ap.add_argument("folder", help="the folder of the programs")
    ap.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    ap.add_argument("--means", nargs="+", type=int, default=[200, 1000, 4000])
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=220)
    ap.add_argument("--no-torch", action="store_true")
    ap.add_argument("--out", default=os.path.join(os.environ.get("OUT", "/tmp"), "document_step_time.jsonl"))
    return ap.parse_args()


def main():
    a, begin = parse(), time.time()
    log = open(a.out, "a")

    def write(line):
        print(json.dumps(line), file=log, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        files = {row: {mean: os.path.join(folder, f"{row}_{mean}.bin") for mean in a.means} for row in a.rows}
        workers = {row: [] if a.no_torch else [Torch(form, ROWS[row][3]) for form in ROWS[row][5]] for row in a.rows}
        for row in a.rows:
            for mean, path in files[row].items():
                write_tokens(path, 40 * 16 * 1024 + 1, *ROWS[row][2:5], mean)
            for worker in workers[row]:  # compile at the same time
                worker.begin(files[row][a.means[0]])
        compiled = begin + COMPILE_SHARE * a.seconds
        first = {worker.form: worker.answer(compiled - time.time()) for row in a.rows for worker in workers[row]}
        print(f"PyTorch is compiled after {time.time() - begin:.0f} s", flush=True)
        for i, row in enumerate(a.rows):
            shares = [ROWS[r][6] for r in a.rows[i:]]
            end_time = time.time() + (begin + a.seconds - time.time()) * shares[0] / sum(shares)
            turns, loss = measure(a.folder, row, files[row], workers[row], end_time, a.rounds, write)
            for worker in workers[row]:
                worker.end()
                said = first[worker.form]
                print(f"{row:<17} {worker.form}: " + (f"first loss {said['loss']:.4f}, rankc's {loss:.4f}" if "loss" in said
                                                      else f"failed: {said['error']}"), flush=True)
            for mean in a.means:
                compare(row, mean, turns[mean], write)
    print(f"{time.time() - begin:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
