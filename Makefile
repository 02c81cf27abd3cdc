# The entry points; scripts/ does the work. Each installs what is missing first.
.DEFAULT_GOAL := help
.PHONY: help deps build image deb run test simtest mutations head-to-head differential lint lint-all format bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

build: ## every executable into build/bin
	@scripts/deps.sh && scripts/build.sh release programs

image: ## build/image/fairlead.tar, an OCI image; no container engine is needed
	@scripts/deps.sh && scripts/image.sh

deb: ## build/deb/fairlead_VERSION_ARCHITECTURE.deb: programs, systemd unit, plugin of kubectl
	@scripts/deps.sh && scripts/deb.sh

run: ## a day of two teams on a real control plane (KUBECONFIG: on that cluster; SCENARIO: another day)
	@scripts/run.sh

test: ## everything that is judged; STAGE="program simtest asan tsan integration" picks
	@scripts/test.sh $(STAGE)

simtest: ## the whole program in simulated worlds; SEEDS=100000 (that many) or 601..900, ARGS="--fault network --shrink"
	@scripts/deps.sh && scripts/build.sh release fairlead-simtest
	@build/bin/fairlead-simtest --seeds '$(if $(findstring ..,$(SEEDS)),$(SEEDS),1..$(or $(SEEDS),500))' --jobs "$$(nproc)" $(or $(ARGS),--shrink)

mutations: ## shows that simtest finds each defect of tests/mutations; last line: M of M found
	@scripts/deps.sh && scripts/mutations.sh

head-to-head: ## the same work beside kube-scheduler and Karpenter, real programs; docs/head-to-head.md; SCENARIO=name, SIDE=name
	@scripts/deps.sh && scripts/build.sh release fairlead fairlead-head-to-head
	@FAIRLEAD_CONTROL_PLANE="$$(scripts/control-plane.sh)" build/tests/fairlead-head-to-head $(SCENARIO) $(if $(SIDE),"$(SIDE)")

differential: ## filters, scores and victims against the real kube-scheduler's; last line: N pairs, N differences; SEED=n, PAIRS=n
	@scripts/deps.sh && scripts/build.sh release fairlead_differential
	@scripts/differential.sh $(or $(SEED),20261124) $(or $(PAIRS),100000)

lint: ## formatting of all files, clang-tidy on those that changed
	@scripts/lint.sh

lint-all: ## the same with clang-tidy on all files
	@scripts/lint.sh --all

format: ## format all files in place
	@scripts/format.sh --fix

bench: ## benchmarks into build/bench/results.json; BENCH=regex picks
	@scripts/bench.sh '$(BENCH)'

deps: ## install the Debian packages that are missing
	@scripts/deps.sh

clean: ## remove build/; what other clones use too stays in ~/.cache
	rm -rf build
