#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion on the golden data: derives the stored results anew from the format's description, with Python's
standard library alone and no code of this project. Exits 0 only if all of it agrees."""
import math
import os
import struct
import sys

BLOCK_BYTES = 144
PRODUCTS_MAX = 300_000  # larger matrices would take Python minutes


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def to_f32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def load(path):
    """-> (n_out, k, n_tok, {section: bytes})"""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"SPKGOLD1":
        raise ValueError(f"{path}: not a golden file")
    _kind, n_out, k, n_tok, section_count, _zero = struct.unpack_from("<6I", data, 8)
    sections = {}
    for i in range(section_count):
        name, offset, size = struct.unpack_from("<24sQQ", data, 64 + 40 * i)
        sections[name.split(b"\0")[0].decode()] = data[offset:offset + size]
    return n_out, k, n_tok, sections


def scale_and_minimum(scales, j):
    """Eight pairs of 6-bit numbers in 12 bytes: the first four plain, the others with their upper bits above those."""
    if j < 4:
        return scales[j] & 63, scales[j + 4] & 63
    return (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4, (scales[j + 4] >> 4) | (scales[j] >> 6) << 4


def dequantise(block):
    """One Q4_K block of 144 bytes -> its 256 values"""
    d, dmin = struct.unpack_from("<2e", block, 0)
    scales, nibbles = block[4:16], block[16:144]
    values = []
    for j in range(8):
        scale, minimum = scale_and_minimum(scales, j)
        for byte in nibbles[j // 2 * 32:j // 2 * 32 + 32]:
            nibble = byte >> 4 if j & 1 else byte & 15
            values.append(to_f32(d * scale * nibble - dmin * minimum))
    return values


def same(a, b):
    return (math.isnan(a) and math.isnan(b)) or a == b


def products_agree(weights, n_out, k, n_tok, sections):
    x, y = floats(sections["X_f32"]), floats(sections["Y_ref_f32"])
    for t in range(n_tok):
        for row in range(n_out):
            value = sum(weights[row * k + i] * x[t * k + i] for i in range(k))
            if abs(value - y[t * n_out + row]) > 1e-5 * max(abs(value), 1e-3):
                return False
    return True


def verify(path):
    """-> list of what does not agree"""
    name = os.path.basename(path)
    n_out, k, n_tok, sections = load(path)
    blocks = sections.get("W_q4k") or sections["q4k"]
    weights = [value for at in range(0, len(blocks), BLOCK_BYTES) for value in dequantise(blocks[at:at + BLOCK_BYTES])]
    wrong = []
    stored = sections.get("W_dequant_f32") or sections.get("dequant_f32")
    if stored and not all(map(same, weights, floats(stored))):
        wrong.append(f"{name}: dequantised values differ")
    finite = name != "edge_nonfinite.bin"
    if "Y_ref_f32" in sections and finite and n_out * k * n_tok <= PRODUCTS_MAX:
        if not products_agree(weights, n_out, k, n_tok, sections):
            wrong.append(f"{name}: products differ")
    return wrong


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    files = sorted(name for name in os.listdir(folder) if name.endswith(".bin"))
    wrong = [finding for name in files for finding in verify(os.path.join(folder, name))]
    print("\n".join(wrong) if wrong else f"{len(files)} files agree")
    return 1 if wrong or not files else 0


sys.exit(main())
