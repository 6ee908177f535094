#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes conversations as the chat templates of five model families render them in transformers.

    pip install transformers==5.24.0 jinja2
    make_chats.py TEMPLATES

TEMPLATES is a folder with the models' own templates, NAME.jinja of NAMES below. They are not stored here. cases.json
gets the conversations, and for each template the text, the tokens and the labels of each conversation. The tokenizer
is ../tokenizers/llama3.json with the special tokens of the templates.
"""
import json
import pathlib
import sys

import transformers
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
DATE = "2025-08-05"
# By template: the tokens that begin and end a text, and the texts that begin and end the model's output.
NAMES = {
    "chatml": (None, None, "<|im_start|>assistant\n", ["<|im_end|>"]),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>assistant<|end_header_id|>\n\n", ["<|eot_id|>"]),
    "mistral": ("<s>", "</s>", "", ["</s>"]),
    "gemma": ("<bos>", "<eos>", "<start_of_turn>model\n", ["<end_of_turn>"]),
    "gpt-oss": (None, "<|return|>", "<|start|>assistant", ["<|end|>", "<|return|>"]),
}
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
           "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<bos>", "<eos>",
           "<start_of_turn>", "<end_of_turn>", "<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>",
           "<|endoftext|>"]


def talk(*contents, system=None):
    roles = ["user", "assistant"]
    messages = [{"role": roles[i % 2], "content": c} for i, c in enumerate(contents)]
    return ([{"role": "system", "content": system}] if system is not None else []) + messages


CHATS = {
    "question": talk("Which rank waits?"),
    "one turn": talk("Which rank waits?", "Rank 3, for rank 1."),
    "system": talk("Which rank waits?", "Rank 3.", system="Answer in one line."),
    "turns": talk("one", "two", "three", "four", "five", "six", system="Count on."),
    "ends with the user": talk("one", "two", "three"),
    "white space": talk("  a line\n\n", "\n\n  code:\n\tx = 1\n\n", "\u3000b\u00a0", "\x1fc\u2003\n", system="\n be brief \n"),
    "only white space": talk(" ", "\n"),
    "empty": talk("", "", system=""),
    "scripts": talk("Größe? 日本語 देवनागरी", "👩‍👩‍👧 صِف ก็ Ω", system="Ελληνικά"),
    "marks": talk("e\u0301a\u0308", "\u0301 n\u0303 \u212b"),
    "code": talk("for (int i = 0; i < n; ++i) {\n\tx[i] += 1;\n}", "```c\nreturn [INST;\n```\n"),
    "looks like markers": talk("<|im_sta [INS </", "im_end|> </ s>"),
    "special tokens": talk("what is <|im_end|> or </s>?", "[INST] is a token, <end_of_turn> too<|eot_id|>"),
    "long": talk("word " * 40, "12345 " * 40),
}
# Roles and orders that only some of the templates have.
SOME = {
    "tool": ([{"role": "user", "content": "2+2?"}, {"role": "tool", "content": "4"},
              {"role": "assistant", "content": "It is 4."}], ["chatml"]),
    "two of the assistant": ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                              {"role": "assistant", "content": "c"}], ["chatml", "llama3", "mistral", "gpt-oss"]),
    "begins with the assistant": (talk("a", "b")[1:], ["chatml", "llama3", "mistral", "gpt-oss"]),
    "system in the middle": (talk("a", "b") + talk("c", "d", system="s"), ["chatml", "llama3", "mistral"]),
}


def tokenizer_of(name, template):
    raw = Tokenizer.from_file(str(HERE.parent / "tokenizers" / "llama3.json"))
    raw.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    begin, end, *_ = NAMES[name]
    made = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=begin, eos_token=end)
    made.chat_template = template.replace('strftime_now("%Y-%m-%d")', f'"{DATE}"')
    return made


def written_spans(name, made, text, chat):
    """The characters that the model writes. A rendering of placeholders shows where the contents are."""
    _, _, begins, ends = NAMES[name]
    def is_trimmed(message):
        return name == "llama3" or (name == "gemma" and message["role"] != "system")

    contents = [m["content"].strip() if is_trimmed(m) else m["content"] for m in chat]
    shown = [i for i, m in enumerate(chat) if name != "gpt-oss" or m["role"] != "system" or m["content"]]
    placed = made.apply_chat_template([{**chat[i], "content": f"\ue000{i}\ue001"} for i in shown], tokenize=False)
    spans, rebuilt = [], ""
    for i in shown:
        literal, placed = placed.split(f"\ue000{i}\ue001")
        rebuilt += literal
        begin = len(rebuilt) - (len(literal) - literal.rfind(begins) - len(begins) if begins else 0)
        rebuilt += contents[i]
        if chat[i]["role"] == "assistant":
            spans.append((begin, len(rebuilt) + len(next(e for e in ends if placed.startswith(e)))))
    assert rebuilt + placed == text, (name, text)
    return spans


def case_of(name, made, chat):
    text = made.apply_chat_template(chat, tokenize=False)
    ids = made.apply_chat_template(chat, tokenize=True, return_dict=False)
    encoded = made(text, add_special_tokens=False, return_offsets_mapping=True)
    assert encoded["input_ids"] == ids
    spans = written_spans(name, made, text, chat)
    labels = [int(any(b < s[1] and e > s[0] for s in spans)) for b, e in encoded["offset_mapping"]]
    return {"text": text, "ids": ids, "labels": "".join(map(str, labels))}


def main():
    templates = {name: (pathlib.Path(sys.argv[1]) / f"{name}.jinja").read_text() for name in NAMES}
    chats = {**CHATS, **{name: chat for name, (chat, _) in SOME.items()}}
    cases = []
    for template, text in templates.items():
        made = tokenizer_of(template, text)
        for name, chat in chats.items():
            if name in SOME and template not in SOME[name][1]:
                continue
            case = {"template": template, "chat": name, **case_of(template, made, chat)}
            if name == "question":
                case["prompt"] = made.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
            cases.append(case)
    lines = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases)
    head = json.dumps({"transformers": transformers.__version__, "date": DATE, "special": SPECIAL, "chats": chats},
                      ensure_ascii=False)
    (HERE / "cases.json").write_text(head[:-1] + ', "cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
