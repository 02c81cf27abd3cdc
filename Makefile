.PHONY: help deps build test bench
help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'
deps: ## install the Debian packages that are missing
	@scripts/deps.sh
build: deps ## every executable into build/bin
	cmake --preset release -DFAIRLEAD_WERROR=OFF
	cmake --build build
test: deps ## build, then the unit and property tests
	scripts/test.sh
bench: build ## build/bench/results.json; BENCH=regex picks
	mkdir -p build/bench
	build/bin/fairlead-bench --out build/bench/results.json --filter "$(BENCH)"
