# SPDX-License-Identifier: MIT
"""A headless browser, driven by the DevTools protocol over a pipe."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEADLINE_S = 60


class Browser:
    """One page; messages are JSON, each ended by a zero byte."""

    def __init__(self, write_fd: int, read_fd: int) -> None:
        self._write_fd, self._read_fd = write_fd, read_fd
        self._rest = b""
        self._last_id = 0
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        joined = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": joined["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._read_fd, 1 << 20)
            assert got, "the browser has ended"
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result; events that come meanwhile are kept."""
        self._last_id += 1
        asked = {"id": self._last_id, "method": method, "params": params, **self._session}
        os.write(self._write_fd, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._last_id:
                assert "error" not in message, (method, message)
                return message["result"]  # type: ignore[no-any-return]
            self.events.append(message)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def open(self, url: str) -> list[dict[str, Any]]:
        """Loads a page to its end; returns what happened meanwhile."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait(f"location.href == {json.dumps(url)} && document.readyState == 'complete'")
        return list(self.events)

    def wait(self, condition: str) -> None:
        """Until an expression in the page is true."""
        end = time.monotonic() + DEADLINE_S
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, condition
            time.sleep(0.02)


@contextlib.contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """A browser that ends with the block."""
    # Chromium reads its commands from descriptor 3 and answers on 4.
    commands_read, commands_write = os.pipe()
    answers_read, answers_write = os.pipe()
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{commands_read} 4>&{answers_write}', "-", program,
         "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update",
         f"--user-data-dir={profile}", "--remote-debugging-pipe"],
        pass_fds=(commands_read, answers_write), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(commands_read)
    os.close(answers_write)
    try:
        yield Browser(commands_write, answers_read)
    finally:
        process.terminate()
        process.wait(timeout=DEADLINE_S)
        os.close(commands_write)
        os.close(answers_read)
