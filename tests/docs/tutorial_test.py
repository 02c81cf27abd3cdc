#!/usr/bin/env python3
"""Follows docs/tutorial.md on a real API server: runs its commands in one shell, and compares what they print.

tutorial_test.py ROOT BUILD

What a fenced block of the page is, its first line says:
  ```yaml FILE     that file of this repository, whole
  ```sh            commands
  ```              then `$ COMMAND`: its output on standard output, as in docs_test.py
What differs from run to run (names of nodes, ends of names of pods, uids, times, ages, widths of columns) is not compared.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import docs_test

ROOT, BUILD = pathlib.Path("."), pathlib.Path("build")
PAGE = "docs/tutorial.md"
SKIPPED = 77
# Letters and digits of generated names.
GENERATED = "[bcdfghjklmnpqrstvwxz2456789]"
PASSING = ((r"\bfl-[0-9a-f]{16}\b", "fl-NODE"), (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
           (r"\b\d{4}-\d\d-\d\dT[\d:.]+Z\b", "TIME"), (rf"-{GENERATED}{{8,10}}-{GENERATED}{{5}}\b", "-SET-POD"),
           (rf"-{GENERATED}{{5}}\b", "-POD"), (r"\b(\d+m)?\d+s\b", "AGE"), (r"\s+", " "))


def missing():
    """Why this test cannot run here; empty if it can."""
    for name, script in (("FAIRLEAD_CONTROL_PLANE", "control-plane.sh"), ("FAIRLEAD_INSTALL_TOOLS", "install-tools.sh")):
        if not os.environ.get(name):
            return f"{name} is not set to what scripts/{script} prints"
    return ""


def blocks(page):
    """(words of the first line, text) of each fenced block."""
    return [(info.split(), text) for info, text in re.findall(r"^```([^\n]*)\n(.*?)^```$", page, flags=re.M | re.S)]


def comparable(lines):
    """The lines without what differs from run to run."""
    out = []
    for line in lines:
        for pattern, word in PASSING:
            line = re.sub(pattern, word, line)
        out.append(line.strip())
    return out


def sample(text):
    """(command, lines expected)."""
    command, *expected = text.rstrip("\n").split("\n")
    command, _, remark = command[2:].partition("  # ")
    if remark == "excerpt":
        expected = [line for wanted in expected for line in (docs_test.GAP, wanted)] + [docs_test.GAP]
    return command, expected


def script(commands, folder):
    """Runs the commands in one shell, each with its output in a file; ends at the first that fails, and leaves no job behind."""
    lines = ["set -eu", "trap 'for job in $(jobs -p); do kill \"$job\" 2>/dev/null || true; done' EXIT"]
    for number, command in enumerate(commands):
        lines += ["{", command.rstrip("\n"), f"}} >{folder}/{number}.out 2>{folder}/{number}.err", f": >{folder}/{number}.done"]
    return "\n".join(lines) + "\n"


class TutorialTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.blocks = blocks((ROOT / PAGE).read_text())
        scratch = tempfile.TemporaryDirectory(prefix="fairlead-tutorial.")
        cls.addClassCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        (folder / "bin").mkdir()
        kubectl = folder / "bin/kubectl"
        kubectl.write_text('#!/bin/sh\nexec "$FAIRLEAD_INSTALL_TOOLS" kubectl "$@"\n')
        kubectl.chmod(0o755)
        commands = [text if info == ["sh"] else sample(text)[0] for info, text in cls.blocks if info[:1] != ["yaml"]]
        commands[0] = commands[0].replace("$PWD/build/bin", str(BUILD / "bin"))
        environment = {**os.environ, "HOME": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}", "TMPDIR": str(folder)}
        done = subprocess.run(["bash", "-c", script(commands, folder)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=500)
        cls.printed = []  # of each command
        for number, command in enumerate(commands):
            if not (folder / f"{number}.done").exists():
                logs = "\n".join(path.read_text()[-4000:] for path in folder.glob("tmp.*/*.log"))
                texts = [path.read_text() for path in (folder / f"{number}.out", folder / f"{number}.err") if path.exists()]
                raise AssertionError(f"failed:\n{command}\n{''.join(texts)}\n{done.stderr}\n{logs}")
            cls.printed.append((folder / f"{number}.out").read_text())
        cls.left = list(folder.glob("tmp.*"))

    def test_files_are_those_of_the_page(self):
        there = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "examples/tutorial").iterdir()}
        self.assertEqual({info[1]: text for info, text in self.blocks if info[:1] == ["yaml"]}, there)

    def test_every_block_is_followed(self):
        for info, text in self.blocks:
            self.assertTrue(info == ["sh"] or info[:1] == ["yaml"] and len(info) == 2 or not info and text.startswith("$ "), f"{info}: {text}")

    def test_samples_are_what_is_printed(self):
        found = 0
        for (info, text), printed in zip([block for block in self.blocks if block[0][:1] != ["yaml"]], self.printed, strict=True):
            if info:
                continue
            found += 1
            command, expected = sample(text)
            with self.subTest(command, number=found):
                self.assertIsNone(docs_test.first_difference(comparable(expected), comparable(printed.rstrip("\n").split("\n"))), printed)
        self.assertGreaterEqual(found, 8)

    def test_nothing_is_left(self):
        self.assertEqual(self.left, [])


class RulesTest(unittest.TestCase):
    """Of the comparison itself."""

    def test_what_passes_is_not_compared(self):
        self.assertEqual(comparable(["Pod  research/train-7tmsq", "chat-5f7765f85d-dnkhz on fl-373051a2f7185063", "(3s) 2026-11-29T12:31:17Z  1m3s"]),
                         ["Pod research/train-POD", "chat-SET-POD on fl-NODE", "(AGE) TIME AGE"])

    def test_what_stays_is_compared(self):
        self.assertEqual(comparable(["QueueLimitReached 3/3", "us-east-1a g4dn.xlarge 0.526"]), ["QueueLimitReached 3/3", "us-east-1a g4dn.xlarge 0.526"])

    def test_a_shell_ends_at_the_first_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["bash", "-c", script(["x=1\nsleep 60 &\n", "echo $x", "false\necho no", "echo never"], folder)], check=False, timeout=30)
            there = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
        self.assertEqual(there["1.out"], "1\n")
        self.assertEqual(there["2.out"], "")
        self.assertNotIn("2.done", there)
        self.assertNotIn("3.out", there)


if __name__ == "__main__":
    if why := missing():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
