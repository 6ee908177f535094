# SPDX-License-Identifier: Apache-2.0
"""lm-eval through rankc_lm.py: its accuracy and log-probabilities are those of `score`, asked directly.

Arguments: the folder of rankc_lm.py and a program of bytes. Exits with 77 where lm-eval is not installed.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import lm_eval
    from lm_eval.tasks import TaskManager
except ImportError:
    print("lm-eval is not installed")
    sys.exit(77)
sys.path.insert(0, sys.argv[1])
from rankc_lm import RankcLM

TASK = """task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: DOCS}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
target_delimiter: ""
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
"""

program = os.path.abspath(sys.argv[2])
docs = [{"question": "abc" * (1 + i % 7), "choices": ["abc", "b" * (1 + i % 3), "\u00e9"], "answer": i % 3} for i in range(9)]
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([program, "train", "--steps", "2", "--save", "save"], check=True, stdout=subprocess.DEVNULL)
    with open("docs.jsonl", "w") as out:
        out.writelines(json.dumps(doc) + "\n" for doc in docs)
    os.mkdir("tasks")
    with open("tasks/choices.yaml", "w") as out:
        out.write(TASK.replace("DOCS", os.path.join(folder, "docs.jsonl")))
    found = lm_eval.simple_evaluate(model=RankcLM(program, "save"), tasks=["choices"], log_samples=True,
                                    task_manager=TaskManager(include_path="tasks"), bootstrap_iters=0)
    right = 0
    for doc, sample in zip(docs, found["samples"]["choices"]):
        with open("requests.jsonl", "w") as out:
            for choice in doc["choices"]:
                out.write(json.dumps({"context": list(doc["question"].encode()), "continuation": list(choice.encode())}) + "\n")
        answered = subprocess.run([program, "score", "--load", "save", "--requests", "requests.jsonl"], check=True,
                                  stdout=subprocess.PIPE, text=True)
        scores = [json.loads(line)["logprob"] for line in answered.stdout.splitlines()]
        assert [float(response[0][0]) for response in sample["resps"]] == scores, (sample["resps"], scores)
        right += scores.index(max(scores)) == doc["answer"]
    assert found["results"]["choices"]["acc,none"] == right / len(docs), (found["results"], right)
