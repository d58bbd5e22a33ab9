"""Records of measurements: rows of a run, merged into the latest of each case. SPDX-License-Identifier: Apache-2.0"""
import datetime, json, os

CASE = ("suite", "variant", "dtype", "S", "B", "Hq", "Hk", "D", "Dv")
FIELDS = ("commit", "source", *CASE, "impl", "us", "tflops", "spread", "error")  # every row has these; others are notes
NAMES = dict(cubridge="CuBridge", flex="FlexAttention", cudnn="cuDNN", fa2="FlashAttention-2", mosaic="JAX Mosaic",
             prototype="prototype", eager="eager", fa3="FlashAttention-3", flashinfer="FlashInfer")
LIMITS = {"fp16": 2e-3, "bf16": 1e-2}  # of the relative L2 error, as `cubridge check`


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def case_key(row):
    return tuple(row.get(name, row["D"] if name == "Dv" else None) for name in CASE)


def empty(gpu):
    return dict(date=now(), gpu=gpu, rows=[], left_out=[], ceilings={})


def load(path, gpu=None):
    if not os.path.exists(path):
        return empty(gpu)
    with open(path) as f:
        return json.load(f)


def save(path, record):
    """Whole or not at all; a row a line, so that differences can be read."""
    rest = {name: value for name, value in record.items() if name != "rows"}
    lines = json.dumps(rest, indent=1)[:-2] + ',\n "rows": [\n'
    lines += ",\n".join("  " + json.dumps(row) for row in record["rows"]) + "\n ]\n}\n"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "w") as f:
        f.write(lines)
    os.replace(path + ".new", path)


def merge(record, more):
    """`more` replaces whole cases: the peers of a case are held against the kernel of the same run."""
    if record["rows"] and record["gpu"] != more["gpu"]:
        raise ValueError(f"rows of {record['gpu']} and of {more['gpu']} don't go together")
    for row in more["rows"]:
        missing = [name for name in FIELDS if name not in row]
        if missing:
            raise ValueError(f"a row lacks {', '.join(missing)}")
    # A case of which nothing was timed replaces nothing.
    fresh = {case_key(row) for row in more["rows"]}
    out = dict(record, date=max(record["date"], more["date"]), gpu=more["gpu"])
    for name in ("rows", "left_out"):
        out[name] = [row for row in record.get(name, []) if case_key(row) not in fresh]
        known = {(case_key(row), row["impl"]) for row in out[name]} if name == "left_out" else set()
        out[name] += [row for row in more.get(name, []) if (case_key(row), row["impl"]) not in known]
    out["rows"].sort(key=lambda row: (str(case_key(row)[:3]), case_key(row)[3:], row["impl"] != "cubridge", row["impl"]))
    out["ceilings"] = {**record.get("ceilings", {}), **more.get("ceilings", {})}
    return out


def complete(record, case, impls, source=None):
    """Whether the case's rows (or what was said instead of them) are there, the kernel's of this text."""
    rows = {row["impl"]: row for row in record["rows"] if case_key(row) == case.key()}
    said = {row["impl"] for row in record.get("left_out", []) if case_key(row) == case.key()}
    if "cubridge" not in rows or (source is not None and rows["cubridge"]["source"] != source):
        return False
    return all(impl in rows or impl in said for impl in impls)


def wrong(row):
    return row["error"] is not None and not row["error"] <= LIMITS[row["dtype"]]
