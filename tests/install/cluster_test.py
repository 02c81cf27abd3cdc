#!/usr/bin/env python3
"""What a user installs, on a real API server with strict validation: definitions and examples, plain YAML, the Helm chart
from installation to removal, and the unpacked image as the account of the manifests.

cluster_test.py ROOT BUILD
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

import oci_layout
import plane

ROOT, BUILD = pathlib.Path("."), pathlib.Path("build")
USER = 65532
STRICT = ("--server-side", "--validate=strict")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
NODE_STATUS = {"status": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"},
                          "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"},
                          "conditions": [{"type": "Ready", "status": "True"}]}}
QUEUE = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"},
         "spec": {"resources": {name: {"quota": -1, "limit": -1} for name in ("gpu", "cpu", "memory")}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"kai.scheduler/queue": "team"}},
       "spec": {"schedulerName": "fairlead", "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = plane.Plane()
        cls.addClassCleanup(cls.cluster.close)
        cls.apply("-f", ROOT / "crds")
        # Without a controller manager no namespace gets its default account, which admission wants for pods.
        cls.cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts",
                         {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})

    @classmethod
    def apply(cls, *what):
        code, out, errors = cls.cluster.kubectl("apply", *STRICT, *what)
        if code != 0:
            raise AssertionError(errors)
        return out.splitlines()

    def setUp(self):
        plane.eventually("the definitions are in force", lambda: all(
            any(c["type"] == "Established" and c["status"] == "True" for c in thing.get("status", {}).get("conditions", []))
            for thing in self.cluster.get(CRDS).body["items"]))

    def test_definitions_are_structural(self):
        things = self.cluster.get(CRDS).body["items"]
        self.assertEqual(len(things), len(list((ROOT / "crds").glob("*.yaml"))))
        for thing in things:
            bad = [c for c in thing["status"]["conditions"] if c["type"] == "NonStructuralSchema"]
            self.assertEqual(bad, [], thing["metadata"]["name"])
            for version in thing["spec"]["versions"]:
                self.assertNotIn("x-kubernetes-preserve-unknown-fields", str(version["schema"]), thing["metadata"]["name"])
                self.assertTrue(version.get("additionalPrinterColumns"), thing["metadata"]["name"])

    def test_examples_are_accepted(self):
        made = self.apply("--dry-run=server", "-f", ROOT / "crds/examples")
        documents = sum(len(plane.documents(path.read_text())) for path in (ROOT / "crds/examples").glob("*.yaml"))
        self.assertEqual(len(made), documents)

    def test_unknown_fields_and_broken_rules_are_refused(self):
        pool = yaml.safe_load((ROOT / "crds/examples/nodepool.yaml").read_text())
        topology = yaml.safe_load((ROOT / "crds/examples/topology.yaml").read_text())
        broken = []
        for thing, change, words in (
                (pool, lambda o: o["spec"].update(maxNode=1), "not declared in schema"),
                (pool, lambda o: o["spec"].update(maxNodes=-2), "maxNodes"),
                (pool, lambda o: o["spec"]["disruption"]["budgets"][1].pop("duration"), "schedule and duration must be set together"),
                (topology, lambda o: o["spec"]["levels"].reverse(), "can only be the last level"),
                (topology, lambda o: o["spec"]["levels"].append(o["spec"]["levels"][2]), "each node label may be there once"),
                (QUEUE, lambda o: o["spec"]["resources"].update(gpus={"limit": 1}), "not declared in schema")):
            copy = yaml.safe_load(yaml.safe_dump(thing))
            change(copy)
            code, _, errors = self.cluster.kubectl("apply", *STRICT, "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(copy))
            if code == 0 or words not in errors:
                broken.append(f"{thing['kind']}, {words}: {errors or 'accepted'}")
        self.assertEqual(broken, [])

    def test_columns_have_what_objects_have(self):
        self.cluster.call("POST", "/apis/scheduling.run.ai/v2/queues", QUEUE)
        code, out, errors = self.cluster.kubectl("get", "queues.scheduling.run.ai", "team")
        self.assertEqual(code, 0, errors)
        header, row = out.splitlines()
        self.assertIn("GPU QUOTA", header)
        self.assertEqual(row.split()[:1] + row.split()[-1:], ["team", "-1"])

    def test_each_folder_of_manifests_is_accepted(self):
        """A dry run needs the namespace, so the base comes first and stays."""
        self.apply("-k", ROOT / "manifests")
        for folder in ("karpenter", "kwok", "cluster-api", "provisioning-request", "scale-subresource", "guests", "gpu-sharing",
                       "admission", "capacity-apis"):
            with self.subTest(folder):
                self.assertGreater(len(self.apply("--dry-run=server", "-k", ROOT / "manifests" / folder)), 0)
        self.assertGreater(len(self.apply("--dry-run=server", "-f", ROOT / "manifests/gpu-sharing/kai-webhook-rbac.yaml")), 0)

    def test_the_chart_is_installed_upgraded_and_removed(self):
        values = ("--namespace", "scheduling", "--set", "priorityClasses.create=false")
        # Names are fixed, so the plain manifests and the chart cannot be there at once.
        self.cluster.kubectl("delete", "-k", ROOT / "manifests", "--ignore-not-found", "--wait=false")
        for name in ("fairlead", "kai-resource-reservation"):
            # No controller ends a namespace here.
            self.cluster.call("PUT", f"/api/v1/namespaces/{name}/finalize",
                              {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}})
        # The test's API server is built without a version, which the chart would refuse.
        chart = self.cluster.folder / "chart"
        shutil.copytree(ROOT / "manifests/chart", chart)
        (chart / "Chart.yaml").write_text(re.sub("^kubeVersion: .*$", "", (chart / "Chart.yaml").read_text(), flags=re.M))
        for _ in range(2):  # again, after its removal
            code, out, errors = self.cluster.helm("install", "fairlead", chart, *values, "--create-namespace")
            self.assertEqual(code, 0, errors)
            self.assertIn("schedules pods with spec.schedulerName fairlead or kai-scheduler", out)
            deployment = "/apis/apps/v1/namespaces/scheduling/deployments/fairlead"
            self.assertEqual(self.cluster.get(deployment).body["spec"]["replicas"], 2)
            code, _, errors = self.cluster.helm("upgrade", "fairlead", chart, *values, "--set", "replicas=3")
            self.assertEqual(code, 0, errors)
            self.assertEqual(self.cluster.get(deployment).body["spec"]["replicas"], 3)
            code, _, errors = self.cluster.helm("uninstall", "fairlead", "--namespace", "scheduling")
            self.assertEqual(code, 0, errors)
            self.assertEqual(self.cluster.get(deployment).status, 404)
            self.assertEqual(self.cluster.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/fairlead").status, 404)
            # What others still use stays.
            self.assertTrue(self.cluster.get("/api/v1/namespaces/kai-resource-reservation").ok)
            self.assertTrue(self.cluster.get(CRDS + "/queues.scheduling.run.ai").ok)


class ImageTest(unittest.TestCase):
    """The unpacked image against a control plane: no file of this machine is used but the kernel's."""

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("chroot needs root")
        cls.cluster = plane.Plane("--crds", str(ROOT / "crds"))
        cls.addClassCleanup(cls.cluster.close)
        scratch = tempfile.TemporaryDirectory(prefix="fairlead-root.")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name, "root")
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts/package/make_image.py", "--build", BUILD, "--output", scratch.name],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.image = oci_layout.Image(pathlib.Path(scratch.name, "fairlead.tar"))
        cls.image.unpack(cls.root)
        os.chmod(scratch.name, 0o755)
        code, _, errors = cls.cluster.kubectl("apply", *STRICT, "-k", ROOT / "manifests")
        if code != 0:
            raise AssertionError(errors)
        cls.cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts",
                         {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        # What a pod's volumes would bring.
        (cls.root / "etc/fairlead/fairlead.yaml").write_text((ROOT / "manifests/base/fairlead.yaml").read_text())
        token = cls.cluster.token_of("fairlead", "fairlead")
        (cls.root / "etc/fairlead/kubeconfig").write_text(cls.cluster.kubeconfig_of(token))

    def command(self, *arguments):
        """As the kubelet starts it: the image's user, its environment and nothing else, in its root."""
        environment = [part for part in self.image.config["config"]["Env"]]
        return ["chroot", f"--userspec={self.image.config['config']['User']}", self.root, "/usr/bin/fairlead", *arguments], dict(
            part.split("=", 1) for part in environment)

    def run_command(self, *arguments):
        command, environment = self.command(*arguments)
        environment["PATH"] += ":/usr/sbin"  # chroot's own
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def test_version(self):
        done = self.run_command("version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"fairlead {self.image.manifest['annotations']['org.opencontainers.image.version']}\n")

    def test_it_can_write_nowhere(self):
        writable = []
        for path in [self.root, *self.root.rglob("*")]:
            if path.is_symlink() or path == self.root / "tmp":
                continue
            state = path.stat()
            if state.st_mode & 0o022 or state.st_uid == USER:
                writable.append(str(path.relative_to(self.root)))
        self.assertEqual(writable, [])

    def test_it_schedules_with_the_rights_of_the_manifests(self):
        command, environment = self.command("run", "--kubeconfig", "/etc/fairlead/kubeconfig", "--config", "/etc/fairlead/fairlead.yaml",
                                            "--identity", "image", "--metrics-bind-address", f"127.0.0.1:{free_port()}")
        address = command[-1]
        environment["PATH"] += ":/usr/sbin"
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            try:
                self.cluster.make("/apis/scheduling.run.ai/v2/queues", QUEUE)
                self.cluster.make("/api/v1/nodes", NODE)
                status = self.cluster.call("PATCH", "/api/v1/nodes/n1/status", NODE_STATUS, "application/merge-patch+json")
                self.assertTrue(status.ok, status.body)
                # No controller takes the taint of a new node off.
                self.cluster.call("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": None}}, "application/merge-patch+json")
                self.cluster.make("/api/v1/namespaces/default/pods", POD)
                pod = "/api/v1/namespaces/default/pods/p"
                plane.eventually("the pod is bound", lambda: self.cluster.get(pod).body["spec"].get("nodeName") == "n1")
                self.assertEqual(get(f"http://{address}/livez")[0], 200)
                metrics = get(f"http://{address}/metrics")[1]
                self.assertIn("fairlead_leader 1", metrics)
                process.terminate()
                self.assertEqual(process.wait(40), 0)
                lease = self.cluster.get("/apis/coordination.k8s.io/v1/namespaces/fairlead/leases/fairlead").body
                self.assertEqual(lease["spec"].get("holderIdentity", ""), "", "released at the end")
            except BaseException:
                log.seek(0)
                print(log.read()[-6000:], file=sys.stderr)
                raise
            finally:
                process.kill()
                process.wait()

    def bind(self, role, namespace, account):
        self.cluster.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"test-{role}".replace(":", "-")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}]})

    def test_the_dashboard_asks_the_api_server_who_may_read(self):
        address = f"127.0.0.1:{free_port()}"
        command, environment = self.command("run", "--kubeconfig", "/etc/fairlead/kubeconfig", "--config", "/etc/fairlead/fairlead.yaml",
                                            "--identity", "page", "--dashboard-bind-address", address, "--dashboard-auth", "token")
        environment["PATH"] += ":/usr/sbin"
        data = f"http://{address}/data/snapshot"
        # Each time a token of its own: the answer to one is kept for a while.
        ask = lambda: get(data, self.cluster.token_of("default", "default"))
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            try:
                plane.eventually("the page is served", lambda: get(f"http://{address}/")[0] == 200)
                self.assertEqual(get(data)[0], 401)
                self.assertEqual(get(data, "nonsense")[0], 503, "Fairlead may not ask yet")
                status, text = ask()
                self.assertEqual(status, 503)
                self.assertIn("system:auth-delegator", text)
                self.bind("system:auth-delegator", "fairlead", "fairlead")
                status, text = plane.eventually("Fairlead may ask", lambda: (lambda said: said[0] == 403 and said)(ask()))
                self.assertIn("system:serviceaccount:default:default may not list queues", text)
                self.assertEqual(get(data, "other nonsense")[0], 401)
                self.bind("fairlead-reader", "default", "default")
                status, text = plane.eventually("the account may read", lambda: (lambda said: said[0] == 200 and said)(ask()))
                self.assertIn('"queues":[', text)
                process.terminate()
                self.assertEqual(process.wait(40), 0)
            except BaseException:
                log.seek(0)
                print(log.read()[-6000:], file=sys.stderr)
                raise
            finally:
                process.kill()
                process.wait()


def free_port():
    import socket
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


def get(url, token=None):
    """(status, text); (0, '') if nothing listens."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError:
        return 0, ""


if __name__ == "__main__":
    ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if plane.missing():
        print("skipped:", plane.missing())
        sys.exit(plane.SKIPPED)
    unittest.main(argv=sys.argv[:1])
