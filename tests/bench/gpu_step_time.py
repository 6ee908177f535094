#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps on GPUs against PyTorch, side by side: python3 gpu_step_time.py BUILD/tests/bench [ROW...]

Both do the work of train_baseline.py from the same weights and tokens. For each row: losses of 20 steps, then timed
steps (LOSS_STEPS and STEPS in the environment change the numbers); PyTorch in its best compiled form. The rows named
"spread" compare only losses, for each of five seeds of the weights (SEEDS changes them): rankc in bf16, PyTorch in bf16
and in f32 (no tf32). The difference between PyTorch's two is the error of bf16. The rows named "rounded" compare losses
of 200 steps in bf16 and in fp8, at a small learning rate: at the plans' own rate, two runs of one program diverge. Prints
a table, and writes every number to $OUT/gpu_step_time.jsonl (default of $OUT: /tmp).
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BASELINE = os.path.join(HERE, "torch", "train_baseline.py")
GPT2, LLAMA_WHOLE = "--model gpt2-124m --sdpa cudnn", "--model llama3-8b --sdpa cudnn --compile --compile-scope block"
LLAMA = f"{LLAMA_WHOLE} --layers 8"
GPT2_774M = "--model gpt2-774m --sdpa cudnn --batch 32 --compile --compile-scope block"
GPT2_1_5B = "--model gpt2-1.5b --sdpa cudnn --batch 16 --compile --compile-scope block"
MOE = "--model qwen3-moe-mini --sdpa cudnn --compile --compile-scope block"


def split(form, layers):
    """PyTorch's default stages, which are even, and rankc's."""
    return [form, f"{form} --pp-split {layers}"]


# row: program, tokens per step, GPUs, PyTorch's forms to try
ROWS = {
    "gpt2-124m-b64": ("gpt2_124m_b64", 64 * 1024, 1, [f"{GPT2} --batch 64 --compile", f"{GPT2} --batch 64 --compile --graph"]),
    "gpt2-124m-b4": ("gpt2_124m_b4", 4 * 1024, 1, [f"{GPT2} --batch 4 --compile --graph"]),
    "gpt2-774m-b32": ("gpt2_774m_b32", 32 * 1024, 1, [GPT2_774M]),
    "gpt2-1.5b-b16": ("gpt2_1_5b_b16", 16 * 1024, 1, [GPT2_1_5B]),
    "llama3-1b-b4": ("llama3_1b_b4", 4 * 8192, 1, ["--model llama-1b --sdpa cudnn --batch 4 --compile --compile-scope block"]),
    "llama3-8b-8l-b2": ("llama3_8b_8l_b2", 2 * 8192, 1, [f"{LLAMA} --batch 2"]),
    "gpt2-1.5b-b16-fp8": ("gpt2_1_5b_b16_fp8", 16 * 1024, 1, [f"{GPT2_1_5B} --fp8 tensorwise"]),
    "gpt2-1.5b-b16-fp8-rows": ("gpt2_1_5b_b16_fp8_rows", 16 * 1024, 1, [f"{GPT2_1_5B} --fp8 rowwise"]),
    "llama3-8b-8l-b2-fp8": ("llama3_8b_8l_b2_fp8", 2 * 8192, 1, [f"{LLAMA} --batch 2 --fp8 tensorwise"]),
    "llama3-8b-8l-b2-fp8-rows": ("llama3_8b_8l_b2_fp8_rows", 2 * 8192, 1, [f"{LLAMA} --batch 2 --fp8 rowwise"]),
    "llama3-8b-8l-b4": ("llama3_8b_8l_b4", 4 * 8192, 1, [f"{LLAMA} --batch 4"]),
    "llama3-8b-8l-b4-selective": ("llama3_8b_8l_b4_selective", 4 * 8192, 1, [f"{LLAMA} --batch 4 --ac selective"]),
    "llama3-8b-8l-b4-full": ("llama3_8b_8l_b4_full", 4 * 8192, 1, [f"{LLAMA} --batch 4 --ac full"]),
    "qwen3-moe-8l-b2": ("qwen3_moe_8l_b2", 2 * 4096, 1, [f"{MOE} --batch 2"]),
    "qwen3-moe-8l-b4": ("qwen3_moe_8l_b4", 4 * 4096, 1, [f"{MOE} --batch 4"]),
    "gpt2-124m-dp2": ("gpt2_124m_dp2", 128 * 1024, 2, [f"{GPT2} --batch 64 --compile --ddp"]),
    "gpt2-124m-dp4": ("gpt2_124m_dp4", 256 * 1024, 4, [f"{GPT2} --batch 64 --compile --ddp"]),
    "gpt2-1.5b-dp4": ("gpt2_1_5b_dp4", 64 * 1024, 4, [f"{GPT2_1_5B} --ddp"]),
    "llama3-8b-8l-dp2": ("llama3_8b_8l_dp2", 4 * 8192, 2, [f"{LLAMA} --batch 2 --ddp"]),
    "llama3-8b-8l-fsdp": ("llama3_8b_8l_fsdp", 4 * 8192, 2, [f"{LLAMA} --batch 2 --fsdp", f"{LLAMA} --batch 2 --fsdp --no-reshard"]),
    "llama3-8b-8l-fsdp-bf16": ("llama3_8b_8l_fsdp_bf16", 4 * 8192, 2, [f"{LLAMA} --batch 2 --fsdp --reduce bf16"]),
    "llama3-8b-8l-zero": ("llama3_8b_8l_zero", 4 * 8192, 2, [f"{LLAMA} --batch 2 --ddp"]),
    "llama3-8b-fsdp": ("llama3_8b_fsdp", 2 * 8192, 2, [f"{LLAMA_WHOLE} --batch 1 --fsdp --ac full"]),
    "gpt2-124m-zero": ("gpt2_124m_zero", 128 * 1024, 2, [f"{GPT2} --batch 64 --compile --ddp"]),
    "llama3-8b-8l-tp2": ("llama3_8b_8l_tp2_sp", 2 * 8192, 2, [f"{LLAMA} --batch 2 --tp 2{more}" for more in ("", " --async-tp")]),
    "gpt2-774m-tp2": ("gpt2_774m_tp2_sp", 32 * 1024, 2, [f"{GPT2_774M} --tp 2{more}" for more in ("", " --async-tp")]),
    "llama3-8b-8l-cp2": ("llama3_8b_8l_cp2", 32768, 2,
                         [f"{LLAMA} --batch 1 --seq 32768 --cp 2 --fsdp{more}" for more in ("", " --no-reshard", " --cp-impl ring")]),
    "llama3-8b-8l-cp2-ring": ("llama3_8b_8l_cp2_ring", 32768, 2, [f"{LLAMA} --batch 1 --seq 32768 --cp 2 --fsdp --cp-impl ring"]),
    "llama3-8b-8l-pp2": ("llama3_8b_8l_pp2", 8 * 8192, 2, split(f"{LLAMA} --batch 8 --pp 2 --pp-schedule 1F1B --pp-microbatches 8", "5,3")),
    "llama3-8b-8l-pp2-zbv": ("llama3_8b_8l_pp2_zbv", 8 * 8192, 2,
                             split(f"{LLAMA} --batch 8 --pp 2 --pp-schedule ZBV --pp-microbatches 8", "2,3,2,1")),
    "llama3-8b-8l-pp2-dual-v": ("llama3_8b_8l_pp2_dual_v", 8 * 8192, 2,
                                split(f"{LLAMA} --batch 8 --pp 2 --pp-schedule DualPipe --pp-microbatches 8", "2,3,2,1")
                                + [f"{LLAMA} --batch 8 --pp 2 --pp-schedule 1F1B --pp-microbatches 8 --pp-split 5,3"]),
    "llama3-8b-fsdp4": ("llama3_8b_fsdp4_bf16", 8 * 8192, 4, [f"{LLAMA_WHOLE} --batch 2 --fsdp --no-reshard --reduce bf16"]),
    "llama3-8b-hsdp": ("llama3_8b_hsdp", 4 * 8192, 4,
                       [f"{LLAMA_WHOLE} --batch 1 --fsdp --replicate 2{more}" for more in ("", " --no-reshard")]),
    "llama3-8b-tp4": ("llama3_8b_tp4", 2 * 8192, 4, [f"{LLAMA_WHOLE} --batch 2 --tp 4{more}" for more in ("", " --async-tp")]),
    "llama3-8b-pp4": ("llama3_8b_pp4_zbv", 16 * 8192, 4,
                      split(f"{LLAMA_WHOLE} --batch 16 --pp 4 --pp-schedule Interleaved1F1B", "5,5,4,4,4,4,4,2")),
    "qwen3-moe-8l-ep2": ("qwen3_moe_8l_ep2", 8 * 4096, 2, [f"{MOE} --batch 4 --ep 2 --{form}" for form in ("ddp", "fsdp")]),
    "qwen3-moe-8l-ep4": ("qwen3_moe_8l_ep4", 16 * 4096, 4, [f"{MOE} --batch 4 --ep 4 --{form}" for form in ("ddp", "fsdp")]),
    "llama3-8b-8l-pp4": ("llama3_8b_8l_pp4", 16 * 8192, 4, split(f"{LLAMA} --batch 16 --pp 4 --pp-schedule 1F1B", "2,3,2,1")),
}
# row: program, PyTorch's arguments
SPREADS = {
    "spread-gpt2-124m": ("gpt2_124m_b4", f"{GPT2} --batch 4"),
    "spread-llama3-8b-8l": ("llama3_8b_8l_s1024", "--model llama3-8b --layers 8 --seq 1024 --batch 1 --sdpa cudnn"),
}
# row: program, fp8 program, PyTorch's arguments and recipe
ROUNDED = {
    "rounded-gpt2-124m": ("gpt2_124m_b4", "gpt2_124m_b4_fp8", f"{GPT2} --batch 4 --compile", "tensorwise"),
    "rounded-gpt2-1.5b": ("gpt2_1_5b_b16", "gpt2_1_5b_b16_fp8", GPT2_1_5B, "tensorwise"),
    "rounded-gpt2-1.5b-rows": ("gpt2_1_5b_b16", "gpt2_1_5b_b16_fp8_rows", GPT2_1_5B, "rowwise"),
}
ROUNDED_STEPS, ROUNDED_LR = 200, 3e-5
SEEDS = [int(seed) for seed in os.environ.get("SEEDS", "1 2 3 4 5").split()]
LOSS_STEPS, STEPS = int(os.environ.get("LOSS_STEPS", "20")), int(os.environ.get("STEPS", "20"))


def rankc(folder, program, seed=1, loss_steps=LOSS_STEPS, more=()):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as f:
        subprocess.run([os.path.join(folder, program), "train", "--steps", str(loss_steps + STEPS), "--init", f"hash:{seed}",
                        "--data", "arith:1234", "--metrics", f.name, *more], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(f.name)]
    times = sorted(line["step_ms"] for line in lines[loss_steps:])
    return {"losses": [line["loss"] for line in lines[:loss_steps]], "ms": statistics.median(times), "min": times[0],
            "p90": times[int(0.9 * (len(times) - 1))], "bytes": lines[0]["peak_bytes"]}


def torch(arguments, gpus, steps=STEPS, loss_steps=LOSS_STEPS, **environment):
    command = [sys.executable, BASELINE] if gpus == 1 else [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus), BASELINE]
    out = subprocess.run(command + arguments.split() + ["--steps", str(steps), "--loss-steps", str(loss_steps),
                         "--max-seconds", "15"], capture_output=True, text=True, env=dict(os.environ, **environment))
    line = next((x for x in out.stdout.splitlines() if x.startswith("{")), "")
    return json.loads(line) if line else {"ok": False, "error": out.stderr[-300:]}


def difference(a, b):
    return max((abs(x - y) for x, y in zip(a, b)), default=float("nan"))


def spread(folder, row, log, seed):
    program, form = SPREADS[row]
    arguments = f"{form} --seed {seed}"
    mine, bf16 = rankc(folder, program, seed)["losses"], torch(arguments, 1, 1)
    f32 = torch(arguments.replace("--sdpa cudnn", "--sdpa math") + " --precision fp32", 1, 1, NVIDIA_TF32_OVERRIDE="0")
    log.write(json.dumps({"row": row, "seed": seed, "rankc": mine, "torch_bf16": bf16, "torch_f32": f32}) + "\n")
    log.flush()
    if not (bf16.get("ok") and f32.get("ok")):
        return f"{row:<18} seed {seed}: torch failed: {bf16.get('error', '')[-200:]} {f32.get('error', '')[-200:]}"
    return (f"{row:<18} seed {seed}: largest differences of {LOSS_STEPS} losses: torch bf16 - f32 {difference(bf16['losses'], f32['losses']):.2e}, "
            f"rankc bf16 - torch f32 {difference(mine, f32['losses']):.2e}, rankc bf16 - torch bf16 {difference(mine, bf16['losses']):.2e}")


def rounded(folder, row, log, seed):
    program, narrow, form, recipe = ROUNDED[row]
    arguments = f"{form} --seed {seed} --lr {ROUNDED_LR}"
    runs = {name: rankc(folder, p, seed, ROUNDED_STEPS, ("--lr", str(ROUNDED_LR)))
            for name, p in (("rankc bf16", program), ("rankc fp8", narrow))}
    for name, more in (("torch bf16", ""), ("torch fp8", f" --fp8 {recipe}")):
        runs[name] = torch(arguments + more, 1, 1, ROUNDED_STEPS)
    log.write(json.dumps({"row": row, "seed": seed, "lr": ROUNDED_LR, **runs}) + "\n")
    log.flush()
    return f"{row:<18} seed {seed}: " + ", ".join(f"{name} {descent(run)}" for name, run in runs.items())


def descent(run):
    """Every 25th loss, and the mean of the last 20."""
    losses = run.get("losses")
    if not losses:
        return f"failed: {run.get('error', '')[-200:]}"
    return f"{' '.join(f'{x:.4f}' for x in losses[24::25])}, mean of 20 {statistics.mean(losses[-20:]):.4f}"


def main():
    folder, wanted = sys.argv[1], sys.argv[2:] or [k for k, v in ROWS.items() if v[2] == 1]
    log = open(os.path.join(os.environ.get("OUT", "/tmp"), "gpu_step_time.jsonl"), "a")
    print(f"{'row':<18}{'rankc ms':>10}{'min':>9}{'p90':>9}{'tok/s/GPU':>11}{'torch ms':>10}{'min':>9}{'p90':>9}{'ratio':>8}  loss: rankc-torch", flush=True)
    for row in wanted:
        if compare := spread if row in SPREADS else rounded if row in ROUNDED else None:
            for seed in SEEDS:
                print(compare(folder, row, log, seed), flush=True)
            continue
        program, tokens, gpus, forms = ROWS[row]
        began = time.time()
        try:
            mine = rankc(folder, program)
        except subprocess.CalledProcessError as e:
            print(f"{row:<18} rankc failed: {e}", flush=True)
            continue
        print(f"{row:<18}{mine['ms']:>10.2f}{mine['min']:>9.2f}{mine['p90']:>9.2f}{1e3 * tokens / mine['ms'] / gpus:>11.0f}", end="", flush=True)
        theirs = [] if os.environ.get("NO_TORCH") else [torch(form, gpus) for form in forms]
        log.write(json.dumps({"row": row, "rankc": mine, "torch": theirs, "forms": forms}) + "\n")
        log.flush()
        text = ""
        good = [t for t in theirs if t.get("ok")]
        if good:
            best = min(good, key=lambda t: t["step_ms"])
            text += (f"{best['step_ms']:>10.2f}{best['step_ms_min']:>9.2f}{best['step_ms_p90']:>9.2f}{best['step_ms'] / mine['ms']:>7.2f}x"
                     f"  {difference(mine['losses'], best['losses']):.2e}")
        for t in theirs:
            if not t.get("ok"):
                text += f"  torch failed: {t.get('error', '')[-200:]}"
        print(text + f"  ({time.time() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
