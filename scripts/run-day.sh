#!/usr/bin/env bash
# run-day.sh [FLAG...]: starts a control plane with kwok on this machine and plays a day on it with `fairlead day FLAG...`.
# Nothing of it is left afterwards. SCENARIO names another day than two-team-day. FAIRLEAD_BIN is the folder of the program.
# KUBE_SCHEDULER_CONFIG: runs the control plane's kube-scheduler beside it, with that file; KUBECONFIG in it becomes the cluster's.
. "$(dirname "$0")/lib.sh"
binary=${FAIRLEAD_BIN:-build/bin}/fairlead
scenario=${SCENARIO:-tests/scenarios/two-team-day}
control_plane=$(scripts/control-plane.sh)

# The launcher's own folder: it is removed when the launcher ends, which is when this script ends.
work=$(mktemp -d "${TMPDIR:-/tmp}/fairlead-day.XXXXXX")
# Read only if the start fails, and gone with this script.
log=$(mktemp "${TMPDIR:-/tmp}/fairlead-day-log.XXXXXX")
exec 8>"$log" 9<"$log"
rm "$log"
plane=
kube_scheduler=
cleanup() {
  [[ -z $kube_scheduler ]] || kill "$kube_scheduler" 2>/dev/null || true
  if [[ -n $plane ]]; then
    kill "$plane" 2>/dev/null || true
    wait "$plane" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say "starting the control plane"
# In its own session, so that Ctrl-C reaches the day first, which then cleans up.
setsid "$control_plane" up --dir "$work" --ready-file "$work/ready" \
  --crds crds --controller-manager --kwok builtin >/dev/null 2>&8 9<&- &
plane=$!
until [[ -e $work/ready ]]; do
  if ! kill -0 "$plane" 2>/dev/null; then
    cat <&9 >&2
    fail "the control plane did not start"
  fi
  sleep 0.1
done
say "control plane ready; kubectl --kubeconfig $work/kubeconfig works while this runs"

if [[ -n ${KUBE_SCHEDULER_CONFIG:-} ]]; then
  sed "s|KUBECONFIG|$work/kubeconfig|" "$KUBE_SCHEDULER_CONFIG" >"$work/kube-scheduler.yaml"
  setsid "$control_plane" kube-scheduler "--config=$work/kube-scheduler.yaml" --secure-port=0 >/dev/null 2>&8 9<&- &
  kube_scheduler=$!
  say "kube-scheduler runs beside it"
fi

flags=(--yes)
[[ -t 1 ]] || flags+=(--plain)
"$binary" day --kubeconfig "$work/kubeconfig" --crds crds --scenario "$scenario" "${flags[@]}" "$@"
