#!/usr/bin/env python3
"""The Debian package that scripts/package/make_deb.py makes: unpacked, run, and read.

deb_test.py ROOT BUILD
"""
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = pathlib.Path("."), pathlib.Path("build")


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def make(folder):
    code, _, errors = run(sys.executable, "-B", ROOT / "scripts/package/make_deb.py", "--build", BUILD, "--output", folder, "--epoch", 1700000000)
    if code != 0:
        raise AssertionError(errors)
    [package] = pathlib.Path(folder).glob("*.deb")
    return package


class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="fairlead-deb.")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.package = make(cls.folder / "one")
        cls.root, cls.control = cls.folder / "root", cls.folder / "control"
        for what, where in (("--extract", cls.root), ("--control", cls.control)):
            code, _, errors = run("dpkg-deb", what, cls.package, where)
            if code != 0:
                raise AssertionError(errors)
        cls.fields = dict(re.findall(r"^(\S+): (.*)$", (cls.control / "control").read_text(), flags=re.M))

    def test_the_programs_run(self):
        version = re.search(r"^project\(fairlead VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), flags=re.M)[1]
        self.assertEqual(self.fields["Version"], version)
        for name in ("fairlead", "kubectl-fairlead"):
            self.assertEqual(run(self.root / "usr/bin" / name, "--version"), (0, f"fairlead {version}\n", ""))
        self.assertTrue(os.access(self.root / "usr/bin/fairlead-gpu-index", os.X_OK))

    def test_shells_find_their_completions(self):
        for shell, path in (("bash", "bash-completion/completions/fairlead"), ("zsh", "zsh/vendor-completions/_fairlead"),
                            ("fish", "fish/vendor_completions.d/fairlead.fish")):
            code, script, _ = run(self.root / "usr/bin/fairlead", "completion", shell)
            self.assertEqual(code, 0)
            self.assertEqual((self.root / "usr/share" / path).read_text(), script)

    def test_a_second_one_has_the_same_bytes(self):
        self.assertEqual(make(self.folder / "two").read_bytes(), self.package.read_bytes())

    def test_owners_and_modes(self):
        _, out, _ = run("dpkg-deb", "--contents", self.package)
        for line in out.splitlines():
            mode, owner = line.split()[:2]
            self.assertEqual(owner, "root/root", line)
            self.assertRegex(mode, r"^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx)$", line)

    def test_what_an_administrator_edits_is_a_conffile(self):
        listed = (self.control / "conffiles").read_text().split()
        there = ["/" + p.relative_to(self.root).as_posix() for p in (self.root / "etc").rglob("*") if p.is_file()]
        self.assertEqual(sorted(listed), sorted(there))

    def test_it_depends_on_what_is_linked_and_installed(self):
        names = [part.split(" ")[0] for part in self.fields["Depends"].split(", ")]
        self.assertEqual(names, sorted(set(names)))
        for name in ("libc6", "libcurl4", "libprotobuf32", "libstdc++6"):
            self.assertIn(name, names)
        for name, least in re.findall(r"(\S+) \(>= ([^)]+)\)", self.fields["Depends"]):
            code, out, _ = run("dpkg-query", "--show", "--showformat=${Version}\n", name)
            self.assertEqual(code, 0, name)
            self.assertTrue(any(run("dpkg", "--compare-versions", there, "ge", least)[0] == 0 for there in out.split()), name)

    def test_an_update_of_the_release_satisfies_the_dependency(self):
        sys.path.insert(0, str(ROOT / "scripts/package"))
        self.addCleanup(sys.path.pop, 0)
        least_of = importlib.import_module("make_deb").least
        # Lowest and highest that the release has or will have of what was linked, and one from before it.
        for linked, low, high, before in (("7.88.1-10+deb12u15", "7.88.1-10", "7.88.1-10+deb12u16", "7.88.1-9+deb12u15"),
                                          ("3.0.19-1~deb12u2", "3.0.19-1~deb12u1", "3.0.19-1~deb12u3", "3.0.18-1~deb12u2"),
                                          ("3.21.12-3", "3.21.12-3", "3.21.12-3+deb12u1", "3.21.12-2")):
            least = least_of(linked)
            for version, satisfies in ((low, True), (linked, True), (high, True), (before, False)):
                code, _, _ = run("dpkg", "--compare-versions", version, "ge", least)
                self.assertEqual(code == 0, satisfies, f"{version} >= {least}")

    def test_the_unit_starts_what_is_there(self):
        unit = (self.root / "usr/lib/systemd/system/fairlead.service").read_text()
        values = dict(re.findall(r"^(\w+)=(.*)$", unit, flags=re.M))
        program, *arguments = values["ExecStart"].split()
        self.assertTrue((self.root / program[1:]).exists())
        flags = [a.split("=")[0] for a in arguments if a.startswith("--")]
        flags += re.findall(r"--[a-z-]+", (self.root / "etc/default/fairlead").read_text())
        _, known, _ = run(self.root / "usr/bin/fairlead", "run", "--help")
        self.assertEqual([flag for flag in flags if flag not in known], [])
        self.assertIn("$FAIRLEAD_FLAGS", arguments)
        configuration = arguments[arguments.index("--config") + 1]
        self.assertTrue((self.root / configuration[1:]).exists())
        for setting in ("DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateDevices"):
            self.assertEqual(values[setting], "yes")
        self.assertEqual((values["ProtectSystem"], values["CapabilityBoundingSet"]), ("strict", ""))
        if shutil.which("systemd-analyze"):
            fixed = self.folder / "fairlead.service"
            fixed.write_text(unit.replace("/usr/bin/fairlead", str(self.root / "usr/bin/fairlead")).replace("Documentation=man:fairlead(1)\n", ""))
            code, out, errors = run("systemd-analyze", "verify", fixed)
            self.assertEqual(code, 0, out + errors)

    def test_manifests_and_chart_need_no_other_file(self):
        share = self.root / "usr/share/fairlead"
        self.assertEqual([p for p in share.rglob("*") if p.is_symlink()], [])
        self.assertTrue((share / "manifests/chart/crds/queue.yaml").exists())
        self.assertTrue((share / "manifests/base/kustomization.yaml").exists())

    def test_maintainer_scripts_are_shell(self):
        for name in ("postinst", "prerm", "postrm"):
            self.assertEqual(run("sh", "-n", self.control / name), (0, "", ""))
            # Where systemd does not run, they do nothing. postinst with an old version would restart the service.
            if not pathlib.Path("/run/systemd/system").exists():
                self.assertEqual(run("sh", self.control / name, {"postinst": "configure"}.get(name, "remove")), (0, "", ""))


if __name__ == "__main__":
    ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
