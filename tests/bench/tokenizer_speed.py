#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MB/s of `rankc tokens` and of the `tokenizers` package on one thread, in turn, with the same ids.

    pip install tokenizers==0.21.4
    tokenizer_speed.py --rankc build/codegen/rankc --model DIR/tokenizer.json --text FILE.txt [--rounds 5]

Times are CPU seconds, which other programs affect little. rankc's time excludes reading the model, and includes reading
and writing files. The package gets the text in pieces of about 10,000 characters, cut at line ends, through
encode_batch_fast, its fastest call.
"""
import argparse
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402


def seconds_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pieces_of(text, size=10_000):
    pieces = []
    for line in text.splitlines(keepends=True):
        if pieces and len(pieces[-1]) < size:
            pieces[-1] += line
        else:
            pieces.append(line)
    return pieces


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("rankc", "model", "text"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    raw = pathlib.Path(given.text).read_bytes()
    pieces = pieces_of(raw.decode(errors="replace"))
    package = Tokenizer.from_file(given.model)
    with tempfile.TemporaryDirectory() as folder:
        out, empty = f"{folder}/t.bin", f"{folder}/empty.txt"
        pathlib.Path(empty).write_bytes(b"")
        command = [given.rankc, "tokens", "--model", given.model, "--out", out]
        ours, theirs = [], []
        for _ in range(given.rounds):
            ours.append(len(raw) / 1e6 / (seconds_of([*command, given.text]) - seconds_of([*command, empty])))
            begin = time.process_time()
            encoded = package.encode_batch_fast(pieces, add_special_tokens=False)
            theirs.append(len(raw) / 1e6 / (time.process_time() - begin))
        seconds_of([*command, given.text])
        written = pathlib.Path(out).read_bytes()
    wide = struct.unpack_from("<i", written)[0] == 20240801
    count = (len(written) - 1024) // (4 if wide else 2)
    print(f"rankc: {count} tokens; the package, by pieces: {sum(len(e.ids) for e in encoded)}")
    for name, speeds in (("rankc", ours), ("tokenizers", theirs), ("ratio", [a / b for a, b in zip(ours, theirs)])):
        print(f"{name}: median {statistics.median(speeds):.2f}, {min(speeds):.2f} to {max(speeds):.2f}")


if __name__ == "__main__":
    main()
