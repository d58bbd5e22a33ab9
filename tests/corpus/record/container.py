# The record's file: gzip of texts, arrays (each once) and cases, little-endian. README.md says what stands where.
# SPDX-License-Identifier: Apache-2.0
import gzip
import struct
import zlib

import torch

DTYPES = {torch.bool: 0, torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5,
          torch.float16: 6, torch.bfloat16: 7, torch.float32: 8, torch.float64: 9}
PROGRAM, REFUSED, SPECIFICATION = range(3)


def string(s):
    data = s.encode()
    return struct.pack("<I", len(data)) + data


class Record:
    def __init__(self, table):
        self.head = string(f"cubridge-record 1 crc32 {zlib.crc32(table):08x}\n")
        self.texts, self.arrays, self.cases = {}, {}, []

    def text(self, s):
        return self.texts.setdefault(s, len(self.texts))

    def array(self, t):
        """Numbers in the narrowest form that holds them."""
        flat = t.detach().double().flatten().tolist()
        for form, lo, hi in (("b", -128, 127), ("h", -2**15, 2**15 - 1), ("q", -2**53, 2**53)):
            if all(x == x and abs(x) <= 2**53 and x == int(x) and lo <= x <= hi and str(x) != "-0.0" for x in flat):
                data = struct.pack(f"<{len(flat)}{form}", *map(int, flat))
                break
        else:
            narrow = t.double().float().double()
            form = "f" if torch.equal(narrow.nan_to_num(0.5), t.double().nan_to_num(0.5)) and torch.equal(narrow.isinf(), t.double().isinf()) else "d"
            data = struct.pack(f"<{len(flat)}{form}", *flat)
        blob = struct.pack("<BB", ord(form), t.dim()) + struct.pack(f"<{t.dim()}I", *t.shape) + data
        return self.arrays.setdefault(blob, len(self.arrays))

    def value(self, v, dtype=None):
        """A tag and what follows: n None, T array with its dtype, b i f Python numbers."""
        if v is None:
            return b"n"
        if isinstance(v, torch.Tensor):
            return b"T" + struct.pack("<BI", DTYPES[dtype or v.dtype], self.array(v))
        return {bool: b"b", int: b"i", float: b"f"}[type(v)] + struct.pack("<d", v)

    def case(self, name, kind, text, function, mask, pinned, inputs, outputs):
        """inputs: (name, value); outputs: (value, dtype of the plain run), or for REFUSED PyTorch's message."""
        out = string(name) + struct.pack("<BI", kind, self.text(text)) + string(function) + string(mask)
        out += struct.pack("<BI", pinned, len(inputs))
        for n, v in inputs:
            out += string(n) + self.value(v)
        if kind == REFUSED:
            out += string(outputs)
        else:
            out += struct.pack("<I", len(outputs))
            for v, dtype in outputs:
                out += self.value(v, dtype)
        self.cases.append(out)

    def write(self, path):
        data = self.head + struct.pack("<I", len(self.texts)) + b"".join(map(string, self.texts))
        data += struct.pack("<I", len(self.arrays)) + b"".join(self.arrays)
        data += struct.pack("<I", len(self.cases)) + b"".join(self.cases)
        packed = gzip.compress(data, 9, mtime=0)
        path.write_bytes(packed)
        return len(packed)
