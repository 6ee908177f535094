#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small tokenizer of each family with the `tokenizers` package, and writes the ids of test texts.

    pip install tokenizers==0.21.4
    make_tokenizers.py

NAME.json are tokenizer.json files. cases.json has the texts and, for each tokenizer and each change of one, the
ids that the package gives. A text that is not UTF-8 is decoded by bytes.decode(errors="replace").
"""
import json
import pathlib

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers

HERE = pathlib.Path(__file__).parent
MERGES = 300

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = [
    r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]


def split(expression):
    return pre_tokenizers.Split(Regex(expression), "isolated", False)


def sequence(*splits):
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


TEXTS = {
    "english": "The ranks of a group agree on one order; it's the plan's, and they'll keep it. Don't WE'LL I'D?",
    "french": "L'été où l'œuvre naïve coûta 1 234,50 € à l'élève, çà et là…",
    "german": "Größe, Straße, Übermaß: die Fußgängerzone hört auf; STRASSE.",
    "vietnamese": "Tiếng Việt có nhiều dấu thanh, viết bằng chữ Quốc ngữ.",
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "greek": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, Σίσυφος ὀξύς.",
    "arabic": "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت ١٢٣٤٥",
    "hebrew": "דג סקרן שט בים מאוכזב ולפתע מצא חברה, שָׁלוֹם",
    "hindi": "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश १२३४",
    "tamil": "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது",
    "thai": "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์ ๑๒๓",
    "chinese": "天地玄黄,宇宙洪荒。日月盈昃,辰宿列张。2026年11月30日",
    "japanese": "いろはにほへと ちりぬるを、カタカナとひらがなと漢字。ー々〆",
    "korean": "다람쥐 헌 쳇바퀴에 타고파. 키스의 고유조건은 입술끼리",
    "georgian": "გთხოვთ ახლავე გაიაროთ რეგისტრაცია ᲒᲗᲮᲝᲕᲗ",
    "code": "for (int i = 0; i < n; ++i) {\n\tx[i] += a*y[i];  // y's\n}\n\nreturn \"ok\";\r\n#define F(x) ((x)->next)\n",
    "python": "def f(self, *args: int) -> dict[str, int]:\n    if not args:\n        return {'a': 0x1F, 'b': 1e-9}\n",
    "digits": "0 1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 ½ ² Ⅷ ٣٤ ৩৪ 𝟘𝟙",
    "spaces": "a  b   c    d\n\n\ne\t\tf \n g  \n   \r\n\r\n h\u00a0i\u3000j\u2009\u2009k\u0085l\u180em\u200bn  ",
    "only spaces": "      ",
    "one line end": "\n",
    "contractions": "it's IT'S I'm you're YOU'RE we've he'd she'll 'tis rock'n'roll 'S 'ſ 's's 'LLx 'llx ''s",
    "emoji": "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 ☺️ 🇩🇪🇫🇷 1️⃣ ❤️‍🔥x🤷🏿‍♀️",
    "marks": "e\u0301 a\u030a\u0323 o\u0323\u0302 A\u0308\u0301 \u0344 n\u0303n \u0928\u093c \u1100\u1161\u11a8 \ufb01 \u212b "
             "q\u0307\u0323\u0301\u0316 \u0301x",
    "specials": "a<|begin|> b <|end|>\n<|end|> <|end|><|end_of<|end|",
    "nothing": "",
    "null": "a\0b\0\0c",
    "long word": "ab" * 200 + " " + "x" * 100 + "É" * 40,
    "url": "https://example.org/a_b-c?q=%20x&y=1#Z (see [1], [2]); $5.00 + €3 ≈ £2…",
    "case": "HTTPServer iPhone McDonald ΑΒγ ǅungla XMLHttpRequest's ÀÉîö ʰx",
}
BROKEN = {
    "broken utf-8": "c3 28 20 a0 a1 20 e2 28 a1 20 e2 82 20 f0 90 8c 20 f0 9f 92 61 20 ff fe ed a0 80 c0 af f5 80 80 61",
    "cut utf-8": "e4 bd a0 e5 a5",
}
# The texts of a changed tokenizer.
CHANGED = ["english", "french", "greek", "japanese", "code", "digits", "spaces", "marks", "specials", "null", "case",
           "broken utf-8"]
CORPUS = [*TEXTS.values(), *(t.upper() for t in TEXTS.values())]


def trained(pre_tokenizer, normalizer=None, post_processor=None, ignore_merges=False):
    made = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    made.pre_tokenizer, made.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        made.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, show_progress=False, min_frequency=1,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(CORPUS, trainer)
    made.add_special_tokens(["<|begin|>", "<|end|>", "<|end_of|>"])
    if post_processor:
        made.post_processor = post_processor(made)
    return made


def begins(made):
    token = "<|begin|>"
    return processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token} $B:1", special_tokens=[(token, made.token_to_id(token))])])


def families():
    return {
        "gpt2": trained(pre_tokenizers.ByteLevel(add_prefix_space=False)),
        "llama3": trained(sequence(split(LLAMA3)), None, begins, True),
        "qwen2": trained(sequence(split(QWEN2)), normalizers.NFC()),
        "gpt_oss": trained(sequence(split(O200K))),
        "deepseek": trained(sequence(*map(split, DEEPSEEK)), normalizers.Sequence([])),
    }


def added(made, tokens):
    """The field added_tokens with further tokens."""
    copy = Tokenizer.from_str(made.to_str())
    copy.add_tokens(tokens)
    return json.loads(copy.to_str())["added_tokens"]


def pre(*steps):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, byte_level]}}


def step(pattern, behavior, invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def changes(gpt2):
    """Merge patches of gpt2.json, each with what it changes."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    found = {
        "prefix space": {"pre_tokenizer": byte_level},
        "prefix space of pieces": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            step(r"\s+", "Removed"), byte_level]}},
        "digits": pre({"type": "Digits", "individual_digits": False}),
        "single digits": pre({"type": "Digits", "individual_digits": True}),
        "text": pre(step(".", "Isolated", kind="String"), step("e", "MergedWithNext", kind="String")),
        "classes": pre(step(r"[\S\d]{2,3}|[^\s\P{L}-]{2}\x{20}|\u0041+?|\D\v", "Isolated")),
        "lookbehind": pre(step(r"(?<=[a-z])(?=[A-Z])[A-Z]++|(?<! )(?>\d+|x*y)", "Isolated")),
        "scripts": pre(step(r"\p{Han}+|[\p{Hiragana}\p{Katakana}]+", "Isolated")),
        "no merges": {"model": {"merges": []}},
        "pairs": {"model": {"merges": [list(m) for m in json.loads(gpt2.to_str())["model"]["merges"]]}},
        "words": {"model": {"ignore_merges": True, "merges": []}},
        "unused flags": {"model": {"unk_token": "<|end|>", "fuse_unk": True, "end_of_word_suffix": ""}},
        "added": {"added_tokens": added(gpt2, [
            AddedToken("rank", single_word=True), AddedToken("x", lstrip=True), AddedToken("a", rstrip=True),
            AddedToken("the plan", lstrip=True, rstrip=True, normalized=False), AddedToken("   "),
            AddedToken("it", single_word=True, normalized=False), AddedToken("é", single_word=True)])},
        "added, normalized": {"normalizer": {"type": "NFC"}, "added_tokens": added(gpt2, [
            AddedToken("e\u0301", normalized=True), AddedToken("\u212b", normalized=True),
            AddedToken("n\u0303", normalized=False)])},
    }
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            found[f"{behavior}{', inverted' if invert else ''}"] = pre(step(r"[aeiou\s]", behavior, invert))
    return found


def fallback(gpt2):
    """Bytes of é have no letters: their letters' bytes have tokens."""
    root = json.loads(gpt2.to_str())
    vocab = root["model"]["vocab"]
    gone = [t for t in vocab if set(t) & set("Ã©")]
    root["model"]["merges"] = [m for m in root["model"]["merges"] if not set("".join(m)) & set("Ã©")]
    kept = [t for t in vocab if t not in gone] + [f"<0x{b:02X}>" for b in sorted(set("Ã©".encode()))]
    root["model"]["vocab"] = {t: i for i, t in enumerate(kept)}
    root["model"]["byte_fallback"] = True
    root["added_tokens"] = []
    return root


def ids_of(made, texts):
    return {name: made.encode(text, add_special_tokens=False).ids for name, text in texts.items()}


def main():
    texts = {**TEXTS, **{n: bytes.fromhex(h).decode(errors="replace") for n, h in BROKEN.items()}}
    some = {name: texts[name] for name in CHANGED}
    cases = []
    made = families()
    for name, tokenizer in made.items():
        root = json.loads(tokenizer.to_str())
        if name == "gpt2":  # the older form of merges
            root["model"]["merges"] = [" ".join(m) for m in root["model"]["merges"]]
        (HERE / f"{name}.json").write_text(json.dumps(root, ensure_ascii=False, separators=(",", ":")) + "\n")
        begin = tokenizer.encode("", add_special_tokens=True).ids
        cases.append({"name": name, "file": name, "patch": {}, "begin": begin, "ids": ids_of(tokenizer, texts)})
    roots = {name: json.loads(t.to_str()) for name, t in made.items()}
    patches = {**changes(made["gpt2"]), "fallback": {"added_tokens": [], "model": fallback(made["gpt2"])["model"]}}
    for name, patch in patches.items():
        root = json.loads(json.dumps(roots["gpt2"]))
        for key, value in patch.items():
            root[key] = {**root[key], **value} if key == "model" else value
        patched = Tokenizer.from_str(json.dumps(root))
        cases.append({"name": name, "file": "gpt2", "patch": patch, "begin": [], "ids": ids_of(patched, some)})
    lines = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases)
    head = json.dumps({"tokenizers": tokenizers.__version__, "texts": TEXTS, "hexadecimal": BROKEN}, ensure_ascii=False)
    (HERE / "cases.json").write_text(head[:-1] + ', "cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
