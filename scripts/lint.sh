#!/usr/bin/env bash
# lint.sh [--all]: clang-format on every file, clang-tidy on those that changed since origin's main branch (else since the
# last commit), shellcheck on the scripts. --all: clang-tidy on every file, which takes half an hour.
. "$(dirname "$0")/lib.sh"
scripts/deps.sh format lint
have clang-format-19 || fail "lint needs clang-format-19"
have clang-tidy-19 || fail "lint needs clang-tidy-19"
status=0

scripts/format.sh || status=1
mapfile -t files < <(sources)

if have shellcheck; then
  say "shellcheck"
  shellcheck -x -P SCRIPTDIR -S warning scripts/*.sh .ci/run || status=1
else
  say "no shellcheck here: left out"
fi

base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse -q --verify HEAD~1 || git rev-parse HEAD)
[[ $base != "$(git rev-parse HEAD)" ]] || base=$(git rev-parse -q --verify HEAD~1 || git rev-parse HEAD)
mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | grep '\.cc$' | sort -u || true)
[[ ${1:-} == --all ]] && mapfile -t changed < <(printf '%s\n' "${files[@]}" | grep '\.cc$')
if ((${#changed[@]} == 0)); then
  say "clang-tidy: no file changed"
  exit "$status"
fi
# Some headers are generated.
scripts/build.sh lint generated-headers >/dev/null
say "clang-tidy: ${#changed[@]} files"
printf '%s\0' "${changed[@]}" |
  xargs -0 -n 1 -P "$(jobs_now)" scripts/tidy-one.sh || status=1
((status == 0)) && say "lint: clean"
exit "$status"
