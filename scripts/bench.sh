#!/usr/bin/env bash
# bench.sh [REGEX]: runs the benchmarks whose name matches and writes build/bench/results.json.
. "$(dirname "$0")/lib.sh"
scripts/deps.sh
scripts/build.sh release fairlead-bench
if FAIRLEAD_CONTROL_PLANE=$(scripts/control-plane.sh); then
  export FAIRLEAD_CONTROL_PLANE
else
  say "no control plane: the benchmarks that need one are left out"
fi
mkdir -p build/bench
arguments=(--out build/bench/results.json)
[[ -n ${1:-} ]] && arguments+=(--filter "$1")
code=0
build/bin/fairlead-bench "${arguments[@]}" || code=$?
say "results: build/bench/results.json"
exit "$code"
