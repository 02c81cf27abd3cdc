#!/usr/bin/env python3
"""The Helm chart against the kustomize manifests: what helm renders is what kustomize renders, for the base and for each
provider; values are checked; every switch does what its name says.

chart_test.py ROOT
"""
import pathlib
import re
import sys
import tempfile
import unittest

import yaml

import plane

ROOT = pathlib.Path(".")
NAMESPACE = "fairlead"


def version():
    return re.search(r"^project\(fairlead VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), flags=re.M)[1]


def render(values=None, namespace=NAMESPACE):
    """(exit code, {key: object}, errors) of `helm template`."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values or {}, file)
        file.flush()
        code, out, errors = plane.tool("helm", "template", "fairlead", ROOT / "manifests/chart", "--namespace", namespace,
                                       "--values", file.name, "--kube-version", "1.36.0")
    things = plane.documents(out) if code == 0 else []
    return code, {plane.key(thing): thing for thing in things}, errors


def kustomize(*folders):
    things = {}
    for folder in folders:
        code, out, errors = plane.tool("kubectl", "kustomize", ROOT / "manifests" / folder)
        if code != 0:
            raise AssertionError(errors)
        things.update((plane.key(thing), thing) for thing in plane.documents(out))
    return things


def configuration(things):
    """(key of the ConfigMap, the documents in it)."""
    found = next(k for k in things if k[0] == "ConfigMap" and k[2].startswith("fairlead-configuration"))
    return found, plane.documents(things[found]["data"]["fairlead.yaml"])


def folded(value):
    """Without the white space by which kustomize and helm fold long lines."""
    if isinstance(value, dict):
        return {key: folded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [folded(part) for part in value]
    return re.sub(r"\s+", " ", value) if isinstance(value, str) else value


def comparable(things, chart):
    """Without what differs on purpose: the name of the ConfigMap (kustomize adds a hash, the chart a checksum of the pods'
    template), the image's tag, Helm's annotations, and the namespace, which Helm makes."""
    things = {k: yaml.safe_load(yaml.safe_dump(v)) for k, v in things.items() if k != ("Namespace", "", NAMESPACE)}
    found, documents = configuration(things)
    del things[found]
    # The first document of the base has its kind alone; providers' files lack it.
    documents = [d for d in documents if d["kind"] == "FairleadConfiguration"]
    documents[0].setdefault("gpuSharing", {"image": "fairlead"})
    deployment = things[("Deployment", NAMESPACE, "fairlead")]["spec"]["template"]
    pod = deployment["spec"]
    if chart:
        image = f"fairlead:{version()}"
        assert pod["containers"][0]["image"] == image and documents[0]["gpuSharing"]["image"] == image
        assert pod["containers"][0].pop("imagePullPolicy") == "IfNotPresent"
        assert re.fullmatch("[0-9a-f]{64}", deployment["metadata"]["annotations"].pop("checksum/configuration"))
        pod["containers"][0]["image"] = documents[0]["gpuSharing"]["image"] = "fairlead"
        for kind, _, name in things:
            if kind in ("PriorityClass", "Namespace"):
                annotations = things[(kind, "", name)]["metadata"].pop("annotations")
                assert annotations == {"helm.sh/resource-policy": "keep"}, annotations
    pod["volumes"][0]["configMap"]["name"] = "fairlead-configuration"
    things["configuration"] = documents
    return things


class ChartTest(unittest.TestCase):
    maxDiff = 4000

    def assert_like(self, values, *folders):
        code, things, errors = render(values)
        self.assertEqual((code, errors), (0, ""))
        theirs, ours = comparable(kustomize(*folders), False), comparable(things, True)
        self.assertEqual(sorted(map(str, ours)), sorted(map(str, theirs)))
        for name, thing in theirs.items():
            self.assertEqual(folded(ours[name]), folded(thing), name)

    def test_the_default_is_the_base(self):
        self.assert_like({}, ".")

    def test_each_provider_has_its_rights(self):
        for provider in ("karpenter", "kwok", "cluster-api", "provisioning-request", "scale-subresource"):
            with self.subTest(provider):
                own = yaml.safe_load((ROOT / f"manifests/{provider}/fairlead.yaml").read_text())
                self.assert_like({"configuration": own}, provider)

    def test_grouping_has_its_rights(self):
        own = yaml.safe_load((ROOT / "manifests/grouping/fairlead.yaml").read_text())
        self.assert_like({"configuration": own}, "grouping")
        for off in ({}, {"grouping": {}}, {"grouping": {"enabled": False}}):
            _, things, _ = render({"configuration": off})
            self.assertEqual([k for k in things if "grouping" in k[2]], [], off)

    def test_a_provider_of_a_hook_that_is_off_has_no_rights(self):
        _, things, _ = render({"configuration": {"hook": {"enabled": False, "provider": "karpenter"}}})
        self.assertEqual([k for k in things if "karpenter" in k[2]], [])

    def test_shards_have_flags_and_rights(self):
        code, things, errors = render({"shards": ["", "gpu-a"]})
        self.assertEqual(code, 0, errors)
        container = things[("Deployment", NAMESPACE, "fairlead")]["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["args"][1:], ["--partition-label-value=", "--partition-label-value=gpu-a"])
        rules = things[("Role", NAMESPACE, "fairlead-leader-election")]["rules"]
        named = {rule["resources"][0]: rule["resourceNames"] for rule in rules if "resourceNames" in rule}
        self.assertEqual(named, {"leases": ["fairlead", "fairlead-gpu-a"], "configmaps": ["fairlead-usage", "fairlead-gpu-a-usage"]})

    def test_monitoring(self):
        on = {"enabled": True}
        self.assert_like({"monitoring": {"serviceMonitor": on, "prometheusRule": on, "dashboard": on}}, ".", "monitoring")

    def test_guests(self):
        self.assert_like({"guests": {"enabled": True}}, ".", "guests")

    def test_admission(self):
        self.assert_like({"admission": {"enabled": True}}, "admission")
        _, things, _ = render({})
        self.assertEqual([k for k in things if "webhook" in k[0].lower() + k[2] or "admission" in k[2]], [])

    def test_admission_with_a_certificate_of_others(self):
        values = {"admission": {"enabled": True, "certificateSecret": "web", "annotations": {"a/b": "c"}, "failurePolicy": "Fail"},
                  "configuration": {"schedulerNames": ["own"], "guests": {"schedulerNames": ["guest"]}}}
        code, things, errors = render(values)
        self.assertEqual((code, errors), (0, ""))
        pod = things[("Deployment", NAMESPACE, "fairlead")]["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["args"], ["--metrics-bind-address=:8080", "--webhook-bind-address=:8443",
                                                        "--webhook-certificate-dir=/etc/fairlead-webhook"])
        self.assertIn({"name": "webhook-certificate", "secret": {"secretName": "web"}}, pod["volumes"])
        self.assertIn({"name": "webhook-certificate", "mountPath": "/etc/fairlead-webhook", "readOnly": True},
                      pod["containers"][0]["volumeMounts"])
        self.assertEqual([k for k in things if k[2].startswith("fairlead-webhook-")], [])  # rights to write it
        validating = things[("ValidatingWebhookConfiguration", "", "fairlead")]
        self.assertEqual(validating["metadata"]["annotations"], {"a/b": "c"})
        objects, pods, owners = validating["webhooks"]
        self.assertEqual([webhook["failurePolicy"] for webhook in (objects, pods, owners)], ["Fail", "Ignore", "Ignore"])
        self.assertIn('in ["own","guest"]', pods["matchConditions"][0]["expression"])
        mutating = things[("MutatingWebhookConfiguration", "", "fairlead")]["webhooks"][0]
        self.assertIn('in ["own"]', mutating["matchConditions"][0]["expression"])

    def test_gpu_sharing_by_policies(self):
        self.assert_like({"gpuSharing": {"environment": "policy"}}, ".", "gpu-sharing")
        _, things, _ = render({"gpuSharing": {"environment": "policy"}, "configuration": {"schedulerNames": ["other"]}})
        policy = things[("MutatingAdmissionPolicy", "", "gpu-sharing.fairlead.dev")]
        self.assertIn('in ["other"]', policy["spec"]["matchConditions"][0]["expression"])

    def test_every_namespaced_object_follows_the_release(self):
        on = {"enabled": True}
        values = {"guests": on, "admission": on, "monitoring": {"serviceMonitor": on, "prometheusRule": on, "dashboard": on},
                  "configuration": {"hook": {"enabled": True, "provider": "karpenter"}}}
        _, things, _ = render(values, namespace="123")  # looks like a number
        self.assertEqual({k[1] for k in things} - {""}, {"123", "kai-resource-reservation", "default"})
        text = yaml.safe_dump(list(things.values()))
        self.assertNotRegex(text, r"namespace: fairlead\b")
        _, documents = configuration(things)
        self.assertEqual(documents[-1]["leaderElection"]["resourceNamespace"], "123")
        for thing in things.values():
            if thing["kind"] == "FlowSchema":
                subject = thing["spec"]["rules"][0]["subjects"][0]["serviceAccount"]
                self.assertEqual(subject, {"name": "fairlead", "namespace": "123"})

    def test_what_is_switched_off_is_not_there(self):
        off = {"create": False}
        _, things, _ = render({"replicas": 1, "flowSchemas": off, "priorityClasses": off, "readerRoles": off,
                               "gpuReservation": {"createNamespace": False}, "networkPolicy": {"enabled": False}})
        kinds = {k[0] for k in things}
        self.assertEqual(kinds & {"FlowSchema", "PriorityClass", "PodDisruptionBudget", "NetworkPolicy", "Namespace"}, set())
        self.assertNotIn(("ClusterRole", "", "fairlead-reader"), things)

    def test_the_pods_get_what_the_values_say(self):
        values = {"image": {"repository": "registry.example/fairlead", "digest": "sha256:" + "a" * 64},
                  "imagePullSecrets": [{"name": "pull"}], "nodeSelector": {"pool": "system"},
                  "tolerations": [{"key": "x", "operator": "Exists"}], "affinity": {"nodeAffinity": {}},
                  "podAnnotations": {"a/b": "c"}, "extraArgs": ["--log-level=debug"],
                  "extraVolumes": [{"name": "certificates", "secret": {"secretName": "s"}}],
                  "extraVolumeMounts": [{"name": "certificates", "mountPath": "/certificates"}],
                  "extraRules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}],
                  "networkPolicy": {"egress": [{"ports": [{"port": 443}]}]}}
        code, things, errors = render(values)
        self.assertEqual((code, errors), (0, ""))
        template = things[("Deployment", NAMESPACE, "fairlead")]["spec"]["template"]
        pod, container = template["spec"], template["spec"]["containers"][0]
        image = "registry.example/fairlead@sha256:" + "a" * 64
        self.assertEqual(container["image"], image)
        self.assertEqual(configuration(things)[1][-1]["gpuSharing"]["image"], image)
        for field in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity"):
            self.assertEqual(pod[field], values[field])
        self.assertEqual(template["metadata"]["annotations"]["a/b"], "c")
        self.assertEqual(container["args"], ["--metrics-bind-address=:8080", "--log-level=debug"])
        self.assertIn(values["extraVolumes"][0], pod["volumes"])
        self.assertIn(values["extraVolumeMounts"][0], container["volumeMounts"])
        self.assertEqual(things[("ClusterRole", "", "fairlead-extra")]["rules"], values["extraRules"])
        policy = things[("NetworkPolicy", NAMESPACE, "fairlead")]["spec"]
        self.assertEqual((policy["policyTypes"], policy["egress"]), (["Ingress", "Egress"], values["networkPolicy"]["egress"]))

    def test_another_configuration_restarts_the_pods(self):
        def checksum(values):
            template = render(values)[1][("Deployment", NAMESPACE, "fairlead")]["spec"]["template"]
            return template["metadata"]["annotations"]["checksum/configuration"]
        self.assertEqual(checksum({}), checksum({"replicas": 3}))
        self.assertNotEqual(checksum({}), checksum({"configuration": {"staleAfter": "90s"}}))

    def test_wrong_values_are_refused(self):
        for values, words in (({"replica": 2}, "replica"), ({"replicas": 0}, "replicas"), ({"replicas": "two"}, "replicas"), ({"shards": ["a b"]}, "shards"), ({"shards": ["a", "a"]}, "shards"),
                              ({"image": {"digest": "sha256:1"}}, "digest"), ({"gpuSharing": {"environment": "webhook"}}, "environment"),
                              ({"configuration": {"schedulerNames": []}}, "schedulerNames"), ({"networkPolicy": {"metricsFrom": []}}, "metricsFrom"),
                              ({"admission": {"failurePolicy": "Never"}}, "failurePolicy"), ({"admission": {"certificateSecret": "a b"}}, "certificateSecret")):
            with self.subTest(str(values)):
                code, _, errors = render(values)
                self.assertNotEqual(code, 0)
                self.assertIn(words, errors)

    def test_an_old_server_is_refused(self):
        code, _, errors = plane.tool("helm", "template", "fairlead", ROOT / "manifests/chart", "--kube-version", "1.28.0")
        self.assertNotEqual(code, 0)
        self.assertIn("chart requires kubeVersion", errors)

    def test_lint(self):
        code, out, _ = plane.tool("helm", "lint", "--strict", ROOT / "manifests/chart")
        self.assertEqual(code, 0, out)

    def test_the_package_needs_no_other_file(self):
        with tempfile.TemporaryDirectory() as folder:
            code, out, errors = plane.tool("helm", "package", ROOT / "manifests/chart", "--destination", folder)
            self.assertEqual(code, 0, errors)
            package = next(pathlib.Path(folder).glob("*.tgz"))
            self.assertEqual(package.name, f"fairlead-{version()}.tgz")
            code, out, errors = plane.tool("helm", "show", "crds", package)
            self.assertEqual(code, 0, errors)
            names = {thing["metadata"]["name"] for thing in plane.documents(out)}
        expected = {yaml.safe_load(path.read_text())["metadata"]["name"] for path in (ROOT / "crds").glob("*.yaml")}
        self.assertEqual(names, expected)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv[1]).resolve()
    if plane.missing():
        print("skipped:", plane.missing())
        sys.exit(plane.SKIPPED)
    unittest.main(argv=sys.argv[:1])
