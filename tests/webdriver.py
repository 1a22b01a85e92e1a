"""The browser of `browser`, driven by plain HTTP calls to its driver (W3C WebDriver): clicks, keys, downloads.

    with window(folder) as page:
        page.open("http://127.0.0.1:PORT/")
        page.click("#predict")

`make browser` installs both programs. Where one is missing, tests are skipped, except in CI, where they fail.
"""

import base64
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import OPTIONS, executable

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
SECONDS = 30.0


class Window:
    """One window."""

    def __init__(self, client: httpx.Client, capabilities: dict[str, Any]) -> None:
        self.client = client
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.path = f"/session/{session['sessionId']}"

    def open(self, address: str) -> None:
        self._send("POST", f"{self.path}/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns in the page."""
        return self._send("POST", f"{self.path}/execute/sync", {"script": script, "args": list(arguments)})

    def element(self, css: str) -> str:
        found = self._send("POST", f"{self.path}/element", {"using": "css selector", "value": css})
        return str(found[ELEMENT])

    def click(self, css: str) -> None:
        self._send("POST", f"{self.path}/element/{self.element(css)}/click", {})

    def type(self, css: str, text: str) -> None:
        """Type text, or the path of a file into a field for files."""
        self._send("POST", f"{self.path}/element/{self.element(css)}/value", {"text": text})

    def text(self, css: str) -> str:
        return str(self._send("GET", f"{self.path}/element/{self.element(css)}/text"))

    def press(self, css: str, *places: tuple[int, int]) -> None:
        """Press the mouse, and let it go, at places that are given from the upper left corner of an element."""
        left, top = self.run("const box = document.querySelector(arguments[0]).getBoundingClientRect();"
                             "return [box.left, box.top]", css)  # fmt: skip
        actions: list[dict[str, Any]] = []
        for x, y in places:
            move = {"type": "pointerMove", "duration": 0, "x": round(left + x), "y": round(top + y)}
            actions += [move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
            actions.append({"type": "pause", "duration": 100})
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self._send("POST", f"{self.path}/actions", {"actions": [mouse]})

    def wait(self, condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
        """What a condition returns, as soon as it holds."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, "The page did not get there in time."
            time.sleep(0.05)
        return found

    def resize(self, width: int, height: int) -> None:
        self._send("POST", f"{self.path}/window/rect", {"width": width, "height": height})

    def emulate(self, **features: str) -> None:
        """Media features of the page, such as prefers_color_scheme="dark"."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=named)

    def devtools(self, command: str, **parameters: Any) -> Any:
        """A command of the browser itself."""
        return self._send("POST", f"{self.path}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def messages(self) -> list[str]:
        """What the page wrote to its console since the last call: errors, and what its policy blocked."""
        return [each["message"] for each in self._send("POST", f"{self.path}/se/log", {"type": "browser"})]

    def screenshot(self, path: Path, css: str | None = None) -> None:
        """The window, or one element, as a PNG."""
        part = "" if css is None else f"/element/{self.element(css)}"
        path.write_bytes(base64.b64decode(self._send("GET", f"{self.path}{part}/screenshot")))

    def _send(self, method: str, path: str, values: dict[str, Any] | None = None) -> Any:
        response = self.client.request(method, path, json=values)
        answer = response.json()["value"]
        assert response.status_code == 200, answer
        return answer


def driver_program() -> str:
    """The driver of the browser; without one the test is skipped, and in CI it fails."""
    found = shutil.which("chromedriver")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "There is no chromedriver: install it with 'make browser'."
        )
    assert found is not None
    return found


@contextmanager
def window(downloads: Path, width: int = 1200, height: int = 900) -> Iterator[Window]:
    """A window that saves files to a folder."""
    program, chromium = driver_program(), executable()
    driver = subprocess.Popen([program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert driver.stdout is not None
        line = next(line for line in driver.stdout if "successfully on port" in line)
        port = line.split("on port ")[1].strip(" .\n")
        preferences = {"download.default_directory": str(downloads), "download.prompt_for_download": False}
        chrome = {"binary": chromium, "args": [*OPTIONS, f"--window-size={width},{height}"], "prefs": preferences}
        capabilities = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            opened = Window(client, capabilities)
            try:
                yield opened
            finally:
                opened._send("DELETE", opened.path)
    finally:
        driver.terminate()
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()
