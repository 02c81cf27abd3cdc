#!/usr/bin/env python3
"""Writes docs/reference/*.md from the source, or compares them (--check).

reference.py [--check] [--program FAIRLEAD] [ROOT]

  crds.md      the schemas in crds/*.yaml; every field needs a description
  commands.md  `fairlead COMMAND --help` of the built program, by default build/bin/fairlead
  names.md     the comments of keys in the source: "KIND of OBJECTS[, by WRITER]: what it says."; every key of
               Fairlead's and KAI's groups needs one
"""
import argparse
import pathlib
import re
import subprocess
import sys

import yaml

FOLDER = "docs/reference"
PROGRAM = "build/bin/fairlead"
RENEW = "scripts/reference.py"


class Wrong(Exception):
    """The source lacks something that a reference has to say."""


def cell(text):
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def code(text):
    return f"`{text}`"


def table(head, rows):
    rule = " | ".join(["---"] * len(head))
    return [f"| {' | '.join(head)} |", f"| {rule} |", *(f"| {' | '.join(row)} |" for row in rows), ""]


def page(title, source, *parts):
    lines = [f"# {title}", "", f"Written by [{RENEW}](../../{RENEW}) from {source}. A test compares; to change this page, change the source.", ""]
    return "\n".join([*lines, *(line for part in parts for line in part)]).rstrip("\n") + "\n"


# ---- crds.md


def type_of(schema):
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {type_of(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {type_of(schema['additionalProperties'])}"
    return schema.get("format", kind) if kind in ("string", "integer") else kind


BOUNDS = (("minimum", "at least {}"), ("maximum", "at most {}"), ("minLength", "characters: at least {}"),
          ("maxLength", "characters: at most {}"), ("minItems", "items: at least {}"), ("maxItems", "items: at most {}"),
          ("minProperties", "entries: at least {}"), ("maxProperties", "entries: at most {}"))


def limits_of(schema):
    out = []
    if "default" in schema:
        out.append(f"default {code(schema['default'])}")
    if "enum" in schema:
        out.append(" or ".join(code(value) if value else "empty" for value in schema["enum"]))
    out += [text.format(schema[key]) for key, text in BOUNDS if key in schema]
    if "pattern" in schema:
        out.append(f"matches {code(schema['pattern'])}")
    if "x-kubernetes-list-map-keys" in schema:
        out.append(f"one for each {', '.join(map(code, schema['x-kubernetes-list-map-keys']))}")
    out += [f"{rule['message']}: {code(rule['rule'])}" for rule in schema.get("x-kubernetes-validations", [])]
    inner = schema.get("items") if schema.get("type") == "array" else schema.get("additionalProperties")
    if isinstance(inner, dict):
        if each := limits_of(inner):
            out.append(f"each: {'; '.join(each)}")
    return out


def fields(schema, path, lacking):
    """A row for each named field at and below PATH."""
    for name, field in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        here = f"{path}.{name}" if path else name
        if not field.get("description"):
            lacking.append(here)
        limits = (["required"] if name in schema.get("required", []) else []) + limits_of(field)
        yield [code(here), type_of(field), cell("; ".join(limits)), cell(field.get("description", ""))]
        inner, below = field, here
        while True:
            if inner.get("type") == "array":
                inner, below = inner["items"], below + "[]"
            elif isinstance(inner.get("additionalProperties"), dict):
                inner, below = inner["additionalProperties"], below + ".NAME"
            else:
                break
        yield from fields(inner, below, lacking)


SCOPES = {"Cluster": "cluster-wide", "Namespaced": "in a namespace"}


def crds(root):
    parts, contents = [], []
    for path in sorted((root / "crds").glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        kind = spec["names"]["kind"]
        contents.append(f"[{kind}](#{kind.lower()})")
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            lacking = []
            rows = list(fields(schema, "", lacking))
            if lacking:
                raise Wrong(f"crds/{path.name}: no description: {', '.join(lacking)}")
            short = "".join(f", short {code(name)}" for name in spec["names"].get("shortNames", []))
            parts.append([f"## {kind}", "", f"{code(spec['group'] + '/' + version['name'])}, {SCOPES[spec['scope']]}{short}. {schema['description']} "
                          f"[Definition](../../crds/{path.name}).", "", *table(("field", "type", "limits", "what it says"), rows)])
    start = [f"{', '.join(contents)}. Examples are in [crds/examples](../../crds/examples/README.md).", "",
             "`[]` is each item of a list, `NAME` each key of a map. A quantity is a number, or a string such as `64Gi`.", ""]
    return page("Fields of the custom resources", "[crds](../../crds)", start, *parts)


# ---- commands.md

# Where CLI11 puts the description of an option.
COLUMN = 30


def entries(lines):
    """(name, description) of each entry of a part of the help."""
    out = []
    for line in lines:
        if line[:COLUMN].strip() == "":
            out[-1][1] += " " + line.strip()
        elif len(line) > COLUMN and line[COLUMN - 1] == " " and line[COLUMN] != " ":
            out.append([line[:COLUMN].strip(), line[COLUMN:].strip()])
        else:
            out.append([line.strip(), ""])
    return [(name, text.strip()) for name, text in out]


def parts_of(text):
    """{heading: its lines} of the help that has entries."""
    parts, heading = {}, None
    for line in text.splitlines():
        if line in ("Options:", "Positionals:", "Subcommands:"):
            heading = line[:-1]
        elif not line.startswith("  "):
            heading = None
        elif heading:
            parts.setdefault(heading, []).append(line)
    return {heading: entries(lines) for heading, lines in parts.items()}


def help_of(program, command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout


def command_parts(program, command=()):
    """The lines of each command at and below COMMAND."""
    text = help_of(program, command)
    parts = parts_of(text)
    if command:
        about = text.splitlines()[0]
        rows = [[code(cell(name.replace(",", ", ").replace(" REQUIRED", "").replace(" ...", ""))), cell(what)]
                for heading in ("Positionals", "Options") for name, what in parts.get(heading, []) if "--help" not in name]
        yield [f"## fairlead {' '.join(command)}", "", f"{about}.", "", *(table(("argument", "what it does"), rows) if rows else [])]
    for name, _ in parts.get("Subcommands", []):
        yield from command_parts(program, (*command, name))


def commands(program):
    start = ["[docs/commands.md](../commands.md) explains them with samples. `--help` of each command has examples.", ""]
    return page("Arguments of all commands", "`fairlead COMMAND --help`", start, *command_parts(program))


# ---- names.md

# Not part of what is installed: they spell keys again, or have their own.
APART = ("build", "tests", "sim", "demo", "examples", "cmd/simtest")
KEY = re.compile(r'"((?:[a-z0-9.-]+\.)?(?:fairlead\.dev|kai\.scheduler|run\.ai)/[A-Za-z0-9_./-]+)"')
CONSTANT = re.compile(r'((?:^ *// .*\n)+)^(?:inline )?constexpr char \w+\[\] =\s+"([^"]+)";', re.M)
COMMENT = re.compile(r"(Label|Annotation|Taint|Finalizer) of ([^:,]+)(?:, by ([^:]+))?: (.+)")
# Spelt as a key, and none.
NO_KEYS = {
    "fairlead.dev/field-place": "a mark on an error in the process",
    "run.ai/gpu.memory": "a resource in statuses",
}


def sources(root):
    for path in sorted([*root.rglob("*.h"), *root.rglob("*.cc")]):
        name = path.relative_to(root).as_posix()
        if not name.endswith("_test.cc") and not any(name.startswith(folder + "/") for folder in APART):
            yield name, path.read_text()


def keys_of(text):
    """[(key, kind, objects, writer, what it says)] of the constants with such a comment."""
    out = []
    for comment, key in CONSTANT.findall(text):
        said = COMMENT.fullmatch(" ".join(line.strip()[3:] for line in comment.strip().split("\n")))
        if said:
            out.append((key, *(group or "" for group in said.groups())))
    return out


def names(root):
    rows, spelt = {}, {}
    for name, text in sources(root):
        for key, *said in keys_of(text):
            if key in rows:
                raise Wrong(f"{name}: {key} is there twice")
            rows[key] = said
        for key in KEY.findall(text):
            if not re.search(r"/v\d\w*$", key):
                spelt.setdefault(key, name)
    lacking = [f"{name}: {key}" for key, name in spelt.items() if key not in rows and key not in NO_KEYS]
    if lacking:
        raise Wrong(f"no comment \"KIND of OBJECTS[, by WRITER]: what it says.\": {'; '.join(lacking)}")
    groups = {"Fairlead's own": [], "KAI's": [], "Other programs'": []}
    api_names = (root / "scheduler/model/api_names.h").read_text()
    kai = {key for key, *_ in keys_of(api_names.partition("// Node labels that we read.")[0])}
    for key, (kind, objects, writer, what) in sorted(rows.items()):
        own = key.startswith("fairlead.dev/")
        group = "Fairlead's own" if own else "KAI's" if key in kai or key.startswith("kai.scheduler/") else "Other programs'"
        groups[group].append([code(key), f"{kind.lower()} of {objects}", writer, cell(what)])
    parts = [[f"## {title}", "", *table(("key", "is a", "written by", "what it says"), found)] for title, found in groups.items()]
    start = ["If no writer is named, users or other programs write the key, and Fairlead reads it.", ""]
    return page("Labels, annotations, taints and finalizers", "the comments in the source", start, *parts)


def generated(root, program):
    """{path below ROOT: text} of everything that this program writes."""
    return {f"{FOLDER}/crds.md": crds(root), f"{FOLDER}/commands.md": commands(program), f"{FOLDER}/names.md": names(root)}


def stale(root, program):
    """Paths that are not as they would be written."""
    files = generated(root, program)
    out = [path for path, text in files.items() if not (root / path).exists() or (root / path).read_text() != text]
    return sorted(out + [path for path in (p.relative_to(root).as_posix() for p in (root / FOLDER).glob("*.md")) if path not in files])


def main(arguments):
    options = argparse.ArgumentParser(description="Writes docs/reference from the source and the program's help.")
    options.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a page differs")
    options.add_argument("--program", type=pathlib.Path, default=PROGRAM, help="fairlead (default: %(default)s)")
    options.add_argument("root", nargs="?", type=pathlib.Path, default=".", help="of the repository (default: this folder)")
    options = options.parse_args(arguments)
    root, check, program = options.root, options.check, str(options.program.resolve())
    try:
        if check:
            differing = stale(root, program)
            for path in differing:
                print(f"{path} is not what the source says: run {RENEW}")
            return 1 if differing else 0
        files = generated(root, program)
    except Wrong as error:
        print(f"reference.py: {error}", file=sys.stderr)
        return 1
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (root / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
