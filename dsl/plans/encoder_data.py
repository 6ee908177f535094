# SPDX-License-Identifier: Apache-2.0
"""Data for the plans 10_vision_transformer and 11_regression_encoder, as .npy files.

Usage: encoder_data.py FOLDER [SAMPLES]. Writes FOLDER/images (patches.npy, labels.npy) and FOLDER/waves
(features.npy, target_values.npy). An image has one stripe, and its label is the direction of the stripe. A wave is a
sum of two sines in noise, and its values are their amplitudes.
"""
import array
import math
import os
import random
import struct
import sys

SIDE, PATCH_SIDE = 16, 4
TOKENS, FEATURES = 16, 8


def write_npy(path, typecode, numbers, shape):
    descr = {"f": "<f4", "i": "<i4"}[typecode]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        array.array(typecode, numbers).tofile(out)


def make_image(label):
    """Numbers of an image, patch after patch."""
    offset = random.randrange(SIDE)
    distance = [
        lambda x, y: (y - offset) % SIDE,
        lambda x, y: (x - offset) % SIDE,
        lambda x, y: (x - y - offset) % SIDE,
        lambda x, y: (x + y - offset) % SIDE,
    ][label]
    stripe = lambda x, y: 1.0 if distance(x, y) < 3 else -0.3
    patches = range(0, SIDE, PATCH_SIDE)
    places = [(x, y) for top in patches for left in patches
              for y in range(top, top + PATCH_SIDE) for x in range(left, left + PATCH_SIDE)]
    return [stripe(x, y) + random.gauss(0, 0.3) for x, y in places]


def make_wave(amplitudes):
    """Numbers of a wave, token after token."""
    phases = [random.uniform(0, 2 * math.pi) for _ in amplitudes]
    count = TOKENS * FEATURES
    waves = [(a, f, p) for a, f, p in zip(amplitudes, (3, 11), phases)]
    return [sum(a * math.sin(2 * math.pi * f * n / count + p) for a, f, p in waves) + random.gauss(0, 0.05)
            for n in range(count)]


def main():
    folder, samples = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4096
    random.seed(1)
    for name in ("images", "waves"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    labels = [random.randrange(4) for _ in range(samples)]
    values = [[random.uniform(0, 1), random.uniform(0, 1)] for _ in range(samples)]
    images = [x for label in labels for x in make_image(label)]
    waves = [x for pair in values for x in make_wave(pair)]
    path = lambda *parts: os.path.join(folder, *parts) + ".npy"
    patch = PATCH_SIDE * PATCH_SIDE
    write_npy(path("images", "patches"), "f", images, (samples, SIDE * SIDE // patch, patch))
    write_npy(path("images", "labels"), "i", labels, (samples,))
    write_npy(path("waves", "features"), "f", waves, (samples, TOKENS, FEATURES))
    write_npy(path("waves", "target_values"), "f", [x for pair in values for x in pair], (samples, 2))


main()
