#!/usr/bin/env bash
# deps.sh [KIND...]: installs missing packages of apt-packages.txt, and those of the kinds "format" and "lint" if they are
# named. Does nothing, and asks for no rights, if no package is missing.
. "$(dirname "$0")/lib.sh"

# missing KIND: the packages of that kind ("required", "optional", "format" or "lint") that are not installed.
missing() {
  local package kind
  while read -r package kind; do
    [[ -z $package || $package == \#* || ${kind:-required} != "$1" ]] && continue
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done <scripts/apt-packages.txt
}

if ! have dpkg-query || ! have apt-get; then
  say "no apt-get here: install what scripts/apt-packages.txt names by the means of this system"
  for program in cmake ninja c++ protoc python3; do
    have "$program" || fail "$program is missing"
  done
  exit 0
fi

mapfile -t required < <(missing required)
mapfile -t optional < <(missing optional)
for kind in "$@"; do
  mapfile -t -O "${#optional[@]}" optional < <(missing "$kind")
done
if ((${#required[@]} + ${#optional[@]} == 0)); then
  say "packages: all there"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if have sudo; then
    as_root=(sudo)
  else
    ((${#required[@]} == 0)) && { say "not installed (no root, no sudo), optional: ${optional[*]}"; exit 0; }
    fail "missing, and neither root nor sudo to install them: ${required[*]}"
  fi
fi
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}

say "installing with apt-get: ${required[*]} ${optional[*]}"
"${as_root[@]}" apt-get update -q >&2 || say "apt-get update failed; going on with the lists that are there"
if ((${#required[@]} > 0)); then
  install "${required[@]}" || fail "apt-get could not install: ${required[*]}"
fi
for package in "${optional[@]}"; do
  install "$package" || say "not available here, optional: $package"
done
say "packages: installed"
