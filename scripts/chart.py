#!/usr/bin/env python3
"""Writes the parts of the Helm chart that follow from the kustomize manifests, or compares them (--check).

chart.py [--check] [ROOT]

The manifests are the source, and are plain YAML. Two kinds of comments in them say what is different in the chart:

  KEY: VALUE # chart: TEXT    TEXT is in the place of VALUE
  # chart: TEXT               a line that the manifests do not have
  # chart-if: CONDITION       its document is there only then

The namespace is the release's everywhere. `{{` in other text is passed on as it is (Prometheus has templates too).
"""
import pathlib
import re
import sys

CHART = "manifests/chart"
# Template: its source. What is missing here is not in the chart: the namespace (Helm makes it), and
# definitions that belong to other projects.
TEMPLATES = {
    "admission-networkpolicy": "admission/component/networkpolicy",
    "admission-policy": "admission/component/policy",
    "admission-rbac": "admission/component/rbac",
    "admission-service": "admission/component/service",
    "admission-webhooks": "admission/component/webhooks",
    "deployment": "base/deployment",
    "flowschema": "base/flowschema",
    "gpu-reservation": "base/gpu-reservation",
    "gpu-sharing-policy": "gpu-sharing/policy",
    "gpu-sharing-webhook-rbac": "gpu-sharing/kai-webhook-rbac",
    "grouping-rbac": "grouping/rbac",
    "guests-networkpolicy": "guests/networkpolicy",
    "guests-service": "guests/service",
    "monitoring-prometheusrule": "monitoring/prometheusrule",
    "monitoring-service": "monitoring/service",
    "monitoring-servicemonitor": "monitoring/servicemonitor",
    "networkpolicy": "base/networkpolicy",
    "pdb": "base/pdb",
    "priorityclasses": "base/priorityclasses",
    "provider-cluster-api": "cluster-api/rbac",
    "provider-karpenter": "karpenter/rbac",
    "provider-kwok": "kwok/rbac",
    "provider-provisioning-request": "provisioning-request/rbac",
    "provider-scale-subresource": "scale-subresource/rbac",
    "rbac": "base/rbac",
    "reader-rbac": "base/reader-rbac",
}
CONFIGURATION = "base/fairlead"
# values.yaml from this line on is the configuration.
CONFIGURATION_MARK = "# ---- From here on: manifests/base/fairlead.yaml, by scripts/chart.py. ----\n"


def _line(line, where):
    added = re.fullmatch(r"(\s*)# chart: (.+)", line)
    if added:
        return added[1] + added[2]
    replaced = re.fullmatch(r"(\s*(?:- )?[\w./-]+: ).+? # chart: (.+)", line)
    if replaced:
        return replaced[1] + replaced[2]
    if "# chart" in line:
        raise ValueError(f"{where}: not understood: {line.strip()}")
    plain = line.replace("{{", '{{ "{{" }}')
    return re.sub(r"\bnamespace: fairlead\b", "namespace: {{ .Release.Namespace | quote }}", plain)


def template(text, source):
    """The chart's form of a manifest."""
    out = [f"{{{{- /* From {source} by scripts/chart.py; change it there. */}}}}"]
    for number, document in enumerate(re.split(r"^---\n", text, flags=re.M)):
        conditions = re.findall(r"^# chart-if: (.+)\n", document, flags=re.M)
        if len(conditions) > 1:
            raise ValueError(f"{source}: document {number + 1} has {len(conditions)} conditions")
        lines = re.sub(r"^# chart-if: .+\n", "", document, flags=re.M).rstrip("\n").split("\n")
        # Comments before the first object tell of the manifests as a whole.
        body = ["---", *(_line(line, source) for line in lines)]
        out += [f"{{{{- if {conditions[0]} }}}}", *body, "{{- end }}"] if conditions else body
    return "\n".join(out) + "\n"


def configuration(text):
    """The two documents as values."""
    scheduler, own = re.split(r"^---\n", text, flags=re.M)
    out = [CONFIGURATION_MARK]
    for name, document in (("schedulerConfiguration", scheduler), ("configuration", own)):
        lines = document.rstrip("\n").split("\n")
        first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
        out += [line + "\n" for line in lines[:first]] + [name + ":\n"] + [f"  {line}\n" if line else "\n" for line in lines[first:]]
    return "".join(out)


def generated(root):
    """{path below ROOT: text} of everything that this program writes."""
    manifests = root / "manifests"
    files = {}
    for name, source in TEMPLATES.items():
        path = f"manifests/{source}.yaml"
        files[f"{CHART}/templates/{name}.yaml"] = template((manifests / f"{source}.yaml").read_text(), path)
    values = (root / CHART / "values.yaml").read_text().partition(CONFIGURATION_MARK)
    if not values[1]:
        raise ValueError(f"{CHART}/values.yaml has no line {CONFIGURATION_MARK.strip()}")
    files[f"{CHART}/values.yaml"] = values[0] + configuration((manifests / f"{CONFIGURATION}.yaml").read_text())
    version = re.search(r"^project\(fairlead VERSION (\S+)", (root / "CMakeLists.txt").read_text(), flags=re.M)[1]
    chart = (root / CHART / "Chart.yaml").read_text()
    chart = re.sub(r"^version: .*$", f"version: {version}", chart, flags=re.M)
    files[f"{CHART}/Chart.yaml"] = re.sub(r"^appVersion: .*$", f'appVersion: "{version}"', chart, flags=re.M)
    return files


def stale(root):
    """Paths that are not as they would be written, and templates without a source."""
    files = generated(root)
    out = [path for path, text in files.items() if not (root / path).exists() or (root / path).read_text() != text]
    for path in (root / CHART / "templates").glob("*.yaml"):
        name = path.relative_to(root).as_posix()
        if name not in files and "scripts/chart.py" in path.read_text():
            out.append(name)
    return sorted(out)


def main(arguments):
    check = "--check" in arguments
    root = pathlib.Path(next((a for a in arguments if not a.startswith("--")), "."))
    differing = stale(root)
    if check:
        for path in differing:
            print(f"{path} is not what scripts/chart.py makes of manifests/: run scripts/chart.py")
        return 1 if differing else 0
    for path, text in generated(root).items():
        (root / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
