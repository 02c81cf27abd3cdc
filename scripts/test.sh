#!/usr/bin/env bash
# make test: every test. Ends with one line "N passed, N failed, N skipped" that counts test cases; exit code 0
# only if everything built and nothing failed. CONTRIBUTING.md says what runs where, and what it costs.
#
# test.sh [STAGE...]: only these of: program simtest asan tsan integration. Omitted stages do not count.
. "$(dirname "$0")/lib.sh"
stages=("$@")
((${#stages[@]} > 0)) || stages=(program simtest asan tsan integration)
results=$(mktemp -d "${TMPDIR:-/tmp}/fairlead-test.XXXXXX")
trap 'rm -rf "$results"' EXIT
broken=()

# build PRESET TARGET...: continues after a failure, so that the rest is still reported.
build() {
  scripts/build.sh "$@" && return 0
  broken+=("$1")
  return 1
}

# run NAME FOLDER CTEST_ARGUMENT...
run() {
  local name=$1 folder=$2
  shift 2
  say "running $name"
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --output-junit "$results/$name.xml" \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 "$@" || true
  [[ -e $results/$name.xml ]] || broken+=("$name")
}

# The optimised program that users get, without precompiled headers, the package for plugins, and the tests that run them.
stage_program() {
  build release programs || return 0
  run program build -L '^(layering|docs|conformance|sdk|install)$'
}

# The program in simulated worlds, optimised: FAIRLEAD_SIM_SEEDS of them.
stage_simtest() {
  build release fairlead-simtest || return 0
  run simtest build -L '^simtest$'
}

# Unit and property tests, with AddressSanitizer and UndefinedBehaviorSanitizer.
stage_asan() {
  build asan unit-tests || return 0
  run asan build/asan -L "^unit$" -j "$(nproc)"
}

# The tests of modules with threads, with ThreadSanitizer.
stage_tsan() {
  build tsan thread-tests || return 0
  run tsan build/tsan -L "^thread$"
}

# On a real API server, with the program of stage_program.
stage_integration() {
  build release programs integration-tests || return 0
  if FAIRLEAD_CONTROL_PLANE=$(scripts/control-plane.sh); then
    export FAIRLEAD_CONTROL_PLANE
  elif (($? != 3)); then
    broken+=(control-plane)
    return 0
  else
    say "SKIPPED: the tests on a real API server, for want of one (see the line above)"
  fi
  if FAIRLEAD_INSTALL_TOOLS=$(scripts/install-tools.sh); then
    export FAIRLEAD_INSTALL_TOOLS
  elif (($? != 3)); then
    broken+=(install-tools)
  fi
  if FAIRLEAD_WORKLOAD_CONTROLLERS=$(scripts/workload-controllers.sh); then
    export FAIRLEAD_WORKLOAD_CONTROLLERS
  elif (($? != 3)); then
    broken+=(workload-controllers)
  fi
  run integration build -L '^(integration|day)$' -j 2
}

scripts/deps.sh format
for stage in "${stages[@]}"; do
  [[ $(type -t "stage_$stage") == function ]] || fail "no such stage: $stage"
  "stage_$stage"
done
(("${#broken[@]}" == 0)) || say "did not build or start: ${broken[*]}"
python3 scripts/count_tests.py --broken "${#broken[@]}" "$results"/*.xml
