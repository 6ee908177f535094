#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus of the fuzz targets, one folder for each: small files, or real files with shorter lists.

    make_corpus.py --checkpoint DIR/step_N --certificate FILE --configs tests/oracles/hf
"""
import argparse
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
MOST = 4000  # the limit of a file, in bytes


def put(target, name, content):
    assert len(content) < MOST, (target, name, len(content))
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def cut(value, most):
    """JSON with at most `most` elements in lists of lists or objects, and in objects of more than 24 members."""
    if isinstance(value, dict):
        kept = list(value.items()) if len(value) <= 24 else list(value.items())[:most]
        return {k: cut(v, most) for k, v in kept}
    if not isinstance(value, list):
        return value
    is_record = any(not isinstance(v, (dict, list)) for v in value)
    return [cut(v, most) for v in (value if is_record else value[:most])]


def put_json(target, name, value):
    for most in (8, 4, 2, 1):
        content = json.dumps(cut(value, most)).encode()
        if len(content) < MOST:
            return put(target, name, content)
    raise ValueError(f"{name} is too large")


def safetensors(tensors, metadata=None):
    """tensors: name -> (type, shape, bytes)"""
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(content)]}
        at += len(content)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def put_safetensors():
    values = struct.pack("<4f", 1, -2, 0.5, 3)
    files = {
        "two": {"a": ("F32", [2, 2], values), "b": ("F64", [1], struct.pack("<d", 4))},
        "halves": {"h": ("F16", [2], b"\0<\1\0"), "w": ("BF16", [1], b"\x80?")},
        "others": {"mask": ("BOOL", [3], b"\1\0\1"), "n": ("I64", [], struct.pack("<q", 5))},
        "not_finite": {"a": ("F32", [1], struct.pack("<f", float("nan")))},
        "empty": {},
    }
    for name, tensors in files.items():
        put("safetensors", name, safetensors(tensors))
    put("safetensors", "summed", safetensors({"a": ("F32", [4], values)}, {"xxh3": "0" * 32}))


def megatron_index(code, lengths, pointers, documents, modes=b""):
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents)) +
            struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(pointers)}q", *pointers) +
            struct.pack(f"<{len(documents)}q", *documents) + modes)


def llm_c(magic, version, letter, tokens):
    header = struct.pack("<256i", magic, version, len(tokens), *[0] * 253)
    return header + struct.pack(f"<{len(tokens)}{letter}", *tokens)


def put_tokens():
    indexes = {
        "u16": megatron_index(8, [3, 2], [0, 6], [0, 1, 2]),
        "i32": megatron_index(4, [2], [8], [0, 1]),
        "modes": megatron_index(1, [4], [0], [0, 1], b"\0"),
        "no_tokens": megatron_index(1, [], [], [0]),
        "documents": megatron_index(1, [1, 0, 2, 1], [0, 1, 1, 3], [0, 1, 1, 3, 4]),
        "unordered": megatron_index(1, [1, 2], [0, 1], [0, 2, 1]),
    }
    for name, content in indexes.items():
        put("megatron_index", name, content)
        put("token_file", name, bytes([len(content)]) + content + struct.pack("<8H", *range(8)))
    put("token_file", "narrow", b"\0" + llm_c(20240520, 1, "H", [1, 2, 255]))
    put("token_file", "wide", b"\0" + llm_c(20240801, 7, "I", [1, 2, 255]))


def put_masks():
    """Masks of eight tokens."""
    def mask(labels, magic=b"RANKCMSK", version=1, packed=0, tokens=8):
        return magic + struct.pack("<IIQ", version, packed, tokens) + bytes(labels)

    mixed, all_labels = [0, 1, 1, 0, 0, 1, 1, 1], [1] * 8
    masks = {
        "mixed": mask(mixed),
        "none": mask([0] * 8),
        "packed": mask(all_labels, packed=4),
        "short": mask(all_labels[1:]),
        "long": mask(all_labels + [1]),
        "wrong_byte": mask([0, 1, 2, 0, 0, 1, 1, 1]),
        "other_magic": mask(mixed, magic=b"RANKCMSX"),
        "other_version": mask(mixed, version=2),
        "other_count": mask(mixed, tokens=2**63),
    }
    for name, content in masks.items():
        put("token_mask", name, content)


def put_weights():
    """Weights of eight tokens."""
    def weights(*numbers):
        return struct.pack(f"<{len(numbers)}f", *numbers)

    files = {
        "mixed": weights(0, 1, 0.5, 3, 2**-100, 2**100, 0, 1),
        "none": weights(*[0] * 8),
        "short": weights(*[1] * 7),
        "long": weights(*[1] * 9),
        "negative": weights(1, 1, -1, 1, 1, 1, 1, 1),
        "small": weights(*[1] * 7, 2**-101),
        "large": weights(2**101, *[1] * 7),
        "not_finite": weights(1, float("nan"), float("inf"), 1, 1, 1, 1, 1),
        "half_a_number": weights(*[1] * 7) + b"\0\0",
    }
    for name, content in files.items():
        put("token_weights", name, content)


def put_arrays():
    """Files of numpy.save, and faulty ones."""
    def npy(descr, shape, numbers, order="False", version=1):
        header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
        length = struct.pack("<H" if version == 1 else "<I", len(header))
        return b"\x93NUMPY" + bytes([version, 0]) + length + header + numbers

    halves = struct.pack("<6f", *(i / 2 for i in range(6)))
    arrays = {
        "matrix": npy("<f4", "(2, 3)", halves),
        "scalar": npy("<f8", "()", struct.pack("<d", 4)),
        "bytes": npy("|u1", "(3,)", b"\0\1\2", version=2),
        "ids": npy("<i8", "(2,)", struct.pack("<2q", -1, 2**62)),
        "empty": npy("<i4", "(0, 5)", b""),
        "columns": npy("<f4", "(2, 3)", halves, order="True"),
        "other_type": npy(">f4", "(2, 3)", halves),
        "short": npy("<f4", "(2, 4)", halves),
        "overflow": npy("<f4", f"({2**33}, {2**33})", halves),
        "header_cut": npy("<f4", "(2, 3)", halves)[:20],
    }
    for name, content in arrays.items():
        put("npy_file", name, content)


def put_chats():
    def line(*turns, **more):
        return json.dumps({"messages": [{"role": r, "content": c} for r, c in turns], **more},
                          ensure_ascii=False).encode()

    lines = {
        "system_alone": line(("system", "s")),
        "tool": line(("user", "2+2"), ("tool", "4"), ("assistant", "4")),
        "tools": line(("user", "a"), tools=[{}]),
        "turns": line(("system", "s"), ("user", " u\n"), ("assistant", "\u3000a"), ("user", "<|im_end|>"),
                      ("assistant", "")),
        "two_of_the_assistant": line(("user", "a"), ("assistant", "b"), ("assistant", "c")),
        "weights": json.dumps({"messages": [{"role": "user", "content": "a", "w": 0},
                                            {"role": "assistant", "content": "b", "w": 2.5}], "w": 1}).encode(),
        "no_weight": line(("user", "a"), ("assistant", "b"), w=-1),
        "parts": line(("user", [{"type": "text", "text": "a"}])),
        "no_messages": line(),
    }
    for name, content in lines.items():
        put("chat_lines", name, content)


def put_hello():
    text = lambda t: struct.pack("<Q", len(t)) + t
    facts = text(b"world") + text(b"2") + text(b"rankc") + text(b"0.1.0")
    put("hello", "rank_1", struct.pack("<QQ", 1, 2) + text(b"node1") + struct.pack("<Q", 321) +
        text(b"gpt 00ff") + text(b"ab") + struct.pack("<Q", 2) + facts)
    put("hello", "no_facts", struct.pack("<QQ", 0, 1) + text(b"") + struct.pack("<Q", 1) + text(b"") * 2 +
        struct.pack("<Q", 0))


def put_option_texts():
    texts = ["A:0.7,B:0.3", "arith:1", "megatron:7:100", "37:40", "gpu-a[01-03,07],b2", "8(x2),4",
             "cosine:20:400:0.1", "wsd:1:2:3:0", "warmup:20,constant:300,linear:80:0"]
    for i, text in enumerate(texts):
        put("option_texts", f"text_{i}", text.encode())


def put_tokenizers():
    """The tokenizers of oracles/tokenizers with 60 tokens, each followed by a text."""
    for file in sorted((HERE.parent.parent / "oracles/tokenizers").glob("*.json")):
        root = json.loads(file.read_text())
        if "model" not in root:
            continue
        model, kept = root["model"], dict.fromkeys("abdehinorstĠ'1.<>|_Ã©Ċ")
        merges = []
        for merge in model["merges"]:
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            if left in kept and right in kept and len(kept) < 60:
                kept[left + right] = None
                merges.append(merge)
        tokens = [*kept, *(t["content"] for t in root["added_tokens"])]
        model["vocab"], model["merges"] = {t: i for i, t in enumerate(tokens)}, merges
        for token in root["added_tokens"]:
            token["id"] = model["vocab"][token["content"]]
        text = "the<|end|> hand's 1.1\n is1 thé\u0301 ".encode() + b"\xc3("
        put("tokenizer_json", file.stem, json.dumps(root, ensure_ascii=False).encode() + b"\0" + text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("checkpoint", "certificate", "configs"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    given = parser.parse_args()
    put_safetensors()
    put_tokens()
    put_masks()
    put_weights()
    put_arrays()
    put_chats()
    put_hello()
    put_option_texts()
    put_tokenizers()
    for config in sorted(given.configs.glob("*/config.json")):
        put("hugging_face_config", config.parent.name, config.read_bytes())
    put_json("run_json", "run", json.loads((given.checkpoint / "run.json").read_text()))
    put_json("checkpoint_index", "index", json.loads((given.checkpoint / "index.json").read_text()))
    put_json("certificate", "cut", json.loads(given.certificate.read_text()))
