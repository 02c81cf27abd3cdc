#!/usr/bin/env python3
"""Calls the programs as a user would, and compares exit codes and messages with a table.

cli_test.py CASES FOLDER-OF-PROGRAMS
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

CASES = pathlib.Path("tests/cli/cases.txt")
PROGRAMS = pathlib.Path("build/bin")
# Neither a cluster nor a home.
FOREIGN = ("KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def read_cases(text):
    """(line number, command, exit code, what has to be there, what must not)."""
    cases = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("$ "):
            cases.append((number, line[2:], None, [], []))
            continue
        at, command, code, there, absent = cases[-1]
        if code is None:
            cases[-1] = (at, command, int(line), there, absent)
        elif line.startswith("!"):
            absent.append(line[1:])
        else:
            there.append(line)
    return cases


class Cli(unittest.TestCase):
    def test_cases(self):
        environment = {k: v for k, v in os.environ.items() if k not in FOREIGN}
        cases = read_cases(CASES.read_text())
        self.assertGreater(len(cases), 20)
        with tempfile.TemporaryDirectory() as empty:
            environment["HOME"] = empty
            for number, command, code, there, absent in cases:
                with self.subTest(f"{CASES.name}:{number}: {command}"):
                    words = shlex.split(command.replace("$HERE", str(CASES.parent.resolve())))
                    done = subprocess.run([PROGRAMS / words[0], *words[1:]], cwd=empty, env=environment, timeout=30,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          text=True)
                    self.assertEqual(done.returncode, code, done.stdout)
                    for text in there:
                        self.assertIn(text, done.stdout)
                    for text in absent:
                        self.assertNotIn(text, done.stdout)

    def test_the_deployment_starts_the_program_as_it_is(self):
        text = pathlib.Path(CASES.parent.parent.parent, "manifests/base/deployment.yaml").read_text()
        flags = re.search(r"^ *args: \[(.*)\] # chart: ", text, re.MULTILINE)[1]
        flags = [flag.strip().strip("'\"") for flag in flags.split(",")]
        known = subprocess.run([PROGRAMS / "fairlead", "run", "--help"], timeout=30, stdout=subprocess.PIPE, text=True).stdout
        for flag in flags:
            self.assertIn(flag.split("=")[0], known)
        # The probes ask the server that the flag starts, under paths that it has.
        served = dict(flag.split("=") for flag in flags)["--metrics-bind-address"].rsplit(":", 1)[1]
        ports = dict(re.findall(r"\{name: (\w+), containerPort: (\d+)", text))
        probes = dict(re.findall(r"^ *(\w+)Probe:\n *httpGet: \{path: ([^,]+, port: \w+)\}", text, re.MULTILINE))
        self.assertEqual(probes, {"liveness": "/livez, port: http", "readiness": "/readyz, port: http"})
        self.assertEqual(ports["http"], served)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        CASES, PROGRAMS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
