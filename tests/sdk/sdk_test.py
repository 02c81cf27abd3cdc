#!/usr/bin/env python3
"""Follows docs/writing-a-plugin.md: writes its files, runs its commands, and compares what the program prints.

sdk_test.py ROOT BUILD, where BUILD has the modules and the program built.

What a fenced block of the page is, its first line says:
  ```LANGUAGE FILE             a part of that file of the plugin. The parts of a file follow each other, with one
                               empty line between two.
  ```LANGUAGE excerpt FILE     lines of a file of this repository
  ```sh                        commands, run in the plugin's folder in the order of the page
  ```                          then `$ COMMAND`: a sample, as in tests/docs
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = pathlib.Path("."), pathlib.Path("build")
PAGE = "docs/writing-a-plugin.md"
FILES = "examples/plugin"
SCHEDULER = "build/my-scheduler"


def blocks(page):
    """(words of the first line, text) of each fenced block."""
    return [(info.split(), text) for info, text in re.findall(r"^```([^\n]*)\n(.*?)^```$", page, flags=re.M | re.S)]


def files_of(page):
    """{name: text} of the files that the page has."""
    parts = {}
    for info, text in blocks(page):
        if len(info) == 2:
            parts.setdefault(info[1], []).append(text)
    return {name: "\n".join(texts) for name, texts in parts.items()}


def run(command, folder, **environment):
    """(exit code, output, errors)."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=500)
    return done.returncode, done.stdout, done.stderr


class SdkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = (ROOT / PAGE).read_text()
        cls.files = files_of(cls.page)
        scratch = tempfile.TemporaryDirectory(prefix="fairlead-sdk.")
        cls.addClassCleanup(scratch.cleanup)
        cls.prefix = pathlib.Path(scratch.name, "prefix")
        cls.plugin = pathlib.Path(scratch.name, "plugin")
        for name, text in cls.files.items():
            path = cls.plugin / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        # The commands as they are on the page. The list of compilations is for the test alone.
        for info, text in blocks(cls.page):
            if info != ["sh"]:
                continue
            code, out, errors = run(["bash", "-euc", text], cls.plugin, BUILD=str(BUILD), PREFIX=str(cls.prefix),
                                    CMAKE_EXPORT_COMPILE_COMMANDS="ON")
            if code != 0:
                raise AssertionError(f"exit code {code}:\n{text}\n{out}\n{errors}")
            cls.last_output = out

    def simulate(self, program=None, configuration=None):
        """Plays the scenario, perhaps with another configuration: (exit code, output, errors)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(configuration or text if name == "fairlead.yaml" else text)
            return run([program or self.plugin / SCHEDULER, "simulate", "scenario", "-o", "json"], folder)

    def play(self, configuration=None):
        """({pod: its node}, {pod that waits: why}) at the end of the scenario."""
        code, out, errors = self.simulate(configuration=configuration)
        self.assertEqual((code, errors), (0, ""))
        report = json.loads(out)
        waiting = {row["pod"] for row in report["waiting"]}
        words = {e["object"]: e["text"] for e in report["timeline"] if e["event"] == "verdict" and e["object"] in waiting}
        return {e["object"]: e["node"] for e in report["timeline"] if e["event"] == "pod_bound"}, words

    def test_the_page_has_the_files_of_the_example(self):
        there = {p.relative_to(ROOT / FILES).as_posix(): p.read_text() for p in (ROOT / FILES).rglob("*") if p.is_file()}
        self.assertEqual(sorted(self.files), sorted(there))
        for name, text in there.items():
            self.assertEqual(self.files[name], text, name)

    def test_excerpts_are_lines_of_their_files(self):
        found = 0
        for info, text in blocks(self.page):
            if info[1:2] != ["excerpt"]:
                continue
            found += 1
            self.assertIn("\n" + text, (ROOT / info[2]).read_text(), info[2])
        self.assertGreaterEqual(found, 1)

    def test_every_block_is_followed(self):
        for info, text in blocks(self.page):
            known = info == ["sh"] or len(info) == 2 or info[1:2] == ["excerpt"] or text.startswith(f"$ {SCHEDULER} ")
            self.assertTrue(known, f"{info}: {text}")

    def test_the_plugins_own_test_ran(self):
        self.assertIn("100% tests passed, 0 tests failed out of 1", self.last_output)

    def test_samples_are_what_is_printed(self):
        sys.path.insert(0, str(ROOT / "tests/docs"))
        import docs_test
        found = 0
        for info, text in blocks(self.page):
            if info or not text.startswith("$ "):
                continue
            found += 1
            command, *expected = text.rstrip("\n").split("\n")
            command, _, remark = command[2:].partition("  # ")
            if remark == "excerpt":
                gap = docs_test.GAP
                expected = [line for wanted in expected for line in (gap, wanted)] + [gap]
            code, out, errors = run(command.split(" "), self.plugin)
            self.assertEqual((code, errors), (0, ""))
            self.assertIsNone(docs_test.first_difference(expected, out.rstrip("\n").split("\n")), out)
        self.assertGreaterEqual(found, 1)

    def test_the_plugin_decides(self):
        nodes, waiting = self.play()
        self.assertEqual(nodes, {"team/needs-530": "gpu-2", "team/needs-550": "gpu-1"})
        self.assertEqual(list(waiting), ["team/needs-580"])
        self.assertIn("GPU driver that is too old", waiting["team/needs-580"])

    def test_at_score_it_only_prefers(self):
        nodes, waiting = self.play(self.files["fairlead.yaml"].replace("multiPoint", "score"))
        self.assertEqual(set(nodes), {"team/needs-530", "team/needs-550", "team/needs-580"})
        self.assertEqual(nodes["team/needs-530"], "gpu-2")
        self.assertEqual(nodes["team/needs-550"], "gpu-1")
        self.assertEqual(waiting, {})

    def test_at_filter_it_only_refuses(self):
        nodes, waiting = self.play(self.files["fairlead.yaml"].replace("multiPoint", "filter"))
        # Of equal nodes the first by name.
        self.assertEqual(nodes, {"team/needs-530": "gpu-1", "team/needs-550": "gpu-1"})
        self.assertEqual(list(waiting), ["team/needs-580"])

    def test_what_is_no_version_is_the_pods_fault(self):
        pod = self.files["scenario/needs-580.yaml"]
        self.addCleanup(self.files.update, {"scenario/needs-580.yaml": pod})
        self.files["scenario/needs-580.yaml"] = pod.replace('"580"', '"newest"')
        _, waiting = self.play()
        self.assertIn('metadata.labels[example.com/min-driver]: "newest" is not the major version of a driver',
                      waiting["team/needs-580"])

    def test_args_are_checked(self):
        configuration = self.files["fairlead.yaml"].replace("podLabel", "podLable")
        code, out, errors = self.simulate(configuration=configuration)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("profiles[0].pluginConfig", errors)
        self.assertIn("profiles[0].pluginConfig[0].args.podLable: is not an argument of DriverVersion", errors)

    def test_a_program_without_the_plugin_names_those_that_it_has(self):
        code, out, errors = self.simulate(program=BUILD / "bin/fairlead")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(errors, r'multiPoint\.enabled\[0\]\.name: "DriverVersion" is not a plugin of Fairlead; known: .*'
                                 r"DefaultBinder.*NodeAffinity.*SchedulingGates")

    def test_nothing_of_our_build_reaches_the_users(self):
        commands = json.loads((self.plugin / "build/compile_commands.json").read_text())
        self.assertEqual(len(commands), 3)
        for entry in commands:
            command = entry["command"]
            for flag in ("-Werror", "-Wshadow", "-fpch", "-include", "-fsanitize", "FAIRLEAD_", str(ROOT), str(BUILD)):
                self.assertNotIn(flag, command)
            self.assertIn(f"-isystem {self.prefix}/include/fairlead", command)
            self.assertRegex(command, r"-std=\S*\+\+20")

    def test_another_minor_version_is_another_package(self):
        for version, suits in (("0.1", True), ("0.1.0", True), ("0.2", False), ("0.0", False), ("1.0", False)):
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "CMakeLists.txt").write_text(
                    "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
                    f"find_package(Fairlead {version} REQUIRED)\n")
                code, _, errors = run(["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"], folder)
                self.assertEqual(code == 0, suits, errors)
                if not suits:
                    self.assertRegex(errors, r"compatible with requested\s+version")


class RulesTest(unittest.TestCase):
    """Of the reading of the page."""

    def test_parts_of_a_file_follow_each_other(self):
        page = "```cpp a.cc\n1\n\n2\n```\ntext\n```cpp b.h\nx\n```\n```cpp a.cc\n3\n```\n```cpp excerpt c.cc\n4\n```\n```\n$ z\n```\n"
        self.assertEqual(files_of(page), {"a.cc": "1\n\n2\n\n3\n", "b.h": "x\n"})
        self.assertEqual([info for info, _ in blocks(page)],
                         [["cpp", "a.cc"], ["cpp", "b.h"], ["cpp", "a.cc"], ["cpp", "excerpt", "c.cc"], []])


if __name__ == "__main__":
    ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
