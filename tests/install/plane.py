"""For tests: an API server without controllers, a client of it, and helm and kubectl.

FAIRLEAD_CONTROL_PLANE and FAIRLEAD_INSTALL_TOOLS name what scripts/control-plane.sh and scripts/install-tools.sh print.
"""
import base64
import json
import os
import pathlib
import re
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import yaml

SKIPPED = 77
PATIENCE_S = 60


def missing():
    """Why these tests cannot run here; empty if they can."""
    for name, script in (("FAIRLEAD_CONTROL_PLANE", "control-plane.sh"), ("FAIRLEAD_INSTALL_TOOLS", "install-tools.sh")):
        if not os.environ.get(name):
            return f"{name} is not set to what scripts/{script} prints"
    return ""


def documents(text):
    return [thing for thing in yaml.safe_load_all(text) if thing]


def eventually(what, holds, patience_s=PATIENCE_S):
    """Waits until it holds, and returns what it returned; raises TimeoutError."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        value = holds()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"not within {patience_s} s: {what}")


class Answer:
    def __init__(self, status, body):
        self.status, self.body = status, body

    @property
    def ok(self):
        return 200 <= self.status < 300


class Plane:
    """Started by the constructor, ended by close()."""

    def __init__(self, *flags):
        self._scratch = tempfile.TemporaryDirectory(prefix="fairlead-install.")
        self.folder = pathlib.Path(self._scratch.name)
        self.kubeconfig = self.folder / "kubeconfig"
        ready = self.folder / "ready"
        self._log = (self.folder / "log").open("w")
        self._launcher = subprocess.Popen(
            [os.environ["FAIRLEAD_CONTROL_PLANE"], "up", "--dir", self.folder / "plane", "--kubeconfig", self.kubeconfig,
             "--ready-file", ready, *flags], stdout=self._log, stderr=subprocess.STDOUT)
        try:
            eventually("the control plane is ready", lambda: ready.exists() or self._launcher.poll() is not None, 180)
            if self._launcher.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text()[-4000:])
            config = yaml.safe_load(self.kubeconfig.read_text())
            cluster = config["clusters"][0]["cluster"]
            self.server = cluster["server"]
            self.token = config["users"][0]["user"]["token"]
            self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        except BaseException:
            self.close()
            raise

    def close(self):
        self._launcher.terminate()
        try:
            self._launcher.wait(30)
        except subprocess.TimeoutExpired:
            self._launcher.kill()
        self._log.close()
        self._scratch.cleanup()

    def call(self, method, path, body=None, content_type="application/json"):
        request = urllib.request.Request(self.server + path, method=method, headers={"Authorization": f"Bearer {self.token}",
                                                                                    "Content-Type": content_type})
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=30, context=self._tls) as answer:
                return Answer(answer.status, json.loads(answer.read() or b"null"))
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return Answer(error.code, json.loads(text) if text.startswith("{") else {"message": text})

    def get(self, path):
        return self.call("GET", path)

    def make(self, path, body):
        answer = self.call("POST", path, body)
        if not answer.ok:
            raise RuntimeError(f"{path}: {answer.body}")
        return answer.body

    def token_of(self, namespace, account):
        """A token of a service account, as its pods get one."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return self.make(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", body)["status"]["token"]

    def kubeconfig_of(self, token):
        """The text of a kubeconfig for another user."""
        return re.sub(r"token: .*", f"token: {token}", self.kubeconfig.read_text())

    def kubectl(self, *arguments, stdin=None):
        """(exit code, output, errors)."""
        return tool("kubectl", "--kubeconfig", self.kubeconfig, *arguments, stdin=stdin)

    def helm(self, *arguments, stdin=None):
        return tool("helm", *arguments, "--kubeconfig", self.kubeconfig, stdin=stdin)


def tool(name, *arguments, stdin=None):
    """Runs helm or kubectl without the user's own settings: (exit code, output, errors)."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([os.environ["FAIRLEAD_INSTALL_TOOLS"], name, *map(str, arguments)], input=stdin, text=True, timeout=120,
                              capture_output=True, env={"HOME": home, "PATH": "/usr/bin:/bin"})
    # Said for each link of the chart.
    errors = "".join(line for line in done.stderr.splitlines(True) if "found symbolic link in path" not in line)
    return done.returncode, done.stdout, errors


def key(thing):
    """What tells an object from the others."""
    return thing["kind"], thing["metadata"].get("namespace", ""), thing["metadata"]["name"]
