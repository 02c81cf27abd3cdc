#!/usr/bin/env bash
# Prints the path of fairlead-control-plane, building it first if this version of it has not been built on this machine yet.
# It is kept in the user's cache folder by the hash of its sources. Exit code 3: it cannot be built here; says why.
#
# With KUBEBUILDER_ASSETS that has all four programs, only the launcher is built, which takes seconds.
. "$(dirname "$0")/lib.sh"
source_dir=tests/control-plane

if [[ -n ${FAIRLEAD_CONTROL_PLANE:-} ]]; then
  echo "$FAIRLEAD_CONTROL_PLANE"
  exit 0
fi

tags=()
if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
  tags=(-tags launcher_only)
  for program in etcd kube-apiserver kube-controller-manager kwok; do
    [[ -x $KUBEBUILDER_ASSETS/$program ]] || tags=() # The rest comes from our own build.
  done
fi

# The plugin is compiled into its kube-scheduler.
mapfile -t sources < <(find "$source_dir" guests/kube-scheduler \( -name '*.go' ! -name '*_test.go' -o -name 'go.*' -o -path '*/kwok/*.yaml' \) | LC_ALL=C sort)
hash=$(sha256sum "${sources[@]}" | cat - <(echo "${tags[*]}") | sha256sum | cut -c1-16)
binary=$CACHE/$hash/fairlead-control-plane

# The newest whole one has a fixed name too, for programs started by hand.
link() {
  ((${#tags[@]} == 0)) || return 0
  mkdir -p "$CACHE/bin"
  ln -sfn "$binary" "$CACHE/bin/fairlead-control-plane"
}

if [[ -x $binary ]]; then
  link
  echo "$binary"
  exit 0
fi
if ! find_go; then
  say "the control plane is a Go program: install Go 1.26 or newer (from 1.21 on, Go downloads what is missing by itself)"
  exit 3
fi

# count_packages: turns the list of packages that go build prints into a line now and then. All else is shown.
count_packages() {
  awk -v start="$(date +%s)" '
    function elapsed(  now) { "date +%s" | getline now; close("date +%s"); return now - start }
    /^go: downloading / { if (++modules % 50 == 1) printf "  go: modules downloaded: %d, %ds\n", modules, elapsed(); next }
    /^[A-Za-z0-9_.~\/-]+$/ { if (++packages % 150 == 0) printf "  go: packages compiled: %d, %ds\n", packages, elapsed(); next }
    { print }
    { fflush() }' >&2
}

mkdir -p "$CACHE/$hash"
exec 9>"$CACHE/$hash/lock"
flock 9 # Another process may be building the same.
if [[ ! -x $binary ]]; then
  local_go=$(GOTOOLCHAIN=local go env GOVERSION)
  wanted=$(awk '$1 == "go" {print "go" $2}' "$source_dir/go.mod")
  if [[ $(printf '%s\n' "$wanted" "$local_go" | sort -V | head -1) != "$wanted" ]]; then
    say "Go here is $local_go, it downloads $wanted for this"
  fi
  if ((${#tags[@]} > 0)); then
    say "building the launcher of the control plane; its programs are in $KUBEBUILDER_ASSETS"
  else
    say "building the control plane (about 6 minutes once on two cores, then cached in $CACHE)"
  fi
  (
    cd "$source_dir"
    CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags='-s -w' "${tags[@]}" -o "$binary.new" . 2>&1
  ) | count_packages || fail "the control plane does not build"
  mv "$binary.new" "$binary"
  say "control plane built: $(du -h "$binary" | cut -f1)"
fi
link
echo "$binary"
