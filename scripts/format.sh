#!/usr/bin/env bash
# format.sh [--fix|--no-install]: checks the formatting of all files of the tree, or formats them in place. Exit code 3: there is
# no clang-format, or git does not list the files.
. "$(dirname "$0")/lib.sh"
[[ ${1:-} == --no-install ]] || scripts/deps.sh format
have clang-format-19 || { say "no clang-format-19 here"; exit 3; }
mapfile -t files < <(sources)
((${#files[@]} > 0)) || { say "git lists no files here"; exit 3; }
say "clang-format: ${#files[@]} files"
if [[ ${1:-} == --fix ]]; then
  clang-format-19 -i "${files[@]}"
else
  clang-format-19 --dry-run -Werror "${files[@]}"
fi
