#!/usr/bin/env python3
"""Files of the installation that need no cluster: alerts and dashboard against docs/metrics.md, the chart against its
sources, its values against their schema.

monitoring_test.py ROOT
"""
import json
import pathlib
import re
import sys
import unittest

import yaml

ROOT = pathlib.Path(".")
# A histogram's own series, by the suffix.
SERIES = ("_bucket", "_sum", "_count")
# Labels that Prometheus, and not the program, gives; and those of histograms.
OF_TARGETS = {"job", "instance", "pod", "namespace", "le"}


def documented():
    """{metric: (type, labels)} of docs/metrics.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", (ROOT / "docs/metrics.md").read_text(), flags=re.M)
    return {name: (kind, {label.strip() for label in labels.split(",") if label.strip()}) for name, kind, labels in rows}


def metrics_of(expression):
    """[(metric, labels)] that a PromQL expression selects or groups by; grouping labels count for each metric in it."""
    grouping = {label.strip() for part in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expression) for label in part.split(",")}
    out = []
    for name, matchers in re.findall(r"\b((?:fairlead|scheduler|process)_\w+)(?:\{([^}]*)\})?", expression):
        out.append((name, {m for m in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers or "")} | {g for g in grouping if g}))
    return out


def problems(expression, known):
    out = []
    for name, labels in metrics_of(expression):
        base = next((name[: -len(s)] for s in SERIES if name.endswith(s) and known.get(name[: -len(s)], ("",))[0] == "histogram"), name)
        if base not in known:
            out.append(f"{name} is not in docs/metrics.md")
            continue
        if known[base][0] == "histogram" and base == name:
            out.append(f"{name} is a histogram")
        unknown = labels - known[base][1] - OF_TARGETS
        if unknown:
            out.append(f"{name} has no label {', '.join(sorted(unknown))}")
    if not metrics_of(expression):
        out.append(f"no metric in {expression}")
    return out


def rules():
    thing = yaml.safe_load((ROOT / "manifests/monitoring/prometheusrule.yaml").read_text())
    return [rule for group in thing["spec"]["groups"] for rule in group["rules"]]


def dashboard():
    return json.loads((ROOT / "manifests/monitoring/dashboard.json").read_text())


class MonitoringTest(unittest.TestCase):
    def test_alerts_use_metrics_that_exist(self):
        known = documented()
        self.assertGreater(len(known), 50)
        found = {rule["alert"]: problems(rule["expr"], known) for rule in rules()}
        self.assertEqual({alert: p for alert, p in found.items() if p}, {})

    def test_alerts_tell_what_to_do(self):
        names = [rule["alert"] for rule in rules()]
        self.assertEqual(len(names), len(set(names)))
        for rule in rules():
            self.assertRegex(rule["alert"], "^Fairlead[A-Z]")
            self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
            self.assertEqual(set(rule["annotations"]), {"summary", "description", "runbook_url"})
            # What a text names is there after the expression was computed.
            used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
            expression = rule["expr"]
            if re.search(r"\b(sum|max|min|count|histogram_quantile)\b", expression):
                kept = {label.strip() for part in re.findall(r"by \(([^)]*)\)", expression) for label in part.split(",")}
                self.assertLessEqual(used, kept, rule["alert"])
            else:
                self.assertLessEqual(used, OF_TARGETS | documented()[metrics_of(expression)[0][0]][1], rule["alert"])

    def test_each_alert_has_its_runbook(self):
        page = (ROOT / "docs/runbooks.md").read_text()
        names = [rule["alert"] for rule in rules()]
        self.assertEqual(re.findall(r"^## (.*)$", page, flags=re.M), names)
        for name, text in zip(names, re.split(r"^## .*$", page, flags=re.M)[1:]):
            self.assertEqual(re.findall(r"^\*\*(Look|Do|False alarm)\*\*|\*\*(Means|Users notice)\*\*", text, flags=re.M),
                             [("", "Means"), ("", "Users notice"), ("Look", ""), ("Do", ""), ("False alarm", "")], name)
        for rule in rules():
            self.assertEqual(rule["annotations"]["runbook_url"], f"https://fairlead.dev/docs/runbooks.md#{rule['alert'].lower()}")
        # The chart's default is the same page.
        values = yaml.safe_load((ROOT / "manifests/chart/values.yaml").read_text())
        self.assertEqual(values["monitoring"]["prometheusRule"]["runbooks"], "https://fairlead.dev/docs/runbooks.md")

    def test_panels_use_metrics_that_exist(self):
        known = documented()
        expressions = [t["expr"] for panel in dashboard()["panels"] for t in panel.get("targets", [])]
        self.assertGreater(len(expressions), 25)
        self.assertEqual([p for e in expressions for p in problems(e, known)], [])
        query = next(v for v in dashboard()["templating"]["list"] if v["name"] == "queue")["query"]["query"]
        self.assertEqual(problems(query, known), [])

    def test_panels_do_not_overlap(self):
        taken = set()
        ids = [panel["id"] for panel in dashboard()["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in dashboard()["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24)
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_what_is_scraped_is_what_the_deployment_serves(self):
        def load(name):
            return yaml.safe_load((ROOT / f"manifests/{name}.yaml").read_text())
        service, monitor, deployment = load("monitoring/service"), load("monitoring/servicemonitor"), load("base/deployment")
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
        self.assertLessEqual(service["spec"]["selector"].items(), deployment["spec"]["template"]["metadata"]["labels"].items())
        self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(ports[service["spec"]["ports"][0]["targetPort"]], 8080)
        policy = load("base/networkpolicy")
        self.assertEqual([port["port"] for port in policy["spec"]["ingress"][0]["ports"]], [8080])
        # Other Services of ours must not be scraped too.
        self.assertFalse(monitor["spec"]["selector"]["matchLabels"].items() <= load("guests/service")["metadata"]["labels"].items())


class ChartTest(unittest.TestCase):
    def test_the_chart_is_what_the_manifests_make_of_it(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import chart
        self.assertEqual(chart.stale(ROOT), [], "run scripts/chart.py")

    def test_every_manifest_is_in_the_chart(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import chart
        sources = {p.relative_to(ROOT / "manifests").with_suffix("").as_posix() for p in (ROOT / "manifests").glob("*/*.yaml")
                   if p.parent.name != "chart" and p.stem not in ("kustomization", "fairlead")}
        # Helm makes the namespace; these definitions are other projects'.
        missing = sources - set(chart.TEMPLATES.values()) - {"base/namespace"}
        self.assertEqual({s for s in missing if not s.startswith("capacity-apis/")}, set())
        there = {p.name for p in (ROOT / "manifests/chart/crds").iterdir()}
        self.assertEqual(there, {p.name for p in (ROOT / "crds").glob("*.yaml")})

    def test_the_schema_knows_every_value(self):
        schema = json.loads((ROOT / "manifests/chart/values.schema.json").read_text())
        values = yaml.safe_load((ROOT / "manifests/chart/values.yaml").read_text())
        self.assertEqual(set(schema["properties"]) - {"global"}, set(values))

    def test_comments_for_the_chart(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import chart
        text = "# chart-if: .Values.on\na: 1 # chart: {{ .Values.a }}\n# chart: b: 2\nc: '{{ $x }}'\nd: {namespace: fairlead}\n"
        self.assertEqual(chart.template(text, "m").split("\n")[1:], [
            "{{- if .Values.on }}", "---", "a: {{ .Values.a }}", "b: 2", "c: '{{ \"{{\" }} $x }}'",
            "d: {namespace: {{ .Release.Namespace | quote }}}", "{{- end }}", ""])
        with self.assertRaisesRegex(ValueError, "not understood"):
            chart.template("- x # chart: y\n", "m")


class RulesTest(unittest.TestCase):
    """Of the comparison itself."""

    KNOWN = {"fairlead_a": ("gauge", {"queue"}), "fairlead_h": ("histogram", set())}

    def test_problems_are_found(self):
        self.assertEqual(problems('sum by (queue) (fairlead_a{queue="x"})', self.KNOWN), [])
        self.assertEqual(problems("rate(fairlead_h_bucket[5m])", self.KNOWN), [])
        self.assertEqual(problems("fairlead_b", self.KNOWN), ["fairlead_b is not in docs/metrics.md"])
        self.assertEqual(problems('fairlead_a{kind="x"}', self.KNOWN), ["fairlead_a has no label kind"])
        self.assertEqual(problems("sum by (kind) (fairlead_a)", self.KNOWN), ["fairlead_a has no label kind"])
        self.assertEqual(problems("fairlead_h", self.KNOWN), ["fairlead_h is a histogram"])
        self.assertEqual(problems("up", self.KNOWN), ["no metric in up"])


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1])
