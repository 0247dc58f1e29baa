#!/usr/bin/env python3
"""Opens the pages of --report in a headless Chromium and checks that they load without the network, that
the tables contain the layers, and that folded rows are hidden.

    browser.py ETC [--counts FILE]

Appends "passed failed skipped" to FILE.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tally

NODES = 2000
MODEL = ('program "big" stage aten\nmethod @forward(%v0: f32[8,64]) {\n' +
         "".join(f'  %v{i + 1} = aten.{"tanh" if i % 2 else "relu"}.default(%v{i}) : f32[8,64] from "m", "m.py:{i}"\n'
                 for i in range(NODES)) + f"  return %v{NODES}\n}}\n")
LIST = "models:\n  - {name: big, model: big.etir, flags: {report: big.html}}\n  - {name: none, model: none.etir}\n"
# Run within a copy of the page: what a reader of it would measure, in its title.
PROBE = """<script>
const seen = e => e.checkVisibility ? e.checkVisibility() : e.offsetParent !== null;
const rows = [...document.querySelectorAll('tr')];
const wide = document.documentElement.scrollWidth <= window.innerWidth;
const links = [...document.querySelectorAll('a')].map(a => a.getAttribute('href'));
const drawn = document.querySelectorAll('svg rect').length;
document.title = JSON.stringify([rows.length, rows.filter(seen).length, wide, drawn, links]);
</script></body>"""


def look(browser, path):
    """Returns what the probe found in the page."""
    import json
    with open(path, encoding="utf-8") as f:
        text = f.read()
    copy = path.replace(".html", "_probed.html")
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text.replace("</body>", PROBE))
    p = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
                        "--proxy-server=127.0.0.1:9", "--dump-dom", "file://" + copy],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True)
    import html
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", p.stdout, re.S)[1]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("etc")
    ap.add_argument("--counts")
    args = ap.parse_args()
    etc = os.path.abspath(args.etc)
    browser = shutil.which("chromium") or sys.exit("browser.py: no chromium")
    n = {True: 0, False: 0}

    def row(ok, what):
        n[bool(ok)] += 1
        print("ok  " if ok else "FAIL", what, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("big.etir", MODEL), ("list.yaml", LIST)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run([etc, "batch", "list.yaml", "-o", "out", "--report", "all.html"], cwd=folder,
                       capture_output=True, check=False)
        rows, seen, wide, drawn, _ = look(browser, os.path.join(folder, "out", "big.html"))
        row(rows > NODES, f"{NODES} layers are {rows} rows")
        row(30 < seen < 100, f"{seen} rows are seen before a fold is opened")
        row(wide, "the page is no wider than its window")
        row(drawn > NODES / 2, f"{drawn} places of values are drawn")
        rows, seen, wide, _, links = look(browser, os.path.join(folder, "all.html"))
        row(rows == seen == 5 and wide, f"the batch is {rows} rows")
        row(links == ["out/big.html"], f"it links to {links}")
    tally.append(args.counts, n[True], n[False], 0)
    return 1 if n[False] else 0


if __name__ == "__main__":
    sys.exit(main())
