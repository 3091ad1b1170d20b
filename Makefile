# The targets people and CI use; `make` alone lists them. Needs make and Python >= 3.11, nothing else.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := $(wildcard src tests scripts bench chaos)

# A virtual environment can't be moved, so it remembers where it was made; elsewhere it is made again.
PLACE := $(VENV)/.made-in
RUN_READY := $(VENV)/.ready-to-run
DEV_READY := $(VENV)/.ready-to-develop
MOVED := $(if $(wildcard $(PLACE)),$(if $(filter-out x$(CURDIR),x$(shell cat $(PLACE))),moved))

# Tests and benchmarks start hundreds of programs; without bytecode each of them would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run console site test interop interop-keycloak coverage test-timing chaos check bench bench-peers profile profile-recordings audit dist format docs manifests lock clean moved
.PHONY: check-format check-lint check-house check-types check-imports check-docs

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV_READY) ## make .venv with everything a developer needs
	@echo "Ready: $(BIN)/pactgate"

run: $(RUN_READY) ## start the gateway, with its demo when there is no configuration (ARGS="--port 8080")
	@exec $(BIN)/pactgate serve $(ARGS)

console: $(DEV_READY) ## build the console from console/ into the package; needs npm and Node.js >= 20.19
	bash scripts/prepare_interop.sh console
	bash scripts/build_console.sh src/pactgate/console/static

site: ## build the documentation site from docs/ into build/site; a link that leads nowhere is a failure
	bash scripts/prepare_interop.sh site
	NO_MKDOCS_2_WARNING=1 .tools/site/bin/mkdocs build
	@echo "Read it at http://127.0.0.1:8000 after: python3 -m http.server --bind 127.0.0.1 --directory build/site"

# Four processes for two cores: tests that start programs wait more than they compute. `worksteal` keeps the tests of a module together.
ADOPT := $(BIN)/python -I -S scripts/adopt_orphans.py
PYTEST := $(ADOPT) $(BIN)/python -m pytest
COVERED := protocol core pipeline
JOURNEYS := call_path caller_sign_in other_requests permissions principals search_surface views
test: $(DEV_READY) ## run the tests, without third parties and without measurements (ARGS="-k word")
	$(PYTEST) -q -n 4 --dist worksteal $(ARGS)

# Module by module, because the fixtures that start all those servers belong to modules.
interop: $(DEV_READY) ## run other people's clients, servers, the official suite, Redis and nginx; CI=true fails what can't be fetched
	bash scripts/prepare_interop.sh
	$(PYTEST) -q -n 2 --dist loadfile -m "interop and not timing" tests/interop tests/replicas tests/state $(ARGS)

profile-recordings: $(DEV_READY) ## record the checks of the gateway profile that have no recordings (ARGS=GWP-001: these again)
	.venv/bin/python -m tests.conformance.gateway.record $(ARGS)

# Too heavy for every CI run: a quarter of a gigabyte to fetch, Java, and a browser.
interop-keycloak: $(DEV_READY) ## log in at a real Keycloak with a real browser, and call tools with its tokens
	bash scripts/prepare_interop.sh
	bash scripts/prepare_keycloak.sh
	$(PYTEST) -v -m keycloak tests/interop/test_keycloak.py $(ARGS)

coverage: $(DEV_READY) ## fail when the tests of protocol, core and pipeline reach too little of them (floor: pyproject.toml)
	$(PYTEST) -q -n 2 --dist worksteal $(COVERED:%=--cov=pactgate.%) $(COVERED:%=tests/%) $(JOURNEYS:%=tests/journeys/test_%.py) tests/catalog/test_tool_groups.py tests/upstreams/rest/test_server.py $(ARGS)

test-timing: $(DEV_READY) ## run the tests that compare times, one after the other, on a machine that does nothing else
	$(PYTEST) -m timing $(ARGS)

chaos: $(DEV_READY) ## serve beside servers and clients that misbehave, and check the promises (ARGS="--minutes 60 --seed 7")
	$(ADOPT) $(BIN)/python -m chaos $(ARGS)

check: $(DEV_READY) ## format, lint, types, import contracts, generated pages: report every finding, change nothing
	@$(MAKE) --no-print-directory --keep-going check-format check-lint check-house check-types check-imports check-docs

check-format: $(DEV_READY)
	$(BIN)/ruff format --check $(CODE)

check-lint: $(DEV_READY)
	$(BIN)/ruff check $(CODE)

check-house: $(DEV_READY)
	$(BIN)/python -m scripts.lint_house

check-types: $(DEV_READY)
	$(BIN)/mypy --strict

check-imports: $(DEV_READY)
	$(BIN)/lint-imports --no-logo

check-docs: $(DEV_READY)
	$(BIN)/python scripts/gen_docs.py --check

bench: $(DEV_READY) ## measure the gateway beside nginx in the same run (ARGS="--only mixed --seconds 3" for half a minute)
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(DEV_READY) ## the same beside other gateways, installed into .tools/peers (ARGS="--only fastmcp")
	$(BIN)/python -m bench peers $(ARGS)

profile: $(DEV_READY) ## play the gateway profile against other gateways, then write docs/gateways.md (ARGS="--only fastmcp")
	$(ADOPT) $(BIN)/python -m bench gateways $(ARGS)
	$(BIN)/python scripts/gen_docs.py

AUDIT := .tools/audit
AUDIT_READY := $(AUDIT)/.ready
audit: $(AUDIT_READY) ## look the pinned dependencies up in the advisory database of the package index
	@bash scripts/audit_dependencies.sh $(AUDIT)/bin/pip-audit

dist: $(RUN_READY) $(AUDIT_READY) ## build the wheel and its SBOM (CycloneDX) into dist/
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	$(AUDIT)/bin/cyclonedx-py requirements requirements/run.txt --pyproject pyproject.toml --output-file dist/sbom.cdx.json

$(AUDIT_READY): $(RUN_READY) requirements/audit.txt
	@$(BIN)/python -m venv $(AUDIT)
	@$(AUDIT)/bin/pip --disable-pip-version-check --quiet install --require-hashes --requirement requirements/audit.txt
	@touch $@

format: $(DEV_READY) ## put the code into the house style
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

docs: $(DEV_READY) ## write the generated pages again
	$(BIN)/python scripts/gen_docs.py

HELM := $(or $(wildcard .tools/bin/helm),helm)
manifests: ## render deploy/k8s/pactgate.yaml from the chart (needs helm)
	@$(HELM) template pactgate deploy/helm/pactgate --kube-version 1.30.0 > deploy/k8s/pactgate.yaml

# Versions that are already pinned stay unless they must change; ARGS=--upgrade takes the newest of all.
COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-strip-extras --quiet \
	--custom-compile-command "make lock" $(ARGS)
lock: $(RUN_READY) ## pin requirements/*.txt from the ranges in pyproject.toml (ARGS=--upgrade for the newest)
	@[ -x $(BIN)/uv ] || $(PIP) install uv
	$(COMPILE) pyproject.toml --group build --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --group dev --constraints requirements/run.txt --output-file requirements/dev.txt
	$(COMPILE) requirements/interop-mcp1.in --output-file requirements/interop-mcp1.txt
	$(COMPILE) requirements/interop-servers.in --output-file requirements/interop-servers.txt
	$(COMPILE) requirements/interop-deploy.in --output-file requirements/interop-deploy.txt
	$(COMPILE) requirements/interop-clients.in --output-file requirements/interop-clients.txt
	$(COMPILE) requirements/audit.in --output-file requirements/audit.txt
	$(COMPILE) requirements/site.in --output-file requirements/site.txt
	$(COMPILE) bench/peers/pins/fastmcp.in --output-file bench/peers/pins/fastmcp.txt
	$(COMPILE) bench/peers/pins/mcp-proxy.in --output-file bench/peers/pins/mcp-proxy.txt
	$(COMPILE) bench/peers/pins/contextforge.in --output-file bench/peers/pins/contextforge.txt
	$(COMPILE) bench/peers/pins/litellm.in --output-file bench/peers/pins/litellm.txt

clean: ## remove everything that was made, .venv included
	rm -rf $(VENV) .tools .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(PLACE): $(MOVED)
	@sh scripts/make_venv.sh $(VENV)
	@printf '%s\n' '$(CURDIR)' > $@

$(RUN_READY): $(PLACE) requirements/run.txt pyproject.toml
	@echo "Installing what the gateway needs to run ..."
	@$(PIP) install --require-hashes --requirement requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV_READY): $(RUN_READY) requirements/dev.txt
	@echo "Installing what a developer needs ..."
	@$(PIP) install --require-hashes --requirement requirements/dev.txt
	@touch $@

moved:
	@echo "$(VENV) was made in another place; making it again."
