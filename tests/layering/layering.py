#!/usr/bin/env python3
"""Checks that the modules use each other only as docs/architecture.md allows.

layering.py ROOT MODULES, where ROOT is the repository and MODULES the file generated/modules.txt that CMake writes from the
fairlead_module() calls: "folder target: dependencies | dependencies of its tests" a line.

Checked is that
  1. every folder with a module has a row in the table of modules, and the other way round;
  2. what a folder's targets may link, directly or through others, is exactly what its row allows;
  3. every #include "..." names a file of a module that the including file's module may use; tests may also use
     what their TEST_DEPS name;
  4. pure modules see no header, and call no function, that reaches sockets, files, threads, clocks or randomness.
     Their tests may;
  5. the engine names no resource: what it knows of GPUs, CPU and memory it asks for (queues/variant.h, state/parts.h,
     model/scarcity.h).
Exit code 0 if all holds, 1 with a line for each fault.
"""
import pathlib
import re
import sys

PURE = ("queues", "grouping", "scheduler/model", "scheduler/verdict", "scheduler/state", "scheduler/framework", "scheduler/plugins",
        "scheduler/engine", "autoscale-hook", "core", "admission", "tracing")
# Not <mutex>: a plugin may guard its cache, because several threads may call its const methods.
IMPURE_HEADER = re.compile(
    r"""^<(?:thread|stop_token|future|condition_variable|semaphore|latch|barrier|pthread\.h
          |chrono|ctime|time\.h|random
          |fstream|filesystem|iostream|cstdio|stdio\.h|dirent\.h|fcntl\.h|unistd\.h|poll\.h|signal\.h|csignal
          |netdb\.h|(?:sys|netinet|arpa|net|linux|curl|openssl)/.*)>$
       |^[<"]absl/(?:time/clock|synchronization/.*|random/.*)\.h[>"]$
       |^"base/clock\.h"$""", re.VERBOSE)
IMPURE_CALL = re.compile(r"\b(?:absl::Now|absl::GetCurrentTimeNanos|std::getenv|getenv|std::rand|std::time|std::system)\s*\(")
NAMES_NO_RESOURCE = ("scheduler/engine",)
RESOURCE_NAME = re.compile(r"\bk(?:Cpu|Memory|Gpu|AmdGpu|EphemeralStorage)(?:Name)?\b|\w*gpu\w*", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")', re.MULTILINE)
FILES = (".h", ".cc", ".inc")
# Not of the program: code that builds on modules but is used by none.
OUTSIDE = ("tests",)


def read_modules(path):
    """{folder: {target: (deps, test_deps)}} of modules.txt."""
    folders = {}
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"(\S+) (\S+):([^|]*)\|(.*)", line)
        if match is None:
            raise SystemExit(f"{path}: not 'folder target: deps | test deps': {line}")
        folder, target, deps, test_deps = match.groups()
        folders.setdefault(folder, {})[target] = (deps.split(), test_deps.split())
    return folders


def read_table(root):
    """{folder: words of its column 'may use'} of the table of modules, and {word: folder}.

    The words are the names of targets, less their prefix: `fairlead_kube`, `_codec` are "kube" and "codec"."""
    rows, names = {}, {}
    text = (root / "docs/architecture.md").read_text()
    for row in re.finditer(r"^\| `([^`]+)` \| ([^|]+) \|[^|]*\| ([^|]+) \|$", text, re.MULTILINE):
        folder = row[1]
        rows[folder] = [word.strip() for word in row[3].split(",")]
        for target in re.findall(r"`(?:fairlead)?_([^`]+)`", row[2]):
            names[target] = folder
    return rows, names


def closure(direct):
    """Everything reachable, for a {key: set of keys}; a key reaches itself only through a cycle."""
    reached = {key: set(values) for key, values in direct.items()}
    changed = True
    while changed:
        changed = False
        for values in reached.values():
            more = set().union(*(reached.get(value, set()) for value in values)) - values
            if more:
                values |= more
                changed = True
    return reached


def allowed_by_table(rows, names, problems):
    direct = {}
    for folder, words in rows.items():
        direct[folder] = set()
        for word in words:
            if word == "all":
                direct[folder] |= set(rows) - {folder}
            elif word in names:
                direct[folder].add(names[word])
            elif word != "Abseil":
                problems.append(f"docs/architecture.md: the row of {folder} allows '{word}', which is no module")
    return closure(direct)


def used_by_targets(folders):
    """For each folder what its targets reach, and what its tests reach besides."""
    folder_of = {target: folder for folder, targets in folders.items() for target in targets}
    direct, tests = {}, {}
    for folder, targets in folders.items():
        direct[folder] = {folder_of[d] for deps, _ in targets.values() for d in deps if d in folder_of} - {folder}
        tests[folder] = {folder_of[d] for _, deps in targets.values() for d in deps if d in folder_of} - {folder}
    reached = closure(direct)
    with_tests = {f: reached[f].union(tests[f], *(reached[d] for d in tests[f])) for f in folders}
    return reached, with_tests


def module_of(path, folders):
    """The folder of the module that has this file: the longest that is a prefix."""
    found = [folder for folder in folders if path.startswith(folder + "/")]
    return max(found, key=len) if found else None


def is_test(path):
    return "/testing/" in path or re.search(r"_test\.(cc|h)$|_test(ing|_[a-z]+)\.h$|/test_[a-z_]+\.h$", path) is not None


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def check_graph(rows, allowed, reached, problems):
    modules = {folder for folder in reached if not folder.startswith(OUTSIDE)}
    for folder in sorted(modules - set(rows)):
        problems.append(f"{folder}: a module without a row in the table of docs/architecture.md")
    for folder in sorted(set(rows) - modules):
        problems.append(f"docs/architecture.md: a row for {folder}, which has no fairlead_module()")
    for folder in sorted(modules & set(rows)):
        if folder in reached[folder]:
            problems.append(f"{folder}: its targets depend on each other in a circle with {', '.join(sorted(reached[folder]))}")
        for other in sorted((reached[folder] & modules) - allowed[folder] - {folder}):
            problems.append(f"{folder}: links {other}, which its row in docs/architecture.md does not allow")
        for other in sorted(reached[folder] - modules):
            problems.append(f"{folder}: links {other}, which is not part of the program")
        if rows[folder] != ["all"]:
            for other in sorted(allowed[folder] - reached[folder]):
                problems.append(f"docs/architecture.md: allows {folder} to use {other}, but its targets do not link it")


def check_file(root, path, folders, usable, problems):
    """Rules 3 and 4 for one file; usable is what its module may include."""
    folder = module_of(path, folders)
    text = (root / path).read_text(errors="replace")
    pure = folder in PURE and not is_test(path)
    for match in INCLUDE.finditer(text):
        name, line = match[1], text.count("\n", 0, match.start(1)) + 1
        if pure and IMPURE_HEADER.match(name):
            problems.append(f"{path}:{line}: {folder} is pure and must not include {name}")
        target = name.strip('"<>')
        if not name.startswith('"') or not (root / target).exists():
            continue  # Of a library, or generated: those have no module's folder.
        other = module_of(target, folders)
        if other is not None and other != folder and other not in usable:
            problems.append(f"{path}:{line}: includes {name}, but {folder} may not use {other}; "
                            "see DEPS in its CMakeLists.txt")
    if pure:
        for match in IMPURE_CALL.finditer(without_comments(text)):
            problems.append(f"{path}: {folder} is pure and must not call {match[0].rstrip('( ')}()")


def check_resources(root, path, folders, problems):
    """Rule 5 for one file. What a text for people says is the text's own."""
    folder = module_of(path, folders)
    if folder not in NAMES_NO_RESOURCE or is_test(path):
        return
    code = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', without_comments((root / path).read_text(errors="replace")))
    for match in RESOURCE_NAME.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        problems.append(f"{path}:{line}: {folder} knows no resource by name, and must not use {match[0]}")


def check(root, modules):
    root, problems = pathlib.Path(root), []
    folders = read_modules(pathlib.Path(modules))
    rows, names = read_table(root)
    if not rows:
        return 0, ["docs/architecture.md: no table of modules found"]
    reached, with_tests = used_by_targets(folders)
    check_graph(rows, allowed_by_table(rows, names, problems), reached, problems)
    count = 0
    for folder in sorted(folders):
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in FILES or module_of(path, folders) != folder:
                continue
            count += 1
            # What lies in tests/ is all test, and its programs link beyond their libraries.
            if folder.startswith(OUTSIDE):
                continue
            check_file(root, path, folders, with_tests[folder] if is_test(path) else reached[folder], problems)
            check_resources(root, path, folders, problems)
    return count, problems


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    count, problems = check(sys.argv[1], sys.argv[2])
    for problem in problems:
        print(problem)
    print(f"layering: {count} files, {len(problems)} faults")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
