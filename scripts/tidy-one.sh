#!/usr/bin/env bash
# tidy-one.sh FILE: clang-tidy, with output only for findings.
set -euo pipefail
output=$(clang-tidy-19 -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations "$1" 2>&1) && exit 0
printf '%s\n' "$1" "$output" | grep -v 'warnings generated\|Suppressed .* warnings\|Use -header-filter' >&2
exit 1
