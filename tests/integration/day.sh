#!/usr/bin/env bash
# day.sh BIN [guests]: plays the day of two teams with BIN/fairlead on a real API server, as `make run` does, and looks at how it
# ends. guests: the pods are kube-scheduler's, which has Fairlead's plugin compiled in and binds them where it is told.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -z ${FAIRLEAD_CONTROL_PLANE:-} && -z ${KUBEBUILDER_ASSETS:-} ]]; then
  echo "skipped: no control plane: set FAIRLEAD_CONTROL_PLANE to what scripts/control-plane.sh prints, or KUBEBUILDER_ASSETS"
  exit 77
fi
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
if [[ ${2:-} == guests ]]; then
  if ! "$(scripts/control-plane.sh)" kube-scheduler --version >/dev/null 2>&1; then
    echo "skipped: this control plane has no kube-scheduler"
    exit 77
  fi
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export SCENARIO=$temporary/two-team-day KUBE_SCHEDULER_CONFIG=$temporary/kube-scheduler.yaml
  cp -r tests/scenarios/two-team-day "$SCENARIO"
  sed -i 's/schedulerName: fairlead/schedulerName: team-scheduler/' "$SCENARIO"/*.yaml
  echo 'configuration: fairlead.yaml' >>"$SCENARIO/scenario.yaml"
  cat >"$SCENARIO/fairlead.yaml" <<END
apiVersion: config.fairlead.dev/v1alpha1
kind: FairleadConfiguration
guests:
  schedulerNames: [team-scheduler]
  bindAddress: 127.0.0.1:$port
END
  cat >"$KUBE_SCHEDULER_CONFIG" <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: KUBECONFIG}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: team-scheduler
  plugins:
    multiPoint: {enabled: [{name: Fairlead}]}
    postFilter: {enabled: [{name: Fairlead}]}
  pluginConfig:
  - name: Fairlead
    args: {address: "127.0.0.1:$port"}
END
fi
FAIRLEAD_BIN=$1 scripts/run-day.sh | tee "$temporary/output"
for line in 'nodes for policy-blocked pods   0 ' 'nodes at the end                0' 'reactive autoscaler (estimate)' \
  'The day went as expected.'; do
  grep -qF "$line" "$temporary/output" || { echo "the day does not end with \"$line\""; exit 1; }
done
