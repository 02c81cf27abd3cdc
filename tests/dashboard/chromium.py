"""Headless Chromium over the DevTools protocol: messages of JSON, each ended by NUL, on file descriptors 3 and 4 of the
browser (--remote-debugging-pipe). Standard library only.

https://chromedevtools.github.io/devtools-protocol/
"""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_S = 30


def find():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="fairlead-chromium.")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        # Beyond 4, so that the shell's redirections do not cross.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_read, to_write)]
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "--no-first-run",
                 "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
                 "--disable-extensions", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server", "--hide-scrollbars",
                 "about:blank"]
        if os.geteuid() == 0:
            flags.insert(0, "--no-sandbox")  # it refuses to run as root with one; the page is our own
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$0" "$@" 3<&%d 4>&%d' % tuple(ends), program, *flags], pass_fds=ends,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_read, to_write, *ends):
            os.close(end)
        self.buffer, self.number, self.answers, self.listeners = b"", 0, {}, {}

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(WAIT_S)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        for end in (self.write_end, self.read_end):
            os.close(end)
        try:
            self.profile.cleanup()
        except OSError:
            pass  # a late process of the browser may still write there

    def pump(self, seconds):
        """Reads what has come, waiting at most so long for it."""
        if not select.select([self.read_end], [], [], max(0, seconds))[0]:
            return
        data = os.read(self.read_end, 1 << 20)
        if not data:
            raise EOFError("the browser ended")
        *messages, self.buffer = (self.buffer + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif message.get("sessionId") in self.listeners:
                self.listeners[message["sessionId"]](message["method"], message["params"])

    def call(self, method, session=None, **params):
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        end = time.monotonic() + WAIT_S
        while number not in self.answers:
            if time.monotonic() > end:
                raise TimeoutError(method)
            self.pump(end - time.monotonic())
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]


class Page:
    """A tab of its own. Keeps what it complained about and asked for."""

    def __init__(self, browser, width=1280, height=900, dark=False, mobile=False):
        self.browser, self.problems, self.requests = browser, [], []
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.listeners[self.session] = self.heard
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.scheme("dark" if dark else "light")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def heard(self, method, params):
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(f"console.{params['type']}: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.problems.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{params['entry']['source']}: {params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition):
        end = time.monotonic() + WAIT_S
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}; problems: {self.problems}")
            self.browser.pump(0.02)

    def press(self, key, text=None):
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        more = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code="Space" if key == " " else key,
                      windowsVirtualKeyCode=codes[key], **(more if kind == "keyDown" else {}))

    def type(self, text):
        self.call("Input.insertText", text=text)

    def lay_everything_out(self):
        """Also what is out of sight, which the page lets the browser leave out."""
        self.run("""void (document.adoptedStyleSheets = [new CSSStyleSheet()],
          document.adoptedStyleSheets[0].replaceSync('* { content-visibility: visible !important; }'))""")

    def screenshot(self, path, whole=False):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]))

    def close(self):
        self.browser.listeners.pop(self.session, None)
        self.browser.call("Target.closeTarget", targetId=self.target)
