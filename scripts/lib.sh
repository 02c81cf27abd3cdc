# shellcheck shell=bash disable=SC2034
# Shared by every script here. Source it first.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/fairlead
cd "$ROOT"
SECONDS=0

# say TEXT...: prints one line with the seconds since the script began.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }

fail() {
  printf '[%4ds] error: %s\n' "$SECONDS" "$*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# jobs: compilers to run at once. One of ours may take more than a gigabyte.
jobs_now() {
  local cpus memory_gb
  cpus=$(nproc)
  memory_gb=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  local most=$((memory_gb * 2 / 3))
  echo $((most < 1 ? 1 : most < cpus ? most : cpus))
}

# sources: the C++ files of the tree, also those that git does not track yet.
sources() { git ls-files --cached --others --exclude-standard '*.cc' '*.h' | sort -u | xargs -r ls -d 2>/dev/null; }

# source_epoch: the time of packaged files, in seconds: SOURCE_DATE_EPOCH, else the commit's.
source_epoch() { echo "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"; }

# find_go: puts a Go into PATH that builds Go programs of ours: one that is there (from 1.21 on it downloads a newer one by itself
# if need be; Debian users often have it in /usr/local/go), else one in our cache, which is downloaded first. Fails if there is
# none; says why.
find_go() {
  local folder version
  # Some distributions switch off the download of a newer one.
  export GOTOOLCHAIN=${GOTOOLCHAIN:-auto}
  for folder in "" /usr/local/go/bin; do
    version=$(PATH=${folder:-$PATH} GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || continue
    if [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] < 21)); then continue; fi
    PATH=${folder:+$folder:}$PATH
    return 0
  done
  folder=$(python3 scripts/fetch_go.py "$CACHE") || return 1
  PATH=$folder/bin:$PATH
}
