#!/usr/bin/env bash
# The plugin of kube-scheduler (guests/kube-scheduler): its own tests, and whether its messages are those of the protocol.
# Exit code 77: it cannot be built here.
. "$(dirname "$0")/../../scripts/lib.sh"
if ! find_go; then
  say "skipped: the plugin of kube-scheduler is a Go program, and there is no Go here"
  exit 77
fi
# As scripts/control-plane.sh, so that what it has compiled is used again.
export CGO_ENABLED=0 GOFLAGS=-trimpath
temporary=$(mktemp -d "${TMPDIR:-/tmp}/fairlead-plugin.XXXXXX")
trap 'rm -rf "$temporary"' EXIT
cd guests/kube-scheduler
if ! go mod download >"$temporary/download" 2>&1; then
  cat "$temporary/download"
  say "skipped: modules of the plugin of kube-scheduler cannot be had here"
  exit 77
fi
go build -o "$temporary/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
protoc --proto_path=../../proto --plugin="$temporary/protoc-gen-go" --go_out="$temporary" --go_opt=paths=source_relative \
  --go_opt=Mfairlead/guests/v1/guests.proto=fairlead.dev/kube-scheduler-plugin/guestsv1 fairlead/guests/v1/guests.proto
made=$temporary/fairlead/guests/v1/guests.pb.go
# All but the line that names the version of protoc.
if ! diff <(grep -v '^//.*protoc ' "$made") <(grep -v '^//.*protoc ' guestsv1/guests.pb.go); then
  [[ ${1:-} == --write ]] || fail "guests/kube-scheduler/guestsv1/guests.pb.go is not what proto/ says: run $0 --write"
  cp "$made" guestsv1/guests.pb.go
fi
[[ -z $(gofmt -l .) ]] || fail "gofmt -w guests/kube-scheduler would change: $(gofmt -l . | tr '\n' ' ')"
go test ./... # and vets
