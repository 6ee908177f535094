#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the log of gpu_step_time.py as a file of results: python3 record_results.py LOG h200 COMMIT"""
import json
import os
import re
import sys

from gpu_step_time import HERE, ROWS


def result_of(entry):
    """The line of an entry of the log."""
    program, tokens, gpus, forms = ROWS[entry["row"]]
    # PyTorch's arguments name the sequence if it is not the model's own
    named = re.search(r"--seq (\d+)", forms[0])
    seq = int(named.group(1)) if named else 1024 if "gpt2" in program else 4096 if "moe" in program else 8192
    line = {"program": program, "batch": tokens // seq, "seq": seq, "gpus": gpus, "rankc_ms": round(entry["rankc"]["ms"], 2)}
    theirs = [t["step_ms"] for t in entry["torch"] if t.get("ok")]
    if theirs:
        line["torch_ms"] = round(min(theirs), 2)
    return line


def main():
    log, gpu, commit = sys.argv[1:]
    with open(os.path.join(HERE, "results", f"{gpu}_{commit}.jsonl"), "a") as out:
        for text in open(log):
            entry = json.loads(text)
            if entry["row"] in ROWS:
                out.write(json.dumps(result_of(entry)) + "\n")


if __name__ == "__main__":
    main()
