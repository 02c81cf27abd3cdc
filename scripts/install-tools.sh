#!/usr/bin/env bash
# Prints the path of fairlead-install-tools (helm and kubectl, for the tests of manifests/), building it first if this version of
# it has not been built on this machine yet. Kept as the control plane is. Exit code 3: it cannot be built here; says why.
. "$(dirname "$0")/lib.sh"
source_dir=tests/install/tools

if [[ -n ${FAIRLEAD_INSTALL_TOOLS:-} ]]; then
  echo "$FAIRLEAD_INSTALL_TOOLS"
  exit 0
fi
hash=$(sha256sum "$source_dir"/*.go "$source_dir"/go.* | sha256sum | cut -c1-16)
binary=$CACHE/$hash/fairlead-install-tools
if [[ ! -x $binary ]]; then
  if ! find_go; then
    say "helm and kubectl are Go programs: install Go 1.26 or newer"
    exit 3
  fi
  mkdir -p "$CACHE/$hash"
  exec 9>"$CACHE/$hash/lock"
  flock 9 # Another process may be building the same.
  if [[ ! -x $binary ]]; then
    say "building helm and kubectl (about 2 minutes once on two cores, then cached in $CACHE)"
    (
      cd "$source_dir"
      CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$binary.new" . 2>&1
    ) >&2 || fail "$source_dir does not build"
    mv "$binary.new" "$binary"
  fi
fi
echo "$binary"
