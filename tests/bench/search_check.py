#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `rankc search` and transformer-perf-estimates for all plans of random small problems, and compares every number.

    tests/bench/search_check.py RANKC CHECKOUT [--seconds 60] [--seed 1] [--most 700]

CHECKOUT is the repository of transformer-perf-estimates; it needs numpy below 2 and pandas, but not matplotlib, which it
imports. `--most` omits problems with more candidates, each of which takes 5 ms in Python.
"""
import argparse
import contextlib
import io
import json
import pathlib
import random
import subprocess
import sys
import time
import types
import warnings

PLAN = ("dp", "tp", "tp1", "tp2", "pp", "mbs", "nb", "nv_tp", "nv_tp1", "nv_tp2", "nv_dp", "nv_pp")


def problem(rng):
    heads = rng.choice([4, 8, 12, 16, 20, 30])
    e = heads * rng.choice([64, 80, 96, 128])
    model = {"l": rng.choice([512, 900, 1000, 1536, 2048, 2500, 4050]), "e": e, "h": heads,
             "f": rng.choice([4 * e, 3 * e, e * 8 // 3]), "depth": rng.choice([6, 7, 12, 18, 24])}
    return {"model": model, "strategy": rng.choice(["1d", "2d", "seqp"]),
            "system": rng.choice(["A100", "H200", "B200", "B200-next"]), "nvs": rng.choice([1, 2, 3, 4, 6, 8, 12, 64]),
            "n_gpus": rng.choice([1, 4, 6, 8, 12, 16, 24, 32, 36]), "global_batch_size": rng.choice([7, 8, 12, 24, 32]),
            "capacity_gb": rng.choice([20, 60, 1e6]), "top": 1000000}


def ask(rankc, asked):
    answered = subprocess.run([rankc, "search"], input=json.dumps(asked) + "\n", capture_output=True, text=True, check=True)
    return json.loads(answered.stdout)


def ask_python(execution, checkout, asked):
    """The number of candidates, and the feasible candidates."""
    system = json.loads((checkout / "systems" / f"config-{asked['system']}.json").read_text())
    system.update(nvlink_size=asked["nvs"], hbm_capacity=asked["capacity_gb"])
    search = getattr(execution, "execute_" + asked["strategy"])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found, = search(asked["model"], [asked["n_gpus"]], asked["global_batch_size"], system, nlargest=asked["top"])
    return int(said.getvalue().split("candidates = ")[1].split()[0]), found


def compare(ours, theirs, asked):
    """The largest relative difference of any number."""
    candidates, found = theirs
    assert ours["n_candidates"] == candidates and ours["n_feasible"] == len(found), asked
    plans = {tuple(p.get(name) for name in PLAN): p for p in ours["top"]}
    worst = 0
    for i, (_, _, config, stats) in enumerate(found):
        plan = {**config, **stats}
        key = tuple(None if plan.get(name) is None else int(plan[name]) for name in PLAN)
        at_rank = ours["top"][i]["t"]
        pairs = [(plans[key][name], float(x)) for name, x in stats.items() if name not in PLAN] + [(at_rank, float(stats["t"]))]
        worst = max([worst] + [abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b])
    return worst


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rankc")
    p.add_argument("checkout", type=pathlib.Path)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--most", type=int, default=700)
    a = p.parse_args()
    for name in ("matplotlib", "matplotlib.pyplot", "matplotlib.ticker"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["matplotlib.ticker"].FormatStrFormatter = None
    sys.path.insert(0, str(a.checkout))
    warnings.filterwarnings("ignore")
    import execution

    rng, end = random.Random(a.seed), time.monotonic() + a.seconds
    problems = plans = 0
    worst = 0
    while time.monotonic() < end:
        asked = problem(rng)
        ours = ask(a.rankc, asked)
        assert ours["ok"], ours
        if ours["n_candidates"] > a.most:
            continue
        difference = compare(ours, ask_python(execution, a.checkout, asked), asked)
        assert difference < 1e-9, (difference, asked)
        worst = max(worst, difference)
        problems += 1
        plans += ours["n_candidates"]
    print(f"{problems} problems, {plans} candidates: equal to {worst:.1e}")


if __name__ == "__main__":
    main()
