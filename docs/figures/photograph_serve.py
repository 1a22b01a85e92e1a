"""Photograph the page of `ckgconv serve` in a headless Chromium.

python docs/figures/photograph_serve.py RUN

It needs Chromium and its driver (`make browser`).
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from webdriver import window  # noqa: E402, of the tests

MOLECULES = ("CC(=O)Oc1ccccc1C(=O)O", "CCOC(=O)c1ccc(N)cc1", "[Na+].[O-]S(=O)(=O)c1ccc2ccccc2c1")
EXPLAINED = 2
WIDTH = 1120


def main(run: str) -> None:
    command = [sys.executable, "-m", "ckgconv", "serve", run, "--port", "0", "--device", "cpu"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        with tempfile.TemporaryDirectory() as folder, window(Path(folder), WIDTH, 900) as page:
            page.open(address[0])
            page.wait(lambda: page.run("return document.documentElement.dataset.ready"))
            page.type("#smiles", "\n".join(MOLECULES))
            page.click("#predict")
            page.wait(lambda: page.run("return document.querySelectorAll('#rows tbody tr').length"), 120)
            page.click(f"#rows tbody tr:nth-child({EXPLAINED}) button")
            page.wait(lambda: page.run("return document.querySelector('#picture').naturalWidth"), 120)
            height = page.run("document.activeElement.blur(); return document.documentElement.scrollHeight")
            page.devtools(
                "Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False
            )
            page.run("window.scrollTo(0, 0)")
            page.screenshot(HERE / "serve.png")
    finally:
        os.kill(server.pid, signal.SIGINT)
        server.wait()


if __name__ == "__main__":
    main(sys.argv[1])
