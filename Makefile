# Everything a developer runs. Each target does its own set-up; python3, pip and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODEX := .codex-cli/node_modules/.bin/codex

.PHONY: run examples test test-codex check format bench soak lock clean help

help: ## What there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(READY) ## The gateway; without OPENAI_API_KEY on an emulator, so that it answers at once
	@$(BIN)/lockstitch serve

examples: $(READY) ## Check the example sessions and show what is wrong with them
	@$(BIN)/lockstitch check examples --statistics || test $$? -eq 1
	@echo
	@echo "Try: $(BIN)/lockstitch mend --diff examples/codex-killed.jsonl"
	@echo "     $(BIN)/lockstitch check --explain LS001"

test: $(READY) ## The test suite, the same each time; THOROUGH=1 for new examples, THOROUGH=9 for nine times as many
# Worksteal: a process keeps to its own files and what they have set up, and takes from another's when
# it has nothing left.
	$(BIN)/pytest -n auto --dist worksteal

test-codex: $(READY) ## The real Codex CLI: mended rollouts, the emulator, the gateway (downloads about 440 MB from npm, once)
	@test -x $(CODEX) || npm install --silent --no-fund --no-audit --prefix .codex-cli @openai/codex
	LOCKSTITCH_CODEX=$(CURDIR)/$(CODEX) $(BIN)/pytest -n 2 tests/real_codex

check: $(READY) ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY) ## Put the code into shape
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY) ## Ratios against peers, measured side by side; ONLY=check for one part
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

soak: $(READY) ## The gateway for 10 minutes with 200 connections and faults; MINUTES=2 for less
	$(BIN)/python -m soak $(if $(MINUTES),--minutes $(MINUTES))

lock: ## Pin the newest versions: names, versions and hashes, no addresses
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet uv
	$(VENV)-lock/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
		--upgrade --quiet --output-file requirements.lock
	rm -rf $(VENV)-lock

clean: ## Remove what was built
	rm -rf $(VENV) .codex-cli .bench-cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): requirements.lock pyproject.toml
	@echo "Installing what development needs into $(VENV), once: a few minutes, about 700 MB"
	$(PYTHON) -m venv $(VENV)
# The lock names everything, so nothing is resolved: pip would look for newer releases of what is asked for
# with an extra, and refuse them. What the lock might lack is told by pip check.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/pip check --quiet --disable-pip-version-check
	@touch $@
