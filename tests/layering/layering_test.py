#!/usr/bin/env python3
"""Tests of layering.py itself, on small trees with one fault each."""
import pathlib
import tempfile
import unittest

import layering

TABLE = """
| folder | CMake target | what it is | may use |
| --- | --- | --- | --- |
| `base` | `fairlead_base` | ground | Abseil |
| `scheduler/model` | `fairlead_model` | values | base |
| `queues` | `fairlead_queues` | queues | model |
| `kube` | `fairlead_kube`, `_http` | adapter | model |
| `cmd/fairlead` | `fairlead_x` | program | all |
"""
MODULES = """base b: absl::status |
scheduler/model m: b |
queues q: m | simdjson
kube k_http: b |
kube k: k_http m | k_testing
kube k_testing: k_http |
cmd/fairlead f: k q |
"""
FILES = {
    "base/strings.h": "",
    "base/clock.h": "#include <chrono>\n",
    "scheduler/model/pod.h": '#include "base/strings.h"\n#include <string>\n',
    "queues/tree.cc": '#include "queues/tree.h"\n#include "scheduler/model/pod.h"\n#include "absl/time/time.h"\n',
    "queues/tree.h": "// absl::Now() would be wrong here\n",
    "queues/tree_test.cc": "#include <random>\n",
    "kube/transport/http.cc": "#include <thread>\n#include <curl/curl.h>\n",
    "cmd/fairlead/main.cc": '#include "queues/tree.h"\n#include "kube/transport/http.h"\n',
}


class LayeringTest(unittest.TestCase):
    def problems(self, files=None, modules=MODULES, table=TABLE):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            everything = {**FILES, **(files or {}), "docs/architecture.md": table, "modules.txt": modules}
            for name, text in everything.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return layering.check(root, root / "modules.txt")[1]

    def assert_one(self, problems, *words):
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def test_a_tree_as_it_should_be(self):
        self.assertEqual(self.problems(), [])

    def test_a_link_that_the_table_does_not_allow(self):
        self.assert_one(self.problems(modules=MODULES.replace("queues q: m", "queues q: m k")), "queues: links kube")

    def test_a_link_through_another_module_counts(self):
        table = TABLE.replace("| model |\n| `kube`", "| base |\n| `kube`")
        self.assert_one(self.problems(table=table), "queues: links scheduler/model")

    def test_the_table_must_not_allow_what_no_module_links(self):
        table = TABLE.replace("adapter | model", "adapter | model, queues")
        self.assert_one(self.problems(table=table), "allows kube to use queues")

    def test_a_circle(self):
        modules = MODULES.replace("base b: absl::status", "base b: absl::status m")
        self.assertIn("circle", "\n".join(self.problems(modules=modules)))

    def test_a_module_without_a_row_and_a_row_without_a_module(self):
        self.assert_one(self.problems(modules=MODULES + "sim s: b |\n"), "sim: a module without a row")
        self.assert_one(self.problems(table=TABLE + "| `sim` | `fairlead_sim` | days | base |\n"), "a row for sim")

    def test_a_row_that_names_no_module(self):
        table = TABLE.replace("queues | model", "queues | model, modle")
        self.assert_one(self.problems(table=table), "'modle', which is no module")

    def test_no_table_at_all(self):
        self.assert_one(self.problems(table="# words\n"), "no table")

    def test_an_include_of_a_module_that_is_not_used(self):
        files = {"queues/tree.h": '#include "kube/transport/http.h"\n', "kube/transport/http.h": ""}
        self.assert_one(self.problems(files), "queues/tree.h:1", "may not use kube")

    def test_the_table_may_name_one_of_several_targets(self):
        table = TABLE.replace("queues | model", "queues | model, http").replace("adapter | model", "adapter | model")
        self.assertEqual(self.problems(table=table, modules=MODULES.replace("queues q: m", "queues q: m k_http")), [])

    def test_an_include_upwards(self):
        files = {"base/strings.h": '#pragma once\n\n#include "scheduler/model/pod.h"\n'}
        self.assert_one(self.problems(files), "base/strings.h:3", "may not use scheduler/model")

    def test_a_test_may_use_its_own_dependencies_but_no_others(self):
        files = {"scheduler/model/pod_test.cc": '#include "queues/tree.h"\n'}
        self.assert_one(self.problems(files), "may not use queues")
        self.assertEqual(self.problems(files, MODULES.replace("model m: b |", "model m: b | q")), [])

    def test_headers_of_the_world_in_pure_modules(self):
        for header in ("<thread>", "<fstream>", "<sys/socket.h>", "<chrono>", '"absl/time/clock.h"', '"base/clock.h"'):
            with self.subTest(header=header):
                self.assert_one(self.problems({"queues/tree.h": f"#include {header}\n"}), "queues/tree.h:1", header)

    def test_calls_of_the_world_in_pure_modules(self):
        self.assert_one(self.problems({"queues/tree.h": "auto now = absl::Now();\n"}), "absl::Now()")

    def test_the_engine_names_no_resource(self):
        engine = {"modules": MODULES + "scheduler/engine e: q |\n",
                  "table": TABLE + "| `scheduler/engine` | `fairlead_e` | the cycle | queues |\n"}
        for code in ("int64_t free = node.used[model::kGpu];", "auto pick = state::PickGpus(node);", "for (auto r : {kCpu}) {}"):
            with self.subTest(code=code):
                self.assert_one(self.problems({"scheduler/engine/place.cc": f"\n{code}\n"}, **engine), "scheduler/engine/place.cc:2")
        for code in ("// GPUs first\n", 'Say("no GPU is free");\n', "int64_t free = node.used[model::kScarcest];\n"):
            with self.subTest(code=code):
                self.assertEqual(self.problems({"scheduler/engine/place.cc": code}, **engine), [])
        self.assertEqual(self.problems({"scheduler/engine/place_test.cc": "int64_t gpus = 0;\n"}, **engine), [])

    def test_a_line_that_is_not_understood_is_not_passed_over(self):
        with self.assertRaises(SystemExit):
            self.problems(modules=MODULES + "nonsense\n")


if __name__ == "__main__":
    unittest.main()
