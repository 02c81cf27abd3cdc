#!/usr/bin/env bash
# make run: a day of two teams, live. On the cluster of KUBECONFIG if that is set (it asks first), else on a control plane
# of this machine, else, if there is none, in virtual time.
. "$(dirname "$0")/lib.sh"
scenario=${SCENARIO:-tests/scenarios/two-team-day}
scripts/deps.sh

if [[ -n ${KUBECONFIG:-} ]]; then
  scripts/build.sh release fairlead
  say "KUBECONFIG is set: the day is played on that cluster"
  # The variable may name several files; fairlead reads it as kubectl does.
  exec build/bin/fairlead day --crds crds --scenario "$scenario"
fi

# Both builds at once would only make each slower on a small machine; the C++ one is what is needed in any case.
scripts/build.sh release fairlead
if FAIRLEAD_CONTROL_PLANE=$(scripts/control-plane.sh); then
  export FAIRLEAD_CONTROL_PLANE
  exec scripts/run-day.sh
fi
say "no control plane on this machine, for the reason above (or set KUBECONFIG): the same day in virtual time instead"
flags=()
[[ -t 1 ]] && flags+=(--live)
exec build/bin/fairlead simulate "$scenario" "${flags[@]}"
