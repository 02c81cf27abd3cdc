#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configures and builds one preset of CMakePresets.json, all of it if no target is named.
. "$(dirname "$0")/lib.sh"
preset=${1:?usage: build.sh PRESET [TARGET...]}
shift
targets=()
(($# > 0)) && targets=(--target "$@")

export NINJA_STATUS="$preset [%f/%t, %es] "
say "configuring $preset"
if ! output=$(cmake --preset "$preset" -Wno-dev 2>&1); then
  printf '%s\n' "$output" >&2
  fail "configuring $preset failed"
fi
say "building $preset"
cmake --build --preset "$preset" -j "$(jobs_now)" "${targets[@]}"
say "built $preset"
