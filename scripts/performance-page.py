#!/usr/bin/env python3
"""Writes measured figures into the tables of docs/performance.md.

    scripts/performance-page.py RESULTS.json... [--page docs/performance.md]

A row whose first cell names a benchmark of the results gets its result, range, machine index and goal. The cell "what" stays as it is.
A benchmark that has no row is told, so that a person gives it one; a row that none of the results has measured is told too.
"""
import argparse
import json
import pathlib
import re
import sys

HEAD = "| name | what | result | range | index | goal |\n| --- | --- | --- | --- | --- | --- |"


def number(value):
    if value is None:
        return ""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def goal_cell(result):
    if result["goal"] is None:
        return ""
    sign = "<=" if result["better"] == "lower" else ">="
    state = {True: "met", False: "**missed**", None: "not judged"}[result["met"]]
    return f"{sign} {number(result['goal'])} {state}"


def row(name, what, result):
    index = f"{result['index']:.2f}" if result.get("index") else ""
    return (f"| `{name}` | {what} | {number(result['value'])} {result['unit']} | {number(result['min'])} .. {number(result['max'])} "
            f"| {index} | {goal_cell(result)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--page", default="docs/performance.md")
    args = parser.parse_args()
    results = {r["name"]: r for path in args.results for r in json.loads(pathlib.Path(path).read_text())}
    page = pathlib.Path(args.page)
    seen, stale, lines = set(), [], []
    text = re.sub(r"\| name \| what \| result \| range \|[^\n]*goal \|\n\|[-| ]+\|", HEAD, page.read_text())
    for line in text.split("\n"):
        match = re.match(r"\| `([^`]+)` \| ([^|]*) \|", line)
        if match and match[1] in results:
            seen.add(match[1])
            line = row(match[1], match[2], results[match[1]])
        elif match and line.count(" | ") >= 4:
            stale.append(match[1])
            cells = line.split(" | ")
            if len(cells) == 5:  # of before the index had a column
                line = " | ".join(cells[:4] + ["", cells[4]])
        lines.append(line)
    page.write_text("\n".join(lines))
    for name in stale:
        print(f"not in the results: {name}")
    for name in sorted(set(results) - seen):
        print("no row yet: " + row(name, results[name]["note"], results[name]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
