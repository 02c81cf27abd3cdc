#!/usr/bin/env python3
"""Tests of count_tests.py: what ctest wrote in, what is counted out."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import count_tests

GOOGLE = """[==========] {all} tests from 3 test suites ran. (3 ms total)
[  PASSED  ] {passed} tests.
{rest}"""


class CountTest(unittest.TestCase):
    def run_on(self, *cases, broken=0):
        """(exit code, last line) for these <testcase> elements."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.xml"
            path.write_text("<testsuite>" + "".join(cases) + "</testsuite>")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = count_tests.main(["--broken", str(broken), str(path)])
        return code, out.getvalue().splitlines()[-1]

    def case(self, status, output, more=""):
        return f'<testcase name="x" status="{status}">{more}<system-out>{output}</system-out></testcase>'

    def test_cases_of_googletest(self):
        output = GOOGLE.format(all=7, passed=5, rest="[  SKIPPED ] 2 tests, listed below:\n")
        self.assertEqual(self.run_on(self.case("run", output)), (0, "5 passed, 0 failed, 2 skipped"))

    def test_failed_cases(self):
        output = GOOGLE.format(all=7, passed=5, rest="[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.B\n")
        self.assertEqual(self.run_on(self.case("fail", output)), (1, "5 passed, 2 failed, 0 skipped"))

    def test_all_passed_but_the_program_failed(self):
        output = GOOGLE.format(all=5, passed=5, rest="==1==ERROR: LeakSanitizer: detected memory leaks")
        self.assertEqual(self.run_on(self.case("fail", output)), (1, "5 passed, 1 failed, 0 skipped"))

    def test_a_crash_in_the_middle(self):
        self.assertEqual(self.run_on(self.case("fail", "[ RUN      ] A.B")), (1, "0 passed, 1 failed, 0 skipped"))

    def test_the_plain_line_and_a_program_that_says_nothing(self):
        cases = self.case("run", "99 passed, 0 failed"), self.case("run", "all is well")
        self.assertEqual(self.run_on(*cases), (0, "100 passed, 0 failed, 0 skipped"))

    def test_skipped_as_a_whole_and_not_there_are_different(self):
        skipped = self.case("notrun", "", '<skipped message="SKIP_RETURN_CODE=77"/>')
        absent = self.case("notrun", "Unable to find executable", '<skipped message=""/>')
        self.assertEqual(self.run_on(skipped, self.case("run", "")), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertEqual(self.run_on(absent, self.case("run", "")), (1, "1 passed, 1 failed, 0 skipped"))

    def test_what_did_not_build_and_nothing_at_all(self):
        self.assertEqual(self.run_on(self.case("run", ""), broken=2), (1, "1 passed, 2 failed, 0 skipped"))
        self.assertEqual(self.run_on(), (1, "0 passed, 0 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
