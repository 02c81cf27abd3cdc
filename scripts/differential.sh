#!/usr/bin/env bash
# differential.sh [SEED [PAIRS]]: Fairlead's filters, scores and choices of victims against those of the real kube-scheduler, on
# random clusters: the same nodes refused by the same plugin for the same reasons, the others scored the same by each plugin, the
# same pods evicted, and devices found for the same claims. Last lines: "N choices of devices compared", "N choices of victims compared", "N scores compared" and "N pairs, N differences". Exit code 1 if anything differs, 77 if there is no kube-scheduler to ask here; says why.
#
# The scheduler is the one in the control plane of the tests: FAIRLEAD_CONTROL_PLANE, or built by scripts/control-plane.sh.
. "$(dirname "$0")/lib.sh"
seed=${1:-20261124}
pairs=${2:-100000}
compare=${FAIRLEAD_DIFFERENTIAL:-build/tests/fairlead_differential}
[[ -x $compare ]] || fail "there is no $compare: build the target fairlead_differential, or run make differential"

# Servers of another build have no oracle.
if ! scheduler=$(KUBEBUILDER_ASSETS='' scripts/control-plane.sh); then
  say "SKIPPED: no kube-scheduler to compare with, for want of Go (see the line above)"
  exit 77
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/fairlead-differential.XXXXXX")
trap 'rm -rf "$folder"' EXIT
say "seed $seed, kube-scheduler in $(basename "$scheduler")"
"$compare" worlds "$seed" "$pairs" >"$folder/worlds"
"$scheduler" scheduler-oracle <"$folder/worlds" >"$folder/answers"
"$compare" compare "$folder/worlds" "$folder/answers"
