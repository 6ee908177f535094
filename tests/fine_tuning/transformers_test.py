# SPDX-License-Identifier: Apache-2.0
"""The merged folder of a fine-tuning run, in transformers and in lm-eval.

    transformers_test.py loss|accuracy BASE ADAPTED TOOL TOKENIZER RANKC_LM

BASE and ADAPTED are programs: a model, and the model with LoRA adapters. TOOL is rankc, TOKENIZER a tokenizer.json, and
RANKC_LM the folder of rankc_lm.py. `loss` compares the masked loss of the conversations with that of `eval`. `accuracy`
compares the accuracy of a task of lm-eval. Exits with 77 where a package is not installed.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    if sys.argv[1] == "accuracy":
        import lm_eval
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
        from lm_eval.tasks import TaskManager
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
# The commands of runtime/trainer/fine_tune.md, from a Hugging Face folder to a merged folder.
FINE_TUNING = [
    "rankc tokens --model hf --chat chatml --pack 64 --end-of-document <|endoftext|> --out chat.bin chat.jsonl",
    "adapted train --init hf --data chat.bin --steps 60 --lr 1e-2 --shuffle 1 --save tuned",
    "adapted export --load tuned --merge --format huggingface --out merged",
]
TASK = """task: parity
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: ["yes", "no", "maybe"]
doc_to_target: "{{answer}}"
target_delimiter: ""
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
"""


def conversations():
    return [[{"role": "user", "content": f"Is {i} even?"}, {"role": "assistant", "content": "no" if i % 2 else "yes"}]
            for i in range(40)]


def write_tokenizer(source):
    """The files of a tokenizer, with ChatML and its special tokens at the next free ids."""
    with open(source) as file:
        root = json.load(file)
    first = max(token["id"] for token in root["added_tokens"]) + 1
    for i, content in enumerate(SPECIAL):
        root["added_tokens"].append({"id": first + i, "content": content, "single_word": False, "lstrip": False,
                                     "rstrip": False, "normalized": False, "special": True})
    with open("hf/tokenizer.json", "w") as file:
        json.dump(root, file)
    with open("hf/tokenizer_config.json", "w") as file:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin|>",
                   "eos_token": "<|endoftext|>", "chat_template": CHATML}, file)


def run(programs, command):
    name, *words = command.split()
    return subprocess.run([programs[name], *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def fine_tune(programs, tokenizer):
    """Makes `hf`, `chat.jsonl`, and all that the commands write."""
    run(programs, "base train --steps 60 --lr 1e-2 --save began")
    run(programs, "base export --load began --format huggingface --out hf")
    write_tokenizer(tokenizer)
    with open("chat.jsonl", "w") as file:
        file.writelines(json.dumps({"messages": messages}) + "\n" for messages in conversations())
    for command in FINE_TUNING:
        run(programs, command)


def ids_of(tokenizer, messages, prompt=False):
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def masked_loss(folder):
    """The mean loss of the assistant's turns over all conversations, each one alone. Returns: loss, labels."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    total, labels = 0.0, 0
    for messages in conversations():
        ids = ids_of(tokenizer, messages)
        first = len(ids_of(tokenizer, messages[:1], prompt=True))
        last = len(ids) - ids[::-1].index(end)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        turn = torch.tensor(ids[first:last])
        total += torch.nn.functional.cross_entropy(logits[first - 1:last - 1], turn, reduction="sum").item()
        labels += len(turn)
    return total / labels, labels


def compare_loss(programs):
    said = run(programs, "base eval --init merged --data chat.bin")
    ours = float(re.search(r"eval: loss ([0-9.]+) nats per token", said)[1])
    theirs, labels = masked_loss("merged")
    print(f"loss of {labels} labels: eval {ours:.9f}, transformers {theirs:.9f}")
    assert f"of which {labels} are labels" in said, said
    assert abs(ours - theirs) <= 2e-7 * theirs  # eval is in f32, transformers in f64


def check_close(ours, theirs):
    """Log-probabilities of two f32 models."""
    assert abs(ours - theirs) <= 1e-6 * abs(theirs), (ours, theirs)


def compare_accuracy(programs, adapter):
    sys.path.insert(0, adapter)
    from rankc_lm import RankcLM
    questions = [{"question": f"<|im_start|>user\nIs {i} even?<|im_end|>\n<|im_start|>assistant\n", "answer": i % 2}
                 for i in range(30, 60)]
    with open("docs.jsonl", "w") as file:
        file.writelines(json.dumps(question) + "\n" for question in questions)
    os.mkdir("tasks")
    with open("tasks/parity.yaml", "w") as file:
        file.write(TASK)
    models = [RankcLM(programs["adapted"], "tuned", "merged"),
              HFLM(pretrained=AutoModelForCausalLM.from_pretrained("merged", dtype=torch.float32),
                   tokenizer=AutoTokenizer.from_pretrained("merged"), batch_size=1)]
    ours, theirs = [lm_eval.simple_evaluate(model=model, tasks=["parity"], log_samples=True, bootstrap_iters=0,
                                            task_manager=TaskManager(include_path="tasks")) for model in models]
    texts = [Instance("loglikelihood_rolling", {}, (text,), 0) for text in ("short", "Is the rank even? " * 30)]
    for x, y in zip(*[model.loglikelihood_rolling(texts) for model in models]):
        check_close(x, y)
    accuracy = [found["results"]["parity"]["acc,none"] for found in (ours, theirs)]
    print(f"accuracy of {len(questions)} questions: rankc {accuracy[0]}, transformers {accuracy[1]}")
    assert accuracy[0] == accuracy[1]
    for a, b in zip(ours["samples"]["parity"], theirs["samples"]["parity"]):
        for x, y in zip(a["filtered_resps"], b["filtered_resps"]):
            check_close(x[0], y[0])
            assert x[1] == y[1], (a["doc"], x, y)


mode, base, adapted, tool, tokenizer, adapter = sys.argv[1], *map(os.path.abspath, sys.argv[2:])
programs = {"base": base, "adapted": adapted, "rankc": tool}
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    fine_tune(programs, tokenizer)
    if mode == "loss":
        compare_loss(programs)
    else:
        compare_accuracy(programs, adapter)
