#!/usr/bin/env python3
"""count_tests.py [--broken N] FILE...: sums the test cases of ctest's JUnit files.

A ctest entry is one program. What it says of its cases counts: GoogleTest's closing lines, unittest's, or a line
"N passed, N failed" (", N skipped" may follow). An entry that says nothing is one case. One that failed without a failed case (it crashed, a
sanitizer spoke) is one failure more. --broken N: N things did not build; each is a failure.

Prints the names of the cases that failed, then "N passed, N failed, N skipped" alone on the last line. Exit code 0 if none failed and some passed.
"""
import re
import sys
import xml.etree.ElementTree


def last_number(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else 0


def count_output(text):
    """(passed, failed, skipped) as the program says, or None if it says nothing."""
    if re.search(r"^\[==========\] \d+ tests? from .* ran\.", text, re.MULTILINE):
        return tuple(last_number(rf"^\[ *{word} *\] (\d+) tests?\b", text) for word in ("PASSED", "FAILED", "SKIPPED"))
    plain = re.findall(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", text, re.MULTILINE)
    if plain:
        return tuple(int(number or 0) for number in plain[-1])
    ran = re.search(r"^Ran (\d+) tests? in ", text, re.MULTILINE)
    if ran:
        bad = last_number(r"^FAILED \(.*failures=(\d+)", text) + last_number(r"^FAILED \(.*errors=(\d+)", text)
        skipped = last_number(r"^(?:OK|FAILED) \(.*skipped=(\d+)", text)
        return int(ran[1]) - bad - skipped, bad, skipped
    return None


def count_case(case):
    status = case.get("status")
    output = case.findtext("system-out") or ""
    said = count_output(output)
    if status == "notrun" or status == "disabled":
        # ctest's own skip (a regular expression) is one; a program that is not there is a failure.
        skipped = case.find("skipped") is not None and "SKIP" in (case.find("skipped").get("message") or "")
        return (0, 0, 1) if skipped or status == "disabled" else (0, 1, 0)
    if said is None:
        return (1, 0, 0) if status == "run" else (0, 1, 0)
    passed, failed, skipped = said
    return passed, max(failed, 1) if status == "fail" else failed, skipped


def main(arguments):
    broken = 0
    if arguments[:1] == ["--broken"]:
        broken, arguments = int(arguments[1]), arguments[2:]
    total = [0, broken, 0]
    for path in arguments:
        try:
            suite = xml.etree.ElementTree.parse(path).getroot()
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            print(f"{path}: {error}")
            total[1] += 1
            continue
        for case in suite.iter("testcase"):
            counted = count_case(case)
            total = [a + b for a, b in zip(total, counted)]
            if counted[1] > 0:
                names = re.findall(r"^\[  FAILED  \] (\S+\.\S+?)(?:,|$| \()", case.findtext("system-out") or "", re.MULTILINE)
                print(f"failed: {case.get('name')}: {' '.join(dict.fromkeys(names)) or 'see above'}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] > 0 or total[0] == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
