#!/usr/bin/env bash
# mutations.sh [NAME...]: does the simulation find every defect that it is there to find? Each tests/mutations/NAME.patch is applied
# to a copy of the tree, fairlead-simtest is built of it and runs up to FAIRLEAD_MUTATION_SEEDS worlds until one fails. The last
# line is "M of M found"; exit code 0 only if all were found and the tree without a patch fails nowhere.
#
# tests/mutations/README.md has the form of a patch. The copy and its build folder stay under ~/.cache/fairlead/mutations, so that
# a patch costs the files that it changes. FAIRLEAD_MUTATION_JOBS: processes, by default one a core.
. "$(dirname "$0")/lib.sh"
seeds=${FAIRLEAD_MUTATION_SEEDS:-2000}
jobs=${FAIRLEAD_MUTATION_JOBS:-$(nproc)}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fairlead/mutations
tree=$cache/tree
mkdir -p "$tree"

# One at a time: the copy is one.
exec 9>"$cache/lock"
flock -n 9 || fail "another run uses $cache"

# The tree as it is here, changes that are not committed included. Only what differs is written, so that
# a second patch rebuilds what it touches and what the one before it touched.
copy_tree() {
  local list=$cache/files
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [[ -f $file ]] && printf '%s\0' "$file"
  done >"$list"
  (cd "$tree" && find . -path ./build -prune -o -type f -print0) | sed -z 's|^\./||' | sort -z |
    comm -z -13 <(sort -z "$list") - | (cd "$tree" && xargs -0 -r rm -f)
  while IFS= read -r -d '' file; do
    cmp -s "$file" "$tree/$file" && continue
    mkdir -p "$tree/$(dirname "$file")"
    cp -p "$file" "$tree/$file"
    touch "$tree/$file"
  done <"$list"
}

build() {
  (cd "$tree" && { [[ -e build/build.ninja ]] || cmake --preset release -Wno-dev >/dev/null; } &&
    ninja -C build fairlead-simtest) >"$cache/build.log" 2>&1
}

# flags_of PATCH: the words of its line "# simtest: ...".
flags_of() { sed -n 's/^# simtest: *//p' "$1" | head -1; }

# run FLAG...: "seed K: INVARIANT" of the first failure, or nothing.
run() {
  (cd "$tree" && build/bin/fairlead-simtest --seeds "1..$seeds" --jobs "$jobs" "$@" 2>/dev/null) |
    sed -n 's/^FAILED \(seed [0-9]*\) at [^:]*: \([^:]*\): .*/\1: \2/p' | head -1
}

patches=()
if (($# > 0)); then
  for name in "$@"; do patches+=("tests/mutations/$name.patch"); done
else
  for patch in tests/mutations/*.patch; do [[ -e $patch ]] && patches+=("$patch"); done
fi
((${#patches[@]} > 0)) || fail "there is no patch in tests/mutations"

say "the tree without a patch"
copy_tree
build || { tail -30 "$cache/build.log" >&2; fail "the tree does not build"; }
broken=0
declare -A clean=()  # what the tree without a patch says, by flags
for patch in "${patches[@]}"; do
  flags=$(flags_of "$patch")
  [[ -v clean[=$flags] ]] && continue
  read -r -a words <<<"$flags"
  clean[=$flags]=$(run "${words[@]}")
  [[ -z ${clean[=$flags]} ]] && continue
  echo "without a patch, flags \"$flags\": ${clean[=$flags]}"
  broken=1
done

found=0
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  flags=$(flags_of "$patch")
  copy_tree
  if [[ -n ${clean[=$flags]} ]]; then
    echo "$name NOT JUDGED: the tree without it fails with the same flags"
  elif ! (cd "$tree" && patch -p1 --forward --no-backup-if-mismatch --reject-file=-) <"$patch" >"$cache/patch.log" 2>&1; then
    echo "$name NOT FOUND: the patch does not apply any more; renew it"
  elif ! build; then
    echo "$name NOT FOUND: it does not build ($cache/build.log)"
  else
    read -r -a words <<<"$flags"
    failure=$(run "${words[@]}")
    if [[ -n $failure ]]; then
      echo "$name found at $failure"
      found=$((found + 1))
    else
      echo "$name NOT FOUND"
    fi
  fi
done
copy_tree
echo "$found of ${#patches[@]} found"
((found == ${#patches[@]} && broken == 0))
