# Makes the bad specifications whose bytes are special or too many to keep: python3 tests/corpus/bad/make_bad.py FOLDER
# What each must answer stands in index.json, as for the others, with "made": true.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

PLAIN = "def attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n"


def around(expression):
    """A specification with one expression of interest, on line 2."""
    return f"def attention(q, k, v):\n    s = {expression}\n    return s.softmax(-1) @ v\n"


def nested_blocks(depth):
    lines = ["def attention(q, k, v):"]
    lines += [" " * (n + 1) + "if True:" for n in range(depth)]
    return "\n".join(lines + [" " * (depth + 1) + "return (q @ k.mT).softmax(-1) @ v", ""])


def helper_chain(depth, fan):
    """Helpers that each call the next `fan` times: fan ** depth calls."""
    lines = []
    for n in range(depth):
        lines += [f"def f{n}(x):", "    return " + " + ".join([f"f{n + 1}(x)"] * fan), ""]
    return "\n".join(lines + [f"def f{depth}(x):", "    return x", "", around("f0(q @ k.mT)")])


def doubled(times):
    return "import torch\n\n\ndef attention(q, k, v):\n    s = q @ k.mT\n" + "    s = torch.cat([s, s], dim=-1)\n" * times + \
        "    return s.softmax(-1)[..., :1] * v\n"


# name: (bytes or text, what to expect)
FILES = {
    "not_utf8.txt": (b"# caf\xe9\n" + PLAIN.encode(), {"kind": "encoding", "line": 1}),
    "not_utf8_in_string.txt": (around('"\u00ff"').encode("latin-1"), {"kind": "encoding", "line": 2}),
    "overlong_utf8.txt": (b"x = '\xc0\xaf'\n" + PLAIN.encode(), {"kind": "encoding", "line": 1}),
    "surrogate_utf8.txt": (b"x = '\xed\xa0\x80'\n" + PLAIN.encode(), {"kind": "encoding", "line": 1}),
    "truncated_utf8.txt": (PLAIN.encode() + b"# \xe2\x89", {"kind": "encoding", "line": 3}),
    "utf16.txt": (PLAIN.encode("utf-16"), {"kind": "encoding"}),
    "nul_byte.txt": (PLAIN.replace("softmax", "soft\0max").encode(), {"line": 2}),
    "all_nul.txt": (b"\0" * 4096, {}),
    "binary.txt": (bytes((n * 167 + 13) % 256 for n in range(8192)), {}),
    "only_newlines.txt": ("\n" * 100000, {"mentions": "attention"}),
    "deep_parentheses.txt": (around("(" * 100000 + "q @ k.mT" + ")" * 100000), {"line": 2}),
    "deep_open_parentheses.txt": (around("(" * 100000), {"line": 2}),
    "deep_lists.txt": (around("[" * 50000 + "]" * 50000), {"line": 2}),
    "deep_unary.txt": (around("-" * 100000 + "(q @ k.mT)"), {"line": 2}),
    "deep_not.txt": (around("not " * 100000 + "q"), {"line": 2}),
    "deep_calls.txt": (around("abs(" * 50000 + "q" + ")" * 50000), {"line": 2}),
    "deep_subscripts.txt": (around("q" + "[0]" * 100000), {"line": 2}),
    "deep_attributes.txt": (around("k" + ".mT" * 100000), {}),
    "deep_powers.txt": (around("**".join(["2"] * 100000)), {"line": 2}),
    "deep_lambdas.txt": (around("lambda: " * 50000 + "q"), {"line": 2}),
    "deep_conditionals.txt": (around("q if True else " * 50000 + "k"), {"line": 2}),
    "deep_blocks.txt": (nested_blocks(3000), {}),
    "long_sum.txt": (around("q @ k.mT" + " + 1" * 3000000), {"kind": "limit"}),
    "long_name.txt": (around("x" * 5000000), {}),
    "long_number.txt": (around("q @ k.mT + " + "9" * 1000000), {}),
    "long_string.txt": (around('"' + "a" * 5000000), {"kind": "syntax", "line": 2}),
    "many_statements.txt": ("def attention(q, k, v):\n    s = q @ k.mT\n" + "    s = s + 1\n" * 1000000 + "    return s.softmax(-1) @ v\n", {"kind": "limit"}),
    "many_parameters.txt": ("def attention(q, k, v, " + ", ".join(f"a{n}" for n in range(100000)) + "):\n    return (q @ k.mT).softmax(-1) @ v\n", {}),
    "many_calls.txt": (helper_chain(40, 3), {"kind": "limit"}),
    "many_doublings.txt": (doubled(80), {"kind": "limit"}),
    "carriage_return_in_name.txt": (PLAIN.replace("softmax", "soft\rmax"), {}),
    "bell_character.txt": (PLAIN.replace("return", "return\a"), {"kind": "syntax", "line": 2}),
    "no_break_space.txt": (PLAIN.replace("    return", "\u00a0\u00a0\u00a0\u00a0return"), {"line": 2}),
    "right_to_left_mark.txt": (around("q @ k.mT \u202e"), {"line": 2}),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (data, _) in FILES.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))


if __name__ == "__main__":
    main()
