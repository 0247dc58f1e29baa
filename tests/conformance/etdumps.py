"""Reads profiles of `etc run --etdump` with ExecuTorch's Inspector, and compares them with `etc inspect`."""
import json
import os
import subprocess

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")


def run(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def official(path):
    """{(instruction, delegate's number): times in ns}; events of one signature are told apart by their order."""
    from executorch.devtools import Inspector
    from executorch.devtools.inspector._inspector_utils import TimeScale
    found = Inspector(etdump_path=path, source_time_scale=TimeScale.NS, target_time_scale=TimeScale.NS)
    assert [b.name for b in found.event_blocks] == ["Execute"]
    return sorted((e._instruction_id, -1 if e.delegate_debug_identifier is None else e.delegate_debug_identifier,
                   int(sum(e.perf_data.raw))) for e in found.event_blocks[0].events)


def ours(etc, path):
    events = json.loads(run(etc, "inspect", "--etdump", path, "--json"))["events"]
    return [(-1 if e["instruction"] is None else e["instruction"],
             -1 if e["delegate_number"] is None else e["delegate_number"], e["ticks"]) for e in events]


def sums(events):
    """By instruction and number: the Inspector tells events of one signature one by one."""
    all_of = {}
    for i, number, ticks in events:
        all_of[i, number] = all_of.get((i, number), 0) + ticks
    return all_of


def check(rows, etc, out, text):
    os.makedirs(out, exist_ok=True)
    for name, flags in (("kernels", []), ("delegates", ["--backend", "xnnpack"])):
        tool = etc + "-xnn" if flags else etc
        if text not in "etdump_" + name:
            continue
        if not os.path.exists(tool):
            rows.add("skip", "etdump", name, "etc-xnn is not built")
            continue
        pte, dump = os.path.join(out, name + ".pte"), os.path.join(out, name + ".etdp")
        run(etc, "compile", os.path.join(DATA, "cnn_digits", "model.pt2"), "-o", pte, "-q", *flags)
        given = ["--input", os.path.join(DATA, "cnn_digits", "input_0.npy")]
        run(tool, "run", pte, *given, "--next", *given, "--etdump", dump, "--output-dir", os.path.join(out, name), "-q")
        is_, was = sums(ours(etc, dump)), sums(official(dump))
        close = is_.keys() == was.keys() and all(abs(is_[k] - was[k]) <= 4 for k in was)
        rows.add("ok" if close and len(was) > 1 else "FAIL", "etdump", name, f"{len(was)} instructions and parts")
