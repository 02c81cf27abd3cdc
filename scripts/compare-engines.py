#!/usr/bin/env python3
"""Does a new engine miss a placement that an old one found?

    scripts/compare-engines.py OLD NEW [--seeds 1..2000] [--keep FOLDER]

OLD and NEW are two builds of fairlead-conformance. Every seed makes one random cluster (nodes, queues with quotas and limits, running
and waiting jobs, gangs, fractions of GPUs), written as a conformance case; both programs decide it. A placement is missed if waiting
pods that the old engine places get no place from the new one, no other pod gets one instead, and no GPU of a running pod was spared for it.
Each such seed is told; the last line counts them; exit code 1 if there are any. --keep leaves the cases in a folder for a closer look.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

NOW = "2026-01-01T00:00:00Z"
PRIORITIES = {"train": 50, "interactive-preemptible": 75, "build": 100}
CASES_A_FILE = 100


def minutes_before(minutes):
    return f"2025-12-31T{23 - minutes // 60:02d}:{59 - minutes % 60:02d}:00Z"


def node(name, gpus, cpus):
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.count": str(gpus), "nvidia.com/gpu.memory": "100"}},
            "status": {"allocatable": {"cpu": str(cpus), "memory": "100G", "nvidia.com/gpu": str(gpus), "pods": "110"}}}


def queue(name, quota, limit, weight, minute, parent="default"):
    free = {"limit": -1, "overQuotaWeight": 1, "quota": -1}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue",
            "metadata": {"name": name, "uid": name, "creationTimestamp": f"2026-01-01T00:{minute:02d}:00Z"},
            "spec": {"parentQueue": parent,
                     "resources": {"cpu": free, "memory": free,
                                   "gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight}}}}


class World:
    """One random cluster. `free` counts what running pods leave, so that they fit."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        r = self.random
        self.seed, self.objects, self.jobs = seed, [], {}
        self.gpus = {}  # by pod
        self.free = {}
        for i in range(r.randint(1, 6)):
            gpus = r.choice([2, 4, 4, 8])
            self.free[f"node{i}"] = gpus
            self.objects.append(node(f"node{i}", gpus, r.choice([8, 32, 64])))
        total = sum(self.free.values())
        self.queues = [f"queue{i}" for i in range(r.randint(1, 4))]
        for i, name in enumerate(self.queues):
            limit = r.choice([-1, -1, -1, r.randint(1, total)])
            self.objects.append(queue(name, r.randint(0, max(1, total // 2)), limit, r.choice([0, 1, 1, 2]), i))
        parent = queue("default", -1, -1, 1, 0)
        del parent["spec"]["parentQueue"]
        self.objects.append(parent)
        for name, value in PRIORITIES.items():
            self.objects.append({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                 "metadata": {"name": name}, "value": value})
        for i in range(r.randint(0, 8)):
            self.add_running(i)
        for i in range(r.randint(1, 10)):
            self.add_waiting(i)

    def add_job(self, name, priority, members, minute, started):
        meta = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": minutes_before(minute)}
        if started:
            meta["annotations"] = {"kai.scheduler/last-start-timestamp": minutes_before(1)}
        self.objects.append({"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta,
                             "spec": {"minMember": members, "priorityClassName": priority,
                                      "queue": self.random.choice(self.queues)}})
        self.jobs[name] = {"preemptible": PRIORITIES[priority] < 100, "priority": PRIORITIES[priority]}

    def add_pod(self, job, index, gpus, on=None, fraction=None):
        name = f"{job}-{index}"
        self.gpus[f"default/{name}"] = gpus if fraction is None else float(fraction)
        requests = {"cpu": "1", "memory": "1G"}
        annotations = {"pod-group-name": job}
        if fraction is not None:
            annotations["gpu-fraction"] = fraction
        elif gpus > 0:
            requests["nvidia.com/gpu"] = str(gpus)
        spec = {"containers": [{"name": "main", "resources": {"requests": requests}}], "schedulerName": "kai-scheduler"}
        if on is not None:
            spec["nodeName"] = on
            annotations["received-resource-type"] = "Regular"
        self.objects.append({"apiVersion": "v1", "kind": "Pod",
                             "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations,
                                          "labels": {"job-name": name}},
                             "spec": spec, "status": {"phase": "Running" if on else "Pending"}})

    def add_running(self, i):
        r = self.random
        size, gpus = r.randint(1, 4), r.choice([1, 1, 2, 4])
        nodes = []
        for _ in range(size):
            fits = [name for name, free in sorted(self.free.items()) if free >= gpus]
            if not fits:
                break
            nodes.append(r.choice(fits))
            self.free[nodes[-1]] -= gpus
        if not nodes:
            return
        name = f"running{i}"
        self.add_job(name, r.choice(["train", "train", "interactive-preemptible", "build"]),
                     r.choice([1, len(nodes)]), r.randint(2, 200), True)
        for k, on in enumerate(nodes):
            self.add_pod(name, k, gpus, on=on)

    def add_waiting(self, i):
        r = self.random
        size, gpus = r.choice([1, 1, 1, 2, 3, 4, 8]), r.choice([0, 1, 1, 2, 4, 8])
        name = f"waiting{i}"
        self.add_job(name, r.choice(["train", "train", "interactive-preemptible", "build"]),
                     r.choice([1, size, size]), r.randint(1, 100), False)
        fraction = r.choice(["0.5", "0.25"]) if r.random() < 0.1 else None
        for k in range(size):
            self.add_pod(name, k, gpus, fraction=fraction)

    def case(self):
        return {"actions": ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"], "beyondFormat": [],
                "expect": {"pods": {}}, "expectFrom": "observed", "kaiPasses": False, "mode": "single",
                "name": f"seed {self.seed}", "now": NOW, "objects": self.objects, "observed": {},
                "rounds": {"afterMatch": 0, "untilMatch": 1}, "schedulerConfig": {"followUpCycle": "true"}, "source": f"compare:World[{self.seed}]",
                "state": {"jobs": self.jobs}}


def decisions(program, folder):
    """{seed: {pod: how often it got a place, less how often it lost one}}."""
    out = subprocess.run([program, folder, "--verbose"], capture_output=True, text=True).stdout
    last, seed = {}, None
    for line in out.splitlines():
        head = re.match(r"\S+ compare:World\[(\d+)\]", line)
        if head:
            seed = int(head[1])
            last.setdefault(seed, {})
        elif seed is not None:
            for verb, pod in re.findall(r"\b(bind|pipeline|evict) (\S+)", line):
                last[seed][pod] = last[seed].get(pod, 0) + (-1 if verb == "evict" else 1)
    return last


class End:
    """What has changed in the end: waiting pods that have a place, and running ones that have none any more."""

    def __init__(self, last, gpus):
        self.placed = {pod for pod, places in last.items() if places > 0 and "/waiting" in pod}
        self.gone = {pod for pod, places in last.items() if places < 0 and "/running" in pod}
        self.gpus_gone = sum(gpus[pod] for pod in self.gone)

    def misses(self, old):
        """Pods that the old end has placed are not placed here, none is placed instead, and no GPU of a running
        pod was spared for it."""
        return self.placed < old.placed and self.gpus_gone >= old.gpus_gone


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--seeds", default="1..2000")
    parser.add_argument("--keep")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(".."))
    with tempfile.TemporaryDirectory() as folder:
        folder = args.keep or folder
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        seeds, gpus = list(range(first, last + 1)), {}
        for i in range(0, len(seeds), CASES_A_FILE):
            worlds = [World(seed) for seed in seeds[i:i + CASES_A_FILE]]
            gpus.update((world.seed, world.gpus) for world in worlds)
            cases = [world.case() for world in worlds]
            (pathlib.Path(folder) / f"worlds_{seeds[i]}.json").write_text(json.dumps(cases))
        old, new = decisions(args.old, folder), decisions(args.new, folder)
    if set(old) != set(seeds) or set(new) != set(seeds):
        sys.exit(f"decided: {len(old)} by the old engine, {len(new)} by the new one, of {len(seeds)}")
    fewer = different = more = pods = 0
    for seed in seeds:
        a, b = End(old[seed], gpus[seed]), End(new[seed], gpus[seed])
        pods += len(b.placed)
        different += a.placed != b.placed or a.gone != b.gone
        more += a.misses(b)
        if b.misses(a):
            fewer += 1
            print(f"seed {seed}: {len(a.placed)} pods placed and {len(a.gone)} evicted by the old engine, {len(b.placed)} and "
                  f"{len(b.gone)} by the new; only by the old: {', '.join(sorted(a.placed - b.placed))}")
    print(f"{len(seeds)} seeds, {pods} pods placed, {different} decided differently, {more} missed by the old engine, {fewer} missed by the new")
    return 1 if fewer else 0


if __name__ == "__main__":
    sys.exit(main())
