#!/usr/bin/env python3
"""Holds the documents against the tree and the program: every relative link has a target, and the sample outputs of
commands that need no cluster are what the program prints. Tests that a document names exist. docs/reference is what
scripts/reference.py writes; tables of codes and fields that are written by hand are those of the source.

docs_test.py ROOT FAIRLEAD

A sample is a fenced block whose first line is `$ COMMAND`. In its output a line `[...]` stands for any lines, and
`[...]` at the end of a line for the rest of that line. After `$ COMMAND  # excerpt` lines may be left out anywhere.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(".")
FAIRLEAD = "build/bin/fairlead"
GAP = "[...]"
# Commands whose output needs nothing but the tree, and files that samples before them in the document have made.
ALONE = ("simulate", "version", "replay", "journal")


def needs_no_cluster(arguments):
    return arguments[0] in ALONE or (arguments[0] == "what-if" and "--journal" in arguments)


def documents(root):
    built = root / "build"
    return sorted(p for p in root.rglob("*.md") if built not in p.parents and ".git" not in p.parts)


def anchor(heading):
    """As GitHub makes it of a heading."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def without_fences(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def without_code(text):
    return re.sub(r"`[^`\n]*`", "``", without_fences(text))


def broken_links(root):
    """DOCUMENT: LINK of each relative link without a target."""
    broken = []
    for path in documents(root):
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, part = link.partition("#")
            target = path.parent / name if name else path
            ok = target.exists()
            if ok and part and target.suffix == ".md":
                headings = re.findall(r"^#+ (.*)$", without_fences(target.read_text()), flags=re.M)
                ok = part in map(anchor, headings)
            if not ok:
                broken.append(f"{path.relative_to(root)}: {link}")
    return broken


def samples(text):
    """(arguments of fairlead, lines expected) of each sample of a command that needs no cluster."""
    for block in re.findall(r"^```\n\$ (.*?)^```", text, flags=re.M | re.S):
        command, *expected = block.rstrip("\n").split("\n")
        command, _, remark = command.partition("  # ")
        if remark == "excerpt":
            expected = [line for wanted in expected for line in (GAP, wanted)] + [GAP]
        program, _, arguments = command.partition(" ")
        if pathlib.Path(program).name == "fairlead" and needs_no_cluster(arguments.split(" ")):
            yield arguments.split(" "), expected


def first_difference(expected, printed):
    """The first expected line that is not printed where it should be; None if all are."""
    at, gap = 0, False
    for line in expected:
        if line.strip() == GAP:
            gap = True
            continue
        def fits(there):
            return there.startswith(line[: -len(GAP)].rstrip()) if line.endswith(GAP) else there.rstrip() == line.rstrip()
        while gap and at < len(printed) and not fits(printed[at]):
            at += 1
        if at == len(printed) or not fits(printed[at]):
            return line
        at, gap = at + 1, False
    return None if gap or at == len(printed) else f"(ends before: {printed[at]})"


# `Suite.Test` or `name.plan`; a "*" stands for the rest of a name.
TEST_NAME = re.compile(r"`([A-Za-z0-9]+)\.([A-Za-z0-9]*\*?)`")
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(([A-Za-z0-9]+),\s*([A-Za-z0-9]+)\)", re.MULTILINE)


def tests_of(root):
    """Suite -> names of its tests, in all of the tree's test programs."""
    found = {}
    for path in root.rglob("*_test.cc"):
        if "build" in path.relative_to(root).parts:
            continue
        for suite, name in TEST.findall(path.read_text()):
            found.setdefault(suite, set()).add(name)
    return found


def missing_tests(text, tests):
    missing = []
    for suite, name in TEST_NAME.findall(text):
        there = tests.get(suite, set())
        if not any(each.startswith(name[:-1]) if name.endswith("*") else each == name for each in there):
            missing.append(f"{suite}.{name}")
    return missing


def verdict_rows(text):
    """[(code, category, resolvableBy)] of docs/verdict.md."""
    return re.findall(r"^\| `(\w+)` \| (\w+) \| [^|]+ \| (\w+) \|", text, re.MULTILINE)


def verdict_codes(source):
    """The same of scheduler/verdict/verdict.cc, without None."""
    rows = re.findall(r"\{Code::k\w+, \"(\w+)\", Category::k(\w+),\s+ResolvableBy::k(\w+)\}", source)
    return [(name, category.lower(), by) for name, category, by in rows if name != "None"]


def property_names(schema):
    """Names of all properties at and below a schema."""
    found = set()
    for name, field in schema.get("properties", {}).items():
        found |= {name} | property_names(field)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            found |= property_names(inner)
    return found


def configuration_fields(text):
    """Paths of the first table of docs/configuration.md. `.other` after `a.one` is `a.other`."""
    section = text.partition("## FairleadConfiguration")[2].partition("\n\n\n")[0].partition("\n## ")[0]
    fields = []
    for row in re.findall(r"^\| (`[^|]+) \|", section.partition("\n\n")[2].partition("\n\n")[0], re.MULTILINE):
        first = ""
        for name in re.findall(r"`([^`]+)`", row):
            first = name if not name.startswith(".") else first.rpartition(".")[0] + name
            fields.append(first)
    return fields


class DocumentsTest(unittest.TestCase):
    def test_references_are_what_the_source_says(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import reference
        self.assertEqual(reference.stale(ROOT, FAIRLEAD), [], f"run {reference.RENEW}")

    def test_codes_are_those_of_the_program(self):
        codes = verdict_codes((ROOT / "scheduler/verdict/verdict.cc").read_text())
        self.assertGreater(len(codes), 15)
        self.assertEqual(verdict_rows((ROOT / "docs/verdict.md").read_text()), codes)

    def test_fields_of_the_verdict_are_defined_and_explained(self):
        """The API server drops fields that the definition lacks."""
        source = (ROOT / "scheduler/verdict/json.cc").read_text()
        written = set(re.findall(r'\b(?:Text|TextIfSet|Number|NumberIfSet|Raw|ListIfAny)\("(\w+)"', source))
        self.assertGreater(len(written), 40)
        version = yaml.safe_load((ROOT / "crds/podgroup.yaml").read_text())["spec"]["versions"][0]
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        self.assertEqual(written - property_names(status["schedulability"]), set())
        top = set(status["schedulability"]["properties"])
        self.assertEqual({name for name in top if f"`{name}" not in (ROOT / "docs/verdict.md").read_text()}, set())

    def test_fields_of_the_configuration_are_those_of_the_program(self):
        text = (ROOT / "docs/configuration.md").read_text()
        linked = [ROOT / "docs" / name for name in re.findall(r"\]\(([a-z/-]+\.md)", text)]
        everything = text + "".join(path.read_text() for path in linked if path.exists())
        read = set()
        for path in sorted((ROOT / "core").glob("config*.cc")):
            if not path.name.endswith("_test.cc"):
                read |= set(re.findall(r'\{"([a-zA-Z]+)",', path.read_text()))
        self.assertGreater(len(read), 100)
        self.assertEqual({name for name in read if not re.search(rf"\b{name}\b", everything)}, set())
        fields = configuration_fields(text)
        self.assertGreater(len(fields), 80)
        unknown = []
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "fairlead.yaml")
            for field in fields:
                # No field is a mapping with that key: an unknown field is told as such, a known one otherwise.
                value = {"no-such-key": 1}
                for name in reversed(field.split(".")):
                    value = {name: value}
                file.write_text(yaml.safe_dump({"apiVersion": "config.fairlead.dev/v1alpha1", "kind": "FairleadConfiguration", **value}))
                run = subprocess.run([FAIRLEAD, "catalog", "--config", str(file)], capture_output=True, text=True)
                if f"{field}: is not a known field" in run.stderr or not run.stderr:
                    unknown.append(f"{field}: {run.stderr.strip()}")
        self.assertEqual(unknown, [])

    def test_sizes_are_those_that_were_measured(self):
        measured = dict(re.findall(r"^\| `([\w/]+)` \| [^|]* \| ([^|]+) \|", (ROOT / "docs/performance.md").read_text(), re.MULTILINE))
        text = (ROOT / "docs/operations.md").read_text()
        rows = re.findall(r"^\| [^|]+ \| ([\d,.]+ MiB) \| ([\d,.]+ MiB) \| `([\w/]+)` \|", text, re.MULTILINE)
        self.assertEqual(len(rows), 4)
        for resident, peak, name in rows:
            self.assertEqual((measured[name], measured[f"{name}/peak"]), (resident, peak), name)
        self.assertIn(f"{measured['bind_rate/fairlead/cpu_per_1000_pods']} for 1,000 pods", text)

    def test_flags_of_the_commands_exist(self):
        flags = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "docs/reference/commands.md").read_text()))
        text = without_fences((ROOT / "docs/commands.md").read_text())
        named = set(re.findall(r"`(?:-\w`, `)?(--[a-z][a-z-]+)", text))
        self.assertGreater(len(named), 30)
        self.assertEqual(named - flags - {"--help", "--version"}, set())

    def test_edge_cases_name_tests_that_exist(self):
        text = (ROOT / "docs/edge-cases.md").read_text()
        self.assertEqual(missing_tests(re.sub(r"`[a-z0-9-]+\.(plan|md)`", "", text), tests_of(ROOT)), [])
        plans = re.findall(r"`([a-z0-9-]+\.plan)`", text)
        self.assertEqual([plan for plan in plans if not (ROOT / "cmd/simtest/plans" / plan).exists()], [])
        rows = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
        self.assertEqual([int(row) for row in rows], list(range(1, 75)))

    def test_the_index_has_every_page(self):
        index = (ROOT / "docs/README.md").read_text()
        pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
        self.assertEqual({page for page in pages if f"]({page}" not in index}, set())

    def test_links_have_targets(self):
        self.assertEqual(broken_links(ROOT), [])

    def test_samples_are_what_is_printed(self):
        found = 0
        program = str(pathlib.Path(FAIRLEAD).resolve())
        for path in documents(ROOT):
            # A folder that looks like the tree, for each document: samples make files.
            with tempfile.TemporaryDirectory() as folder:
                for entry in ROOT.resolve().iterdir():
                    pathlib.Path(folder, entry.name).symlink_to(entry)
                for arguments, expected in samples(path.read_text()):
                    found += 1
                    with self.subTest(document=path.name, command=" ".join(arguments)):
                        run = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=folder)
                        self.assertEqual(run.returncode, 0, run.stderr)
                        self.assertIsNone(first_difference(expected, run.stdout.rstrip("\n").split("\n")))
        self.assertGreaterEqual(found, 3)


class RulesTest(unittest.TestCase):
    """Of the comparison itself."""

    def test_a_test_that_is_not_there_is_found(self):
        tests = {"A": {"OneThing", "Other"}}
        self.assertEqual(missing_tests("`A.OneThing` `A.O*` `A.*`", tests), [])
        self.assertEqual(missing_tests("`A.One` `A.X*` `B.*`", tests), ["A.One", "A.X*", "B.*"])

    def test_a_recorded_what_if_needs_no_cluster(self):
        self.assertTrue(needs_no_cluster(["what-if", "--journal", "x"]))
        self.assertFalse(needs_no_cluster(["what-if", "-f", "x"]))
        self.assertFalse(needs_no_cluster(["bundle"]))

    def test_a_gap_stands_for_any_lines(self):
        self.assertIsNone(first_difference(["a", GAP, "c"], ["a", "b", "b", "c"]))
        self.assertIsNone(first_difference(["a", GAP], ["a", "b"]))
        self.assertIsNone(first_difference([GAP, "a"], ["a"]))

    def test_a_difference_is_found(self):
        self.assertEqual(first_difference(["a", "x"], ["a", "b"]), "x")
        self.assertEqual(first_difference(["a", GAP, "x"], ["a", "b"]), "x")
        self.assertEqual(first_difference(["a", "c"], ["a", "b", "c"]), "c")
        self.assertEqual(first_difference(["a"], ["a", "b"]), "(ends before: b)")

    def test_the_rest_of_a_line_may_be_left_out(self):
        self.assertIsNone(first_difference(["8 in use. [...]"], ["8 in use. Position 1"]))
        self.assertEqual(first_difference(["8 in use. [...]"], ["0 in use. Position 1"]), "8 in use. [...]")

    def test_samples_are_told_from_other_blocks(self):
        text = "```\n$ fairlead version\nx 1\n```\n```\n$ fairlead queues\nQ\n```\n```\nmake run\n```\n"
        self.assertEqual(list(samples(text)), [(["version"], ["x 1"])])

    def test_an_excerpt_has_gaps_everywhere(self):
        text = "```\n$ fairlead version  # excerpt\na\nb\n```\n"
        self.assertEqual(list(samples(text)), [(["version"], [GAP, "a", GAP, "b", GAP])])

    def test_tables_are_read(self):
        source = '{Code::kNone, "None", Category::kPolicy, ResolvableBy::kTime},\n{Code::kA, "A", Category::kCapacity,\n ResolvableBy::kTime},'
        self.assertEqual(verdict_codes(source), [("A", "capacity", "Time")])
        self.assertEqual(verdict_rows("| `A` | capacity | it waits | Time | time | Normal |\n"), [("A", "capacity", "Time")])
        page = "## FairleadConfiguration (`v1`)\n\n| field |\n| --- |\n| `a.b`, `.c` | 1 |\n| `d` | 2 |\n\n| `e` | 3 |\n"
        self.assertEqual(configuration_fields(page), ["a.b", "a.c", "d"])
        self.assertEqual(property_names({"properties": {"a": {"items": {"properties": {"b": {}}}}}}), {"a", "b"})

    def test_code_has_no_links(self):
        self.assertEqual(without_code("`[a](b)` [`c`](d)"), "`` [``](d)")

    def test_a_reference_tells_what_the_source_lacks(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import reference
        self.assertEqual(reference.keys_of('// Label of pods, by Fairlead: what\n// it says.\ninline constexpr char kA[] = "a/b";\n'),
                         [("a/b", "Label", "pods", "Fairlead", "what it says.")])
        self.assertEqual(reference.keys_of('// Something else.\ninline constexpr char kA[] = "a/b";\n'), [])
        lacking = []
        rows = list(reference.fields({"properties": {"a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}}}}, "", lacking))
        self.assertEqual(rows, [["`a`", "object", "", ""], ["`a.b`", "string", "required", ""]])
        self.assertEqual(lacking, ["a", "a.b"])
        help_text = "Options:\n  --a X                       one\n  --much-longer-than-the-column\n" + " " * 30 + "two\n\nExamples:\n  fairlead run\n"
        self.assertEqual(reference.parts_of(help_text), {"Options": [("--a X", "one"), ("--much-longer-than-the-column", "two")]})

    def test_anchors(self):
        self.assertEqual(anchor("Who may ask"), "who-may-ask")
        self.assertEqual(anchor("`fairlead run`: the process"), "fairlead-run-the-process")


if __name__ == "__main__":
    ROOT, FAIRLEAD = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve())
    unittest.main(argv=sys.argv[:1])
