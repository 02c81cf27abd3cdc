#!/usr/bin/env python3
"""Compares the rights in manifests/ with the requests that the programs made in all integration tests, by the API server's
own audit log: none is missing, and none is there that nothing needs.

rights_test.py ROOT AUDIT-LOG

FAIRLEAD_AUDIT_LOG makes fairlead_integration write the log; ctest runs it before.
"""
import pathlib
import sys
import unittest

import yaml

import plane
import rights

ROOT, LOG = pathlib.Path("."), pathlib.Path("build/tests/audit.log")
BASE = ("base/rbac", "base/gpu-reservation", "gpu-sharing/kai-webhook-rbac")
GROUPING = ("grouping/rbac",)
ADMISSION = ("admission/component/rbac",)
PROVIDERS = ("cluster-api/rbac", "karpenter/rbac", "kwok/rbac", "provisioning-request/rbac", "scale-subresource/rbac")

# Rights that the tests need not show, each with the place of the call.
READ_AFTER_REFUSAL = "PatchProtocol (kube/write) reads the object again after a 422"
NO_STREAMED_LIST = "Reflector (kube/watch) lists where the server has no streamed lists, and for kinds that it lacks"
WITH_CONSTRAINTS = "read only if a profile has default constraints (model::Kind, SourceOptions::unread)"
OF_THE_SERVER = "no request has it; the API server asks for it beside another one"
LOST_ANSWER = "read after a lost answer or a conflict"
OF_USERS = "the kinds of a user's own; the tests have others"
UNSEEN = {
    ("get", "", "pods"): LOST_ANSWER,
    ("get", "scheduling.run.ai", "podgroups"): READ_AFTER_REFUSAL,
    ("get", "scheduling.run.ai", "queues"): READ_AFTER_REFUSAL,
    ("get", "scheduling.k8s.io", "podgroups"): READ_AFTER_REFUSAL,
    ("get", "fairlead.dev", "nodepools"): READ_AFTER_REFUSAL,
    ("get", "fairlead.dev", "noderequests"): READ_AFTER_REFUSAL,
    ("get", "autoscaling.x-k8s.io", "capacitybuffers"): READ_AFTER_REFUSAL,
    ("get", "autoscaling.x-k8s.io", "provisioningrequests"): READ_AFTER_REFUSAL,
    ("get", "resource.k8s.io", "resourceclaims"): LOST_ANSWER,
    ("list", "", "podtemplates"): NO_STREAMED_LIST,
    ("list", "autoscaling.x-k8s.io", "capacitybuffers"): NO_STREAMED_LIST,
    ("list", "autoscaling.x-k8s.io", "provisioningrequests"): NO_STREAMED_LIST,
    ("list", "topology.node.k8s.io", "noderesourcetopologies"): "read only if a profile has the plugin Numa",
    ("watch", "topology.node.k8s.io", "noderesourcetopologies"): "read only if a profile has the plugin Numa",
    ("list", "", "services"): WITH_CONSTRAINTS,
    ("watch", "", "services"): WITH_CONSTRAINTS,
    ("list", "", "replicationcontrollers"): WITH_CONSTRAINTS,
    ("watch", "", "replicationcontrollers"): WITH_CONSTRAINTS,
    ("list", "apps", "replicasets"): WITH_CONSTRAINTS,
    ("watch", "apps", "replicasets"): WITH_CONSTRAINTS,
    ("list", "apps", "statefulsets"): WITH_CONSTRAINTS,
    ("watch", "apps", "statefulsets"): WITH_CONSTRAINTS,
    ("create", "", "configmaps"): OF_THE_SERVER + ": server-side apply of one that is not there",
    ("patch", "resource.k8s.io", "resourceclaims/binding"): OF_THE_SERVER + ": Kubernetes 1.36, with resourceclaims/status",
    ("delete", "cluster.x-k8s.io", "machines"): "a Machine that its MachineSet keeps (cluster_api_writes.cc)",
    ("get", "cluster.x-k8s.io", "machinepools"): "groups without MachineDeployments",
    ("patch", "cluster.x-k8s.io", "machinepools"): "groups without MachineDeployments",
    ("get", "infrastructure.cluster.x-k8s.io", "*"): "machine templates of any infrastructure",
    ("patch", "", "secrets"): "the certificate of the webhooks is renewed, 60 days after it was made (webhook_identity.cc)",
    ("use", "scheduling.run.ai", "queues"): OF_THE_SERVER + ": a SubjectAccessReview about PodGroups that Fairlead makes",
    ("get", "machine.openshift.io", "machines"): OF_USERS,
    ("patch", "machine.openshift.io", "machines"): OF_USERS,
    ("get", "machine.openshift.io", "machinesets"): OF_USERS,
    ("get", "machine.openshift.io", "machinesets/scale"): OF_USERS,
    ("patch", "machine.openshift.io", "machinesets/scale"): OF_USERS,
}


# What a test grants to the program itself: the kind that it adds to the table of grouping.
GRANTED_BY_TESTS = {("get", "grouping.example.com", "simulations")}
# A shard has objects of its own, whose names are added where it is installed (chart_test.py, docs/shards.md): their name in
# the tests, and without a shard.
OF_SHARDS = {"fairlead-a": "fairlead", "fairlead-a-usage": "fairlead-usage"}
# Owners of pods that the table knows by labels: a driver of Spark has one of these.
OWNERS_BY_LABEL = {"sparkoperator.k8s.io"}


def objects(names):
    return [thing for name in names for thing in plane.documents((ROOT / f"manifests/{name}.yaml").read_text())]


def not_covered(used, granted):
    """Requests without a right, or by a name that the right does not have."""
    out = []
    for key, targets in sorted(used.items()):
        verb, group, _ = key
        grants = granted.get(key, []) + granted.get((verb, group, "*"), [])
        for namespace, name in sorted(targets):
            # The Lease and the usage of queues are in the namespace that the tests configure.
            name = OF_SHARDS.get(name, name)
            if not any(not names or verb == "create" or name in names for _, names in grants):
                out.append(f"{' '.join(key)}: {namespace}/{name}")
    return out


class RightsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with LOG.open() as lines:
            cls.used = {key: targets for key, targets in rights.used(lines).items() if key not in GRANTED_BY_TESTS}
        cls.base = rights.granted(objects(BASE))
        cls.all = rights.granted(objects(BASE + GROUPING + ADMISSION + PROVIDERS))

    def test_none_is_missing(self):
        self.assertEqual(not_covered(self.used, self.all), [])

    def test_none_is_there_that_nothing_needs(self):
        needed = set(self.used) | set(UNSEEN)
        idle = set(self.base) - needed
        for provider in PROVIDERS:
            rules = set(rights.granted(objects([provider])))
            # Karpenter and Cluster API are not on every machine; then their tests skip.
            if rules & set(self.used) or provider.startswith("kwok"):
                idle |= rules - needed
        self.assertEqual(sorted(idle), [])

    def test_grouping_reads_and_suspends_kinds_of_its_table_alone(self):
        table = yaml.safe_load((ROOT / "grouping/kinds.yaml").read_text())["kinds"]
        groups = {row["group"] for row in table} | {row["from"]["apiVersion"].partition("/")[0] for row in table if "from" in row}
        groups |= OWNERS_BY_LABEL
        suspended = {row["group"] for row in table if row.get("suspend")}
        idle = [key for key in rights.granted(objects(GROUPING)) if key not in self.used
                and not (key[0] == "get" and key[1] in groups - {""}) and not (key[0] in ("list", "patch") and key[1] in suspended)]
        self.assertEqual(idle, [])

    def test_admission_has_what_it_needs_alone(self):
        self.assertEqual(sorted(set(rights.granted(objects(ADMISSION))) - set(self.used) - set(UNSEEN)), [])

    def test_of_all_secrets_only_the_certificate_is_read(self):
        grants = {key: where for key, where in self.all.items() if key[2] == "secrets"}
        self.assertEqual(grants, {("create", "", "secrets"): [("fairlead", ())],
                                  ("get", "", "secrets"): [("fairlead", ("fairlead-webhook",))],
                                  ("patch", "", "secrets"): [("fairlead", ("fairlead-webhook",))]})
        self.assertEqual([key for key in self.base if key[2] == "secrets"], [])

    def test_what_needs_no_proof_is_granted(self):
        self.assertEqual(sorted(set(UNSEEN) - set(self.all)), [])

    def test_pods_are_made_and_deleted_in_one_namespace_only(self):
        for verb in ("create", "delete"):
            self.assertEqual(self.all[(verb, "", "pods")], [("kai-resource-reservation", ())])
            self.assertEqual({namespace for namespace, _ in self.used[(verb, "", "pods")]}, {"kai-resource-reservation"})

    def test_most_rights_are_shown_to_be_needed(self):
        self.assertGreater(len(set(self.base) & set(self.used)), 75)

    def test_no_right_is_a_wildcard_or_an_escalation(self):
        for verb, group, resource in self.all:
            self.assertNotIn("*", (verb, group))
            self.assertTrue(resource != "*" or group == "infrastructure.cluster.x-k8s.io", (verb, group, resource))
            self.assertNotIn(verb, ("impersonate", "escalate", "bind", "deletecollection", "update"))
            self.assertNotIn(resource, ("serviceaccounts/token", "pods/exec"))


class RulesTest(unittest.TestCase):
    """Of the comparison itself."""

    GRANTED = {("get", "", "pods"): [("", ())], ("patch", "", "leases"): [("a", ("fairlead",))]}

    def test_a_missing_right_is_found(self):
        self.assertEqual(not_covered({("get", "", "pods"): {("a", "x")}}, self.GRANTED), [])
        self.assertEqual(not_covered({("delete", "", "pods"): {("a", "x")}}, self.GRANTED), ["delete  pods: a/x"])

    def test_another_name_is_found(self):
        self.assertEqual(not_covered({("patch", "", "leases"): {("a", "fairlead")}}, self.GRANTED), [])
        self.assertEqual(not_covered({("patch", "", "leases"): {("a", "other")}}, self.GRANTED), ["patch  leases: a/other"])

    def test_requests_of_others_do_not_count(self):
        line = '{"userAgent":"%s","verb":"get","objectRef":{"resource":"pods","subresource":"status","namespace":"a","name":"x"}}'
        self.assertEqual(rights.used([line % "kubectl/1"]), {})
        self.assertEqual(rights.used([line % "fairlead/1"]), {("get", "", "pods/status"): {("a", "x")}})


if __name__ == "__main__":
    ROOT, LOG = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if not LOG.exists():
        print("skipped: the integration tests have not run here, so there is no audit log")
        sys.exit(plane.SKIPPED)
    unittest.main(argv=sys.argv[:1])
