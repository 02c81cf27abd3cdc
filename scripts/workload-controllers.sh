#!/usr/bin/env bash
# Prints the folder of the programs in tests/workload-controllers (fairlead-test-jobset and so on), with the CRDs that each works
# with in crds/NAME, building first what has not been built on this machine yet. Each is kept as the control plane is, by the hash
# of its own sources. Exit code 3: one cannot be built here; says which and why.
. "$(dirname "$0")/lib.sh"
source_dir=tests/workload-controllers

if [[ -n ${FAIRLEAD_WORKLOAD_CONTROLLERS:-} ]]; then
  echo "$FAIRLEAD_WORKLOAD_CONTROLLERS"
  exit 0
fi

names=(jobset kuberay kubeflow lws trainer)
# Where each project has its CRDs: the module and a folder in it.
declare -A modules=(
  [jobset]="sigs.k8s.io/jobset config/components/crd/bases"
  [kuberay]="github.com/ray-project/kuberay/ray-operator config/crd/bases"
  [kubeflow]="github.com/kubeflow/training-operator manifests/base/crds"
  [lws]="sigs.k8s.io/lws config/crd/bases"
  [trainer]="github.com/kubeflow/trainer/v2 manifests/base/crds"
)

# build NAME FOLDER: makes FOLDER/fairlead-test-NAME and FOLDER/crds.
build() {
  local name=$1 folder=$2 module crds log=$2/log file
  read -r module crds <<<"${modules[$name]}"
  say "building the controllers of $module (once: the first takes 2 minutes on two cores, the others seconds; kept in $CACHE)"
  (
    cd "$source_dir/$name"
    # Fetches just the modules that the build needs.
    if ! go list -deps . >/dev/null 2>"$log"; then
      grep -v '^go: downloading ' "$log" >&2 || true
      say "fairlead-test-$name cannot be built: $module, or a module that it needs, cannot be had"
      exit 3
    fi
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$folder/fairlead-test-$name.new" . >&2 ||
      fail "$source_dir/$name does not build"
    # They stay where they are in the module; there is no copy in our tree.
    rm -rf "$folder/crds"
    mkdir "$folder/crds"
    while read -r file; do
      install -m 644 "$file" "$folder/crds/"
    done < <(grep -lxr 'kind: CustomResourceDefinition' "$(go list -m -f '{{.Dir}}' "$module")/$crds")
    [[ -n $(ls "$folder/crds") ]] || fail "$module has no CRDs in $crds"
  )
  rm -f "$log"
  mv "$folder/fairlead-test-$name.new" "$folder/fairlead-test-$name" # Last: it says that all is there.
}

hashes=()
for name in "${names[@]}"; do
  mapfile -t sources < <(find "$source_dir/$name" "$source_dir/runner" \( -name '*.go' -o -name 'go.*' \) | LC_ALL=C sort)
  hash=$(sha256sum "${sources[@]}" | cat - <(echo "${modules[$name]}") | sha256sum | cut -c1-16)
  hashes+=("$hash")
  [[ ! -x $CACHE/$hash/fairlead-test-$name ]] || continue
  if ! find_go; then
    say "the controllers of other projects are Go programs: install Go 1.26 or newer (from 1.21 on, Go downloads what is missing)"
    exit 3
  fi
  mkdir -p "$CACHE/$hash"
  exec 9>"$CACHE/$hash/lock"
  flock 9 # Another process may be building the same.
  [[ -x $CACHE/$hash/fairlead-test-$name ]] || build "$name" "$CACHE/$hash"
  exec 9>&-
done

# One folder with links to all of them.
together=$CACHE/$(printf '%s\n' "${hashes[@]}" | sha256sum | cut -c1-16)
mkdir -p "$together/crds"
for i in "${!names[@]}"; do
  ln -sfn "../${hashes[i]}/fairlead-test-${names[i]}" "$together/fairlead-test-${names[i]}"
  ln -sfn "../../${hashes[i]}/crds" "$together/crds/${names[i]}"
done
echo "$together"
