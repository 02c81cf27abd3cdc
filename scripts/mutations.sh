#!/usr/bin/env bash
# mutations.sh [--first-look] [NAME...]: does the simulation find every defect that it is there to find? Each
# tests/mutations/NAME.patch is applied to a copy of the tree, fairlead-simtest is built of it and runs up to
# FAIRLEAD_MUTATION_SEEDS worlds until one fails; the tree without the patch has to pass that very world. The last line is
# "M of M found"; exit code 0 only if all were found. tests/mutations/README.md has the form of a patch.
#
# The copy, its build folder and what was judged stay under ~/.cache/fairlead/mutations. A patch is judged again only when it,
# its flags or the program have changed; a line that is repeated from there ends with "(judged before)". Without --first-look
# the whole of FAIRLEAD_MUTATION_SEEDS worlds is also run without a patch, with all faults and all invariants.
# FAIRLEAD_MUTATION_SEEDS: 2000, or 150 at the first look. FAIRLEAD_MUTATION_JOBS: by default one a core. Each job is a lane: it
# has a copy of its own, and judges one patch after another in one process.
. "$(dirname "$0")/lib.sh"
first_look=0
if [[ ${1:-} == --first-look ]]; then
  first_look=1
  shift
fi
seeds=${FAIRLEAD_MUTATION_SEEDS:-$((first_look ? 150 : 2000))}
jobs=${FAIRLEAD_MUTATION_JOBS:-$(nproc)}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fairlead/mutations
base=$cache/base # the tree without a patch
judged=$cache/judged # lines "KEY|NAME|SEEDS|SEED|INVARIANT"; SEED 0: none of SEEDS failed
mkdir -p "$cache/lane.1"
touch "$judged"

# One at a time: the copies are one set.
exec 9>"$cache/lock"
flock -n 9 || fail "another run uses $cache"

# sync FROM TO: only what differs is written and only what is too much goes, so that a second run rebuilds what has changed.
sync() {
  local from=$1 to=$2 file
  (cd "$to" && find . -path ./build -prune -o -type f -print0) | sort -z |
    comm -z -13 <(cd "$from" && find . -path ./build -prune -o -type f -print0 | sort -z) - | (cd "$to" && xargs -0 -r rm -f)
  while IFS= read -r -d '' file; do
    cmp -s "$from/$file" "$to/$file" && continue
    mkdir -p "$to/$(dirname "$file")"
    cp -p "$from/$file" "$to/$file"
    touch "$to/$file"
  done < <(cd "$from" && find . -path ./build -prune -o -type f -print0)
}

# The tree as it is here when the run begins, changes that are not committed included: later edits do not disturb the run.
take_tree() {
  rm -rf "$base"
  mkdir -p "$base"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [[ -f $file ]] && printf '%s\0' "$file"
  done | xargs -0 cp -p --parents -t "$base"
}

# Of all that fairlead-simtest is built of.
program_hash() {
  (cd "$base" && find . \( -path ./build -o -path ./docs -o -path ./tests -o -path ./scripts \) -prune -o \
    -type f \( -name '*.cc' -o -name '*.h' -o -name '*.cmake' -o -name 'CMake*' -o -name '*.proto' \) \
    ! -name '*_test.cc' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
}

# build TREE PROCESSES
build() {
  (cd "$1" && { [[ -e build/build.ninja ]] || cmake --preset release -Wno-dev >/dev/null; } &&
    ninja -C build -j "$2" fairlead-simtest) >"$1.build.log" 2>&1
}

# flags_of PATCH: the words of its line "# simtest: ...".
flags_of() { sed -n 's/^# simtest: *//p' "$1" | head -1; }

# judged_by PATCH FLAG...: the patch, and the plan that its flags name.
judged_by() {
  cat "$1"
  while (($# > 1)); do
    shift
    [[ $1 == --plan ]] && cat "$base/$2"
  done
  return 0
}

# touched PATCH: the files that it changes, a line each.
touched() { sed -n 's|^+++ b/||p' "$1"; }

# run PROGRAM PROCESSES SEEDS FLAG...: "SEED|INVARIANT" of the first failure, or nothing.
run() {
  local program=$1 processes=$2 which=$3
  shift 3
  ("$program" --seeds "$which" --jobs "$processes" --limit 30 "$@" 2>/dev/null || true) |
    sed -n 's/^FAILED seed \([0-9]*\) at [^:]*: \([^:]*\): .*/\1|\2/p' | head -1
}

# remembered KEY [FLAG...]: "SEED|INVARIANT" if that is judged already, as far as this run would look; else fails. A plan has
# a seed of its own, whatever their number.
remembered() {
  local bound=$seeds
  [[ " ${*:2} " == *" --plan "* ]] && bound=999999999
  awk -F'|' -v key="$1" -v seeds="$seeds" -v bound="$bound" '
    $1 == key && (($4 > 0 && $4 <= bound) || ($4 == 0 && $3 >= seeds)) { line = $4 "|" $5 }
    END { if (line == "") exit 1; print line }' "$judged"
}

remember() { printf '%s|%s|%s|%s\n' "$1" "$2" "$seeds" "$3" >>"$judged"; }

# hint NAME: the world that found it the last time.
hint() {
  awk -F'|' -v name="$1" -v seeds="$seeds" '$2 == name && $4 > 0 && $4 <= seeds { seed = $4 } END { print seed }' \
    "$judged"
}

take_tree
patches=()
if (($# > 0)); then
  for name in "$@"; do patches+=("$base/tests/mutations/$name.patch"); done
else
  for patch in "$base"/tests/mutations/*.patch; do [[ -e $patch ]] && patches+=("$patch"); done
fi
((${#patches[@]} > 0)) || fail "there is no patch in tests/mutations"
# Patches of the same files one after the other: what one changes and the next restores is built once.
mapfile -t patches < <(for patch in "${patches[@]}"; do printf '%s %s\n' "$(touched "$patch" | tr '\n' ',')" "$patch"; done |
  sort | cut -d' ' -f2-)

program=$(program_hash)
sound=$cache/fairlead-simtest-$program
if [[ ! -x $sound ]]; then
  say "building the tree without a patch"
  sync "$base" "$cache/lane.1"
  build "$cache/lane.1" "$jobs" || { tail -30 "$cache/lane.1.build.log" >&2; fail "the tree does not build"; }
  rm -f "$cache"/fairlead-simtest-*
  cp "$cache/lane.1/build/bin/fairlead-simtest" "$sound.new"
  mv "$sound.new" "$sound"
fi

broken=0
if ((first_look == 0)); then
  before=" (judged before)"
  if ! failure=$(remembered "$program"); then
    before=""
    failure=$(run "$sound" "$jobs" "1..$seeds")
    remember "$program" "without a patch" "${failure:-0|}"
  fi
  if [[ -n ${failure#0|} ]]; then
    echo "without a patch: seed ${failure%%|*} fails: ${failure#*|}$before"
    broken=1
  else
    echo "without a patch: $seeds seeds, none fails$before"
  fi
fi

# judge TREE NAME PATCH KEY FLAG...: a line about it; fails if it is not found.
judge() {
  local tree=$1 name=$2 patch=$3 key=$4 failure="" seed
  shift 4
  if ! (cd "$tree" && patch -p1 --forward --no-backup-if-mismatch --reject-file=-) <"$patch" >"$tree.patch.log" 2>&1; then
    echo "$name NOT FOUND: the patch does not apply any more; renew it"
    return 1
  fi
  if ! build "$tree" 1; then
    cp "$tree.build.log" "$cache/build.$name.log"
    echo "$name NOT FOUND: it does not build ($cache/build.$name.log)"
    return 1
  fi
  local program=$tree/build/bin/fairlead-simtest
  # A world that fails without the patch, too, proves nothing: the next one is tried.
  local from=1
  seed=$(hint "$name")
  [[ -n $seed ]] && failure=$(run "$program" 1 "$seed" "$@")
  [[ -n $failure && -n $(run "$sound" 1 "$seed" "$@") ]] && failure=""
  while [[ -z $failure ]] && ((from <= seeds)); do
    failure=$(run "$program" 1 "$from..$seeds" "$@")
    [[ -n $failure ]] || break
    seed=${failure%%|*}
    [[ -z $(run "$sound" 1 "$seed" "$@") ]] && break
    echo "$name: seed $seed fails without it, too: ${failure#*|}"
    from=$((seed + 1))
    failure=""
    # A plan is one world, whatever the seed.
    [[ " $* " == *" --plan "* ]] && break
  done
  if [[ -z $failure ]]; then
    remember "$key" "$name" "0|"
    echo "$name NOT FOUND in $seeds seeds"
    return 1
  fi
  remember "$key" "$name" "$failure"
  echo "$name found at seed ${failure%%|*}: ${failure#*|}"
}

# restore TREE PATCH: undoes what the patch changed.
restore() {
  local file
  while IFS= read -r file; do
    rm -f "$1/$file"
    [[ -e $base/$file ]] || continue
    cp "$base/$file" "$1/$file"
  done < <(touched "$2")
}

# The next line of $cache/left, or nothing.
take_patch() {
  (
    flock 8
    sed -n 1p "$cache/left"
    sed -i 1d "$cache/left"
  ) 8>"$cache/left.lock"
}

# lane K: judges what is left, in a copy of its own.
lane() {
  local tree=$cache/lane.$1 patch name failure words key
  mkdir -p "$tree"
  sync "$base" "$tree"
  while patch=$(take_patch) && [[ -n $patch ]]; do
    name=$(basename "$patch" .patch)
    read -r -a words <<<"$(flags_of "$patch")"
    key=$program-$(judged_by "$patch" "${words[@]}" | sha256sum | cut -c1-16)
    if failure=$(remembered "$key" "${words[@]}"); then
      if [[ -n ${failure#0|} ]]; then
        echo "$name found at seed ${failure%%|*}: ${failure#*|} (judged before)"
        echo "$name" >>"$cache/found"
      else
        echo "$name NOT FOUND in $seeds seeds (judged before)"
      fi
      continue
    fi
    if judge "$tree" "$name" "$patch" "$key" "${words[@]}"; then echo "$name" >>"$cache/found"; fi
    restore "$tree" "$patch"
  done
}

printf '%s\n' "${patches[@]}" >"$cache/left"
: >"$cache/found"
for ((k = 1; k <= jobs; ++k)); do lane "$k" & done
wait
found=$(wc -l <"$cache/found")
echo "$found of ${#patches[@]} found"
((found == ${#patches[@]} && broken == 0))
