#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `rankc schedule --check` and an independent simulator for their verdicts on random and damaged programs.

    tests/bench/fuzz_check.py RANKC SIMULATOR.py [--count 20000] [--seed 1] [--keep FILE --keep-count 600]

The simulator is a Python module with check(record) -> list of violations; a record has the fields of a line of --check.
It names the queues in which a deadlock appears: DEADLOCK[one], [pair], [dir] are rankc's rank, pair and edge. `--keep`
writes some of the programs on which both agree, for tests/codegen/tool/mutations_test.cpp.
"""
import argparse
import importlib.util
import json
import random
import re
import subprocess

QUEUES = {"rank": "one", "pair": "pair", "edge": "dir"}
FIXED = {"gpipe": 1, "one_f_one_b": 1, "zero_bubble_v": 2, "dual_pipe": 2, "dual_pipe_v": 2}
FREE = ["looped_bfs", "interleaved_one_f_one_b", "interleaved_zero_bubble"]
COMM = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")


def ask(rankc, words, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    out = subprocess.run([rankc, *words], input=text, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def requests(rng, count):
    for _ in range(count):
        name = rng.choice([*FIXED, *FREE])
        per_rank = FIXED.get(name) or rng.choice([1, 2, 3])
        pp = rng.choice([2, 4]) if name == "dual_pipe" else rng.randint(1, 4)
        m = rng.choice([2, 4, 6]) if name == "dual_pipe" else rng.randint(1, 5)
        yield {"schedule": name, "pp": pp, "stages_per_rank": per_rank, "microbatches": m,
               "inference": rng.random() < 0.1, "costs": {"C": rng.choice([0, 0.1, 1])}}


def record(rng, asked, answer):
    form = rng.choice(["compute", "program", "program"])
    out = {"source": "rankc", "schedule": asked["schedule"], "pp": asked["pp"],
           "stages_per_rank": asked["stages_per_rank"], "microbatches": asked["microbatches"],
           "stage_to_rank": answer["stage_to_rank"], "ranks": answer[form]}
    if "mb_split" in answer:
        out |= {"stage_to_rank_rev": answer["stage_to_rank_rev"], "mb_split": answer["mb_split"]}
    return out


def shuffled(rng, rec):
    """The same computations, in a random order on each rank that often respects data dependences."""
    for q in rec["ranks"]:
        key = {"F": 0, "B": 1, "I": 1, "W": 2}
        q[:] = [t for t in q if re.fullmatch(r"\d+[FBIW]\d+", t)]
        sort = rng.choice([lambda t: rng.random(), lambda t: (key[t.strip("0123456789")], rng.random())])
        q.sort(key=sort)


def damage(rng, rec):
    """Make one change to a program."""
    ranks = [q for q in rec["ranks"] if q]
    if not ranks:
        return
    q = rng.choice(ranks)
    i = rng.randrange(len(q))
    j = max(0, min(len(q) - 1, i + rng.choice([-3, -2, -1, 1, 2, 3])))
    how = rng.randrange(11)
    if how == 0:
        del q[i]
    elif how == 1:
        q.insert(rng.randrange(len(q) + 1), q[i])
    elif how in (2, 3):
        q[i], q[j] = q[j], q[i]
    elif how == 4:
        q.insert(rng.randrange(len(q)), q.pop(i))
    elif how == 5:
        rng.choice(rec["ranks"]).insert(0, q.pop(i))
    elif how == 6:  # another microbatch or stage
        numbers = list(re.finditer(r"\d+", q[i]))
        n = rng.choice(numbers)
        q[i] = q[i][:n.start()] + str(max(0, int(n[0]) + rng.choice([-1, 1]))) + q[i][n.end():]
    elif how == 7:  # another kind
        kinds = COMM if any(c in q[i] for c in COMM) else "FBIW"
        q[i] = re.sub("|".join(COMM) + r"|(?<=\d)[FBIW](?=\d)", lambda _: rng.choice(kinds), q[i], count=1)
    elif how == 8 and q[i] != q[j] and not any("(" in t for t in (q[i], q[j])):  # neighbours
        both_comm = all(any(c in t for c in COMM) for t in (q[i], q[j]))
        both_compute = not any(c in t for c in COMM for t in (q[i], q[j]))
        if both_comm or both_compute:
            q[i] = ("BATCH" if both_comm else "OVERLAP") + f"({q[i]},{q[j]})"
            del q[j]
    elif how == 9 and "(" in q[i]:
        q[i:i + 1] = q[i][q[i].index("(") + 1:-1].split(",")
    elif how == 10:  # two receives of one rank are exchanged
        received = [k for k, t in enumerate(q) if re.fullmatch(r"\d+RECV_[FB]\d+", t)]
        if len(received) > 1:
            a, b = rng.sample(received, 2)
            q[a], q[b] = q[b], q[a]


def misplaced(rec):
    """Whether a computation is on another rank than the record's two placements say."""
    for rank, q in enumerate(rec["ranks"]):
        for stage, mb in re.findall(r"\b(\d+)[FBIW](\d+)", " ".join(q)):
            place = rec["stage_to_rank" if int(mb) < rec["mb_split"] else "stage_to_rank_rev"]
            if int(stage) < len(place) and place[int(stage)] != rank:
                return True
    return False


def verdict(simulator, rec, queues):
    """Whether the program is sound; None if the simulator cannot read it."""
    try:
        violations = simulator.check(rec)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    if "mb_split" in rec and misplaced(rec):  # the simulator takes any rank in a bidirectional pipeline
        return False
    of_others = [f"DEADLOCK[{name}]" for name in QUEUES.values() if name != QUEUES[queues]]
    return not [v for v in violations if not v.startswith(tuple(of_others))]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("rankc")
    args.add_argument("simulator")
    args.add_argument("--count", type=int, default=20000)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--keep")
    args.add_argument("--keep-count", type=int, default=600)
    args = args.parse_args()
    spec = importlib.util.spec_from_file_location("simulator", args.simulator)
    simulator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(simulator)
    rng = random.Random(args.seed)

    asked = list(requests(rng, args.count))
    answers = ask(args.rankc, ["schedule"], asked)
    records = []
    for a, answer in zip(asked, answers):
        assert answer["ok"], (a, answer)
        rec = record(rng, a, answer)
        rec["ranks"] = [list(q) for q in rec["ranks"]]
        if rng.random() < 0.2:
            shuffled(rng, rec)
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            damage(rng, rec)
        rec["queues"] = rng.choice(list(QUEUES))
        records.append(rec)

    said = ask(args.rankc, ["schedule", "--check"], records)
    sound = refused = unread = 0
    different, kept = [], {}  # kept: by the first rule that refuses
    for rec, answer in zip(records, said):
        expected = verdict(simulator, rec, rec["queues"])
        if expected is None:
            unread += 1
            continue
        sound += expected
        refused += not expected
        if answer["ok"] != expected:
            different.append((rec, expected, answer["diagnostics"]))
        elif len(json.dumps(rec)) < 900:
            rule = answer["diagnostics"][0]["id"] if answer["diagnostics"] else "sound"
            kept.setdefault(rule, []).append(rec)
    print(f"{len(records)} programs: {sound} sound, {refused} refused, {unread} that the simulator cannot read; "
          f"{len(different)} verdicts differ")
    print("by the first rule, of those that are short:", {rule: len(some) for rule, some in sorted(kept.items())})
    for rec, expected, diagnostics in different[:5]:
        print("differs: expected", "sound" if expected else "refused", json.dumps(rec), diagnostics)
        print("  simulator:", simulator.check(rec)[:3])
    if args.keep:
        with open(args.keep, "w") as out:
            for rule, programs in sorted(kept.items()):
                for rec in programs[:args.keep_count // len(kept)]:
                    rec = {k: v for k, v in rec.items() if k not in ("source", "schedule")}
                    out.write(json.dumps(rec | {"sound": rule == "sound"}, separators=(",", ":")) + "\n")
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
