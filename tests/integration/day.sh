#!/usr/bin/env bash
# day.sh BIN: plays the day of two teams with BIN/fairlead on a real API server, as `make run` does, and looks at how it ends.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -z ${FAIRLEAD_CONTROL_PLANE:-} && -z ${KUBEBUILDER_ASSETS:-} ]]; then
  echo "skipped: no control plane: set FAIRLEAD_CONTROL_PLANE to what scripts/control-plane.sh prints, or KUBEBUILDER_ASSETS"
  exit 77
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
FAIRLEAD_BIN=$1 scripts/run-day.sh | tee "$output"
for line in 'nodes for policy-blocked pods   0 ' 'nodes at the end                0' 'reactive autoscaler (estimate)' \
  'The day went as expected.'; do
  grep -qF "$line" "$output" || { echo "the day does not end with \"$line\""; exit 1; }
done
