#!/usr/bin/env bash
# Prints the folder of Cluster API's CustomResourceDefinitions, downloading its Go module (3 MB) first if this machine does not
# have it. Nothing is built. Exit code 3: it cannot be had here; says why.
. "$(dirname "$0")/lib.sh"
module=sigs.k8s.io/cluster-api@v1.14.2
sum=h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=

if ! find_go; then
  say "Cluster API's definitions are in a Go module, and there is no Go here"
  exit 3
fi
if ! answer=$(cd / && go mod download -json "$module"); then
  say "Cluster API's definitions cannot be downloaded: $answer"
  exit 3
fi
# field NAME: the text of a field of Go's answer, one field a line.
field() { sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",*$/\1/p" <<<"$answer"; }
[[ $(field Sum) == "$sum" ]] || fail "$module has the checksum $(field Sum) instead of $sum"
echo "$(field Dir)/core/config/crd/bases"
