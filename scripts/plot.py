#!/usr/bin/env python3
"""Draws the figures of the documentation as SVG: those of docs/replay.md from what fairlead-replay
prints with -o json, that of docs/performance.md from the results of the benchmarks.

    build/bin/fairlead-replay openb FOLDER -o json > openb.jsonl
    scripts/plot.py openb openb.jsonl docs/img/replay-openb.svg
    build/bin/fairlead-replay philly FILE -o json > philly.jsonl
    scripts/plot.py philly philly.jsonl docs/img/replay-philly.svg
    make bench BENCH=growth
    scripts/plot.py growth build/bench/results.json docs/img/growth.svg

Python's standard library alone. The same input gives the same bytes. A figure has a ground of its
own, so that it reads the same on a light and on a dark page.
"""

import json
import math
import sys
from collections import defaultdict
from html import escape

INK, FAINT, GROUND = "#1f2328", "#d0d7de", "#ffffff"
OURS, OTHERS = "#0969da", ["#bc4c00", "#8250df", "#6e7781", "#1a7f37"]
FONT = "font-family='Helvetica,Arial,sans-serif'"


class Svg:
    def __init__(self, width, height, title):
        self.parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            f"viewBox='0 0 {width} {height}' role='img' aria-label='{escape(title)}' {FONT}>",
            f"<rect width='{width}' height='{height}' rx='6' fill='{GROUND}'/>",
        ]
        self.text(width / 2, 24, title, size=15, anchor="middle", weight="bold")

    def text(self, x, y, what, size=11, anchor="start", color=INK, weight="normal", turn=None):
        turned = f" transform='rotate({turn} {x:.1f} {y:.1f})'" if turn is not None else ""
        self.parts.append(
            f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' "
            f"fill='{color}' font-weight='{weight}'{turned}>{escape(what)}</text>")

    def line(self, points, color, width=1.0, dash=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f" stroke-dasharray='{dash}'" if dash else ""
        self.parts.append(f"<polyline points='{path}' fill='none' stroke='{color}' "
                          f"stroke-width='{width}'{dashed}/>")

    def rect(self, x, y, width, height, color):
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' "
                          f"height='{height:.1f}' fill='{color}'/>")

    def write(self, file):
        with open(file, "w", encoding="utf-8") as out:
            out.write("\n".join(self.parts) + "\n</svg>\n")


class Panel:
    """Axes of one diagram; x and y are functions from values to pixels."""

    def __init__(self, svg, box, x_range, y_range, log_x=False):
        self.svg, self.box, self.log_x = svg, box, log_x
        self.x_range, self.y_range = x_range, y_range

    def x(self, value):
        left, _, width, _ = self.box
        low, high = self.x_range
        if self.log_x:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return left + width * (value - low) / (high - low)

    def y(self, value):
        _, top, _, height = self.box
        low, high = self.y_range
        return top + height * (1 - (value - low) / (high - low))

    def axes(self, x_ticks, y_ticks, title="", x_title="", y_title=""):
        left, top, width, height = self.box
        for value, label in y_ticks:
            at = self.y(value)
            self.svg.line([(left, at), (left + width, at)], FAINT, 0.8)
            self.svg.text(left - 5, at + 4, label, size=10, anchor="end")
        for value, label in x_ticks:
            at = self.x(value)
            self.svg.line([(at, top + height), (at, top + height + 4)], INK, 0.8)
            self.svg.text(at, top + height + 16, label, size=10, anchor="middle")
        self.svg.line([(left, top), (left, top + height), (left + width, top + height)], INK, 1)
        if title:
            self.svg.text(left + width / 2, top - 8, title, size=12, anchor="middle")
        if x_title:
            self.svg.text(left + width / 2, top + height + 32, x_title, anchor="middle")
        if y_title:
            self.svg.text(left - 38, top + height / 2, y_title, anchor="middle", turn=-90)

    def curve(self, points, color, width=1.6, dash=""):
        low, high = self.x_range
        inside = [(self.x(x), self.y(y)) for x, y in points if low <= x <= high and y is not None]
        if inside:
            self.svg.line(inside, color, width, dash)


def legend(svg, x, y, entries):
    for name, color, dash in entries:
        svg.line([(x, y - 4), (x + 24, y - 4)], color, 2.2, dash)
        svg.text(x + 30, y, name)
        x += 48 + 6.3 * len(name)


def mean_curves(rows, field):
    curves = [row[field] for row in rows if row.get(field)]
    if not curves:
        return []
    points = []
    for at in range(min(len(curve) for curve in curves)):
        values = [curve[at] for curve in curves]
        if None not in values:
            points.append((at, sum(values) / len(values)))
    return points


def openb(rows, file):
    by_trace = defaultdict(list)
    for row in rows:
        by_trace[row["trace"]].append(row)
    names = sorted(by_trace)
    columns, wide, high = 4, 215, 170
    lines = -(-len(names) // columns)
    svg = Svg(columns * wide + 40, lines * high + 95,
              "openb: GPUs allocated as more and more are asked for")
    for number, name in enumerate(names):
        left = 60 + number % columns * wide
        top = 75 + number // columns * high
        panel = Panel(svg, (left, top, wide - 50, high - 65), (80, 130), (70, 100))
        panel.axes([(x, str(x)) for x in (80, 100, 120)], [(y, str(y)) for y in (70, 80, 90, 100)],
                   name)
        panel.curve(mean_curves(by_trace[name], "publishedCurve"), OTHERS[0], 1.6, "5 3")
        panel.curve(mean_curves(by_trace[name], "curve"), OURS, 1.8)
    bottom = lines * high + 72
    svg.text(60, bottom, "across: GPUs asked for so far; up: GPUs allocated; both in % of capacity")
    legend(svg, 520, bottom, [("Fairlead", OURS, ""), ("best published", OTHERS[0], "5 3")])
    svg.write(file)


def hours(seconds):
    return f"{seconds / 3600:.1f}"


WAITS = [(60, "1 min"), (600, "10 min"), (3600, "1 h"), (6 * 3600, "6 h"), (86400, "1 d"),
         (5 * 86400, "5 d"), (30 * 86400, "30 d")]


def philly(rows, file):
    gpus = max(row["gpus"] for row in rows)
    rows = [row for row in rows if row["gpus"] == gpus]
    # The strict first-in-first-out would make every other bar invisible.
    shown = [row for row in rows if row["policy"] != "FIFO strict"]
    colors = {}
    for row in shown:
        ours = row["policy"].startswith("Fairlead")
        used = sum(1 for name in colors if not name.startswith("Fairlead"))
        blues = sum(1 for name in colors if name.startswith("Fairlead"))
        colors[row["policy"]] = ([OURS, "#54aeff", "#0a3069"][blues % 3] if ours
                                 else OTHERS[used % len(OTHERS)])
    svg = Svg(900, 470, f"Philly, {rows[0]['jobs']:,} jobs on {gpus} GPUs: waiting, by policy")
    for title, field, left in (("all jobs", "waitPercentiles", 60),
                               ("jobs of 8 GPUs and more", "bigWaitPercentiles", 510)):
        panel = Panel(svg, (left, 60, 360, 190), (60, 30 * 86400), (0, 100), log_x=True)
        panel.axes([(at, name) for at, name in WAITS], [(y, f"{y} %") for y in (0, 50, 100)],
                   title, "waited at most")
        for row in shown:
            points = [(max(60, wait), at) for at, wait in enumerate(row[field])]
            panel.curve(points, colors[row["policy"]],
                        2.2 if row["policy"].startswith("Fairlead") else 1.5)
    for title, field, left in (("mean completion, hours", "meanCompletionSeconds", 60),
                               ("mean wait of jobs of 8 GPUs and more, hours",
                                "bigMeanWaitSeconds", 510)):
        svg.text(left + 180, 318, title, size=12, anchor="middle")
        most = max(row[field] for row in shown)
        for number, row in enumerate(shown):
            y = 330 + number * (120 / max(5, len(shown)))
            width = 190 * row[field] / most
            svg.text(left + 112, y + 12, row["policy"], size=11, anchor="end")
            svg.rect(left + 118, y + 2, width, 120 / max(5, len(shown)) - 6, colors[row["policy"]])
            svg.text(left + 122 + width, y + 12, hours(row[field]), size=11)
    svg.write(file)


MILLISECONDS = [(0.001, "1 us"), (0.01, "10 us"), (0.1, "100 us"), (1, "1 ms"), (10, "10 ms"),
                (100, "100 ms")]


class LogPanel(Panel):
    """Both axes by powers of ten."""

    def y(self, value):
        _, top, _, height = self.box
        low, high = (math.log(limit) for limit in self.y_range)
        return top + height * (1 - (math.log(value) - low) / (high - low))


def growth(rows, file):
    values = {row["name"]: row["value"] for row in rows}

    def points(prefix):
        found = [(int(name.rsplit("/", 1)[1]), value) for name, value in values.items()
                 if name.rsplit("/", 1)[0] == prefix]
        return sorted(found)

    svg = Svg(900, 330, "The step that answers one new pod: how it grows")
    panel = LogPanel(svg, (70, 70, 350, 170), (500, 20000), (0.001, 100), log_x=True)
    panel.axes([(n, f"{n:,}") for n in (500, 1000, 2000, 5000, 10000, 20000)], MILLISECONDS,
               "with nodes of 8 GPUs", "nodes")
    panel.curve(points("growth_nodes/place"), OURS, 2)
    panel.curve(points("growth_nodes/reclaim"), OTHERS[0], 2)
    legend(svg, 70, 312, [("placed, 90 % of the GPUs taken", OURS, ""),
                          ("reclaimed, all taken", OTHERS[0], "")])
    panel = LogPanel(svg, (520, 70, 350, 170), (0, 100), (0.001, 100))
    panel.axes([(n, f"{n} %") for n in (0, 25, 50, 75, 100)], MILLISECONDS,
               "with how full 5,000 nodes are", "GPUs taken")
    panel.curve(points("growth_fill/one_gpu"), OURS, 2)
    panel.curve(points("growth_fill/whole_node"), OTHERS[1], 2)
    legend(svg, 520, 312, [("pod of one GPU", OURS, ""), ("pod of a whole node", OTHERS[1], "")])
    svg.write(file)


def main():
    figures = {"openb": openb, "philly": philly, "growth": growth}
    if len(sys.argv) != 4 or sys.argv[1] not in figures:
        sys.exit(__doc__)
    with open(sys.argv[2], encoding="utf-8") as source:
        text = source.read()
    rows = json.loads(text) if text.startswith("[") else [
        json.loads(line) for line in text.splitlines() if line.strip()]
    figures[sys.argv[1]](rows, sys.argv[3])


if __name__ == "__main__":
    main()
