# Records what PyTorch gives, for tests/unit/ir/spec/record_test.cpp, which needs no PyTorch. Where PyTorch is:
#   python3 tests/corpus/record/record.py SPECS [--only random|specifications] [--seed N] [--count N]
# writes random.gz and specifications.gz beside it. routines.json is `print_routines json` of the build that the record is for.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import sys
import warnings

import torch

import container
import programs
import specifications
import statements

HERE = pathlib.Path(__file__).resolve().parent


def log(line):
    print(line, file=sys.stderr)


def random_programs(chosen, table):
    record = container.Record(table)
    rows = json.loads(table)
    coverage, kept, refused, tried = programs.make(record, rows, chosen.seed, chosen.count, 170, log)
    for k in range(160):
        w = programs.begin(chosen.seed * 7919 + k)
        w.lines = statements.buckets(w)
        if not w.inputs[0][1].dtype.is_floating_point:
            w.inputs = w.inputs[:1]
        else:
            w.inputs = [("a", torch.arange(-3, 30).view(3, 11))]
        text = programs.text_of(w, None, ["r1", "r2", "r3", "r4"])
        try:
            plain = programs.outputs(text, w.inputs, False)
        except Exception as e:
            log(f"bucket {k} dropped: {e}")
            continue
        record.case(f"bucket {k}", container.PROGRAM, text, "program", "", 1, w.inputs, [(t, t.dtype) for t in plain])
    for row in rows:
        for place, name in programs.PLACES.items():
            if row["places"] & place:
                if not coverage.counts[row["name"], place] and place != 64:
                    log(f"never: {name} {row['name']}")
                for p, optional, keyword_only, tail in programs.parameters(row):
                    if optional and not tail and place in (1, 2, 4) and not coverage.counts[row["name"], place, p]:
                        log(f"never: keyword {p} of {name} {row['name']}")
    packed = record.write(HERE / "random.gz")
    log(f"{kept} programs of {tried} tried, {refused} refused ones, {packed} bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("specs", type=pathlib.Path)
    parser.add_argument("--only", choices=["random", "specifications"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3300)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = (HERE / "routines.json").read_bytes()
    if chosen.only != "specifications":
        random_programs(chosen, table)
    if chosen.only != "random":
        record = container.Record(table)
        count = specifications.make(record, chosen.specs, log)
        packed = record.write(HERE / "specifications.gz")
        log(f"{count} cases of specifications, {packed} bytes")


if __name__ == "__main__":
    sys.exit(main())
