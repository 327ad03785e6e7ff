# Every development task. Each target installs what it needs; python3, pip and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# `make run` and `make examples` need the gateway and the emulator: about 80 MB with pip. Everything else needs the
# development packages as well. Both live in one environment, so the command is always .venv/bin/lockstitch.
RUN_READY := $(VENV)/.ready-to-run
READY := $(VENV)/.ready
# Twice quiet: errors are shown, warnings and progress are not.
INSTALL := $(BIN)/pip install --quiet --quiet --disable-pip-version-check --no-deps
CHECK := missing=$$($(BIN)/pip check) || { echo "$$missing"; exit 1; }
CODEX := .codex-cli/node_modules/.bin/codex
NPM_INSTALL := npm install --silent --no-fund --no-audit --prefix
CLIENTS := .npm-clients/node_modules/.bin
# JavaScript libraries that the tests compare with. The versions are part of the stamp, so a change installs anew.
AI_SDK := ai-6@npm:ai@6.0.326 ai-7@npm:ai@7.0.173 zod@4.6.7
NPM_READY := .npm-packages/.ready-$(subst :,-,$(subst @,-,$(subst $() ,_,$(AI_SDK))))

.PHONY: run examples test test-codex test-clients test-install check format bench soak picture lock clean help

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(RUN_READY) ## Start the gateway; without OPENAI_API_KEY it forwards to a local mock of the API
	@$(BIN)/lockstitch serve

examples: $(RUN_READY) ## Check the example session files and list their problems
	@$(BIN)/lockstitch check examples --statistics || test $$? -eq 1
	@echo
	@echo "Try: $(BIN)/lockstitch mend --diff examples/codex-killed.jsonl"
	@echo "     $(BIN)/lockstitch check --explain LS001"

test: $(READY) $(NPM_READY) ## Run the tests with fixed examples; THOROUGH=1 draws new ones, THOROUGH=9 nine times as many
# Worksteal: each process runs whole files, which share fixtures, and takes tests from others when idle.
	$(BIN)/pytest -n auto --dist worksteal

test-codex: $(READY) ## Test against the real Codex CLI (downloads about 440 MB from npm, once)
	@test -x $(CODEX) || $(NPM_INSTALL) .codex-cli @openai/codex
	LOCKSTITCH_CODEX=$(CURDIR)/$(CODEX) $(BIN)/pytest -n 2 tests/real_codex

test-clients: $(READY) ## Test against the real pi and opencode (downloads about 570 MB from npm, once)
	@test -x $(CLIENTS)/pi || $(NPM_INSTALL) .npm-clients @mariozechner/pi-coding-agent@0.73.1
	@test -x $(CLIENTS)/opencode || $(NPM_INSTALL) .npm-clients opencode-ai@1.18.33
	LOCKSTITCH_PI=$(CURDIR)/$(CLIENTS)/pi LOCKSTITCH_OPENCODE=$(CURDIR)/$(CLIENTS)/opencode \
		$(BIN)/pytest -n 2 tests/formats/test_pi_client.py tests/formats/test_opencode_client.py

test-install: $(READY) ## Build the package and install it with each extra into a new environment; LATEST=1 for unpinned dependencies
	LOCKSTITCH_TEST_INSTALL=1 $(BIN)/pytest -n 2 tests/install

check: $(READY) ## Run ruff, mypy in strict mode and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY) ## Format the code and apply automatic fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY) ## Run the benchmarks and compare them with their targets; ONLY=check runs one part
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

soak: $(READY) ## Run the gateway for 10 minutes with 200 connections and injected faults; MINUTES=2 for less
	$(BIN)/python -m soak $(if $(MINUTES),--minutes $(MINUTES))

picture: $(READY) ## Draw the picture in the README from the output of `lockstitch demo D`
	$(BIN)/python docs/pictures/draw.py

LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --quiet

lock: ## Update the lock files to match pyproject.toml; UPGRADE=1 also upgrades every version
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet uv
	$(VENV)-lock/bin/$(LOCK) $(if $(UPGRADE),--upgrade) --group dev --output-file requirements.lock
	$(VENV)-lock/bin/$(LOCK) $(if $(UPGRADE),--upgrade) --group build --extra gateway --extra emulator \
		--constraint requirements.lock --output-file requirements-run.lock
	rm -rf $(VENV)-lock

clean: ## Remove everything that the other targets created
	rm -rf $(VENV) .codex-cli .npm-clients .npm-packages .bench-cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The lock files list every package, so pip resolves nothing (--no-deps) and `pip check` reports what is missing.
$(RUN_READY): requirements-run.lock pyproject.toml
	@echo "Installing the gateway and the emulator into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --require-hashes -r requirements-run.lock
	@$(INSTALL) --no-build-isolation --editable .
	@$(CHECK)
	@touch $@

$(NPM_READY):
	@if ! command -v npm >/dev/null; then \
		echo "npm was not found: the tests that need JavaScript libraries are skipped"; \
	elif npm install --silent --no-fund --no-audit --save-exact --prefix .npm-packages $(AI_SDK); then \
		touch $@; \
	else \
		echo "npm could not install $(AI_SDK): the tests that need them are skipped"; \
	fi

$(READY): requirements.lock $(RUN_READY)
	@echo "Installing the development packages into $(VENV): about 700 MB, a few minutes"
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(CHECK)
	@touch $@
