# SPDX-License-Identifier: Apache-2.0
"""A model of lm-eval whose log-probabilities a rankc program computes.

    lm_eval.simple_evaluate(model=RankcLM("build/gpt", "checkpoints", "tokenizer"), tasks=["lambada_openai"])

The tokenizer is a folder or file that `tokenizers` or `transformers` reads, or "bytes" for a model of bytes.
"""
import json
import os
import subprocess
import tempfile

from lm_eval import utils
from lm_eval.api.model import TemplateLM


class Bytes:
    """Text as its UTF-8 bytes. Documents are separated by a line's end."""
    bos_token_id, eos_token_id = None, 10

    def encode(self, text, **_):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode(errors="replace")


def tokenizer_of(name):
    if name == "bytes":
        return Bytes()
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    if name.endswith(".json"):
        return PreTrainedTokenizerFast(tokenizer_file=name, eos_token="<|endoftext|>")
    return AutoTokenizer.from_pretrained(name)


class RankcLM(TemplateLM):
    """Asks `program score` for log-probabilities. One call of a task answers all requests of the task.

    Texts become the tokens that lm-eval's model "hf" makes of them.
    """

    def __init__(self, program, load, tokenizer="bytes"):
        super().__init__()
        self.command = [program, "score", "--load", load, "--requests"]
        described = subprocess.run([program, "describe", "--json"], check=True, capture_output=True, text=True)
        self.seq = json.loads(described.stdout)["recipe"]["seq"]
        self.tokenizer = tokenizer_of(tokenizer)

    @property
    def eot_token_id(self):
        return self.tokenizer.eos_token_id

    @property
    def prefix_token_id(self):
        bos = self.tokenizer.bos_token_id
        return self.eot_token_id if bos is None else bos

    def tok_encode(self, string, add_special_tokens=None, **_):
        """The tokens of a text, with the tokenizer's special tokens unless the text begins with the prefix token."""
        if add_special_tokens is None:
            add_special_tokens = not string.startswith(self.tokenizer.decode([self.prefix_token_id]))
        return self.tokenizer.encode(string, add_special_tokens=add_special_tokens)

    def score(self, pairs):
        """The (log-probability, greedy) of each (context, continuation) of token ids."""
        if not pairs:
            return []
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "requests.jsonl")
            with open(file, "w") as out:
                for context, continuation in pairs:
                    out.write(json.dumps({"context": context, "continuation": continuation}) + "\n")
            answered = subprocess.run(self.command + [file], stdout=subprocess.PIPE, text=True)
        if answered.returncode != 0:
            raise RuntimeError(f"{' '.join(self.command)} ended with {answered.returncode}")
        answers = [json.loads(line) for line in answered.stdout.splitlines()]
        return [(answer["logprob"], answer["greedy"]) for answer in answers]

    def _loglikelihood_tokens(self, requests, disable_tqdm=False, **_):
        return self.score([(context or [self.prefix_token_id], continuation) for _, context, continuation in requests])

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        """The log-probability of whole texts, each token seen once, in windows of seq tokens."""
        windows = [[utils.make_disjoint_window(w) for w in utils.get_rolling_token_windows(
            token_list=self.tok_encode(request.args[0]), prefix_token=self.prefix_token_id, max_seq_len=self.seq,
            context_len=1)] for request in requests]
        scores = iter(self.score([(list(c), list(t)) for text in windows for c, t in text]))
        return [sum(next(scores)[0] for _ in text) for text in windows]

    def generate_until(self, requests, disable_tqdm=False):
        raise NotImplementedError("a rankc program scores continuations; choose a task of loglikelihood or multiple_choice")
