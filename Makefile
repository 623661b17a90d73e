# Every target is one command over `nemolab` or a tool; tools/setup.sh prepares what it needs (uv in .uv, packages in .venv).
RUN := .uv/bin/uv run --locked --no-sync
RUNBOOK ?= runbooks/quickstart.yaml
LOCKED := pyproject.toml uv.lock tools/setup.sh

.DEFAULT_GOAL := report
.PHONY: report test lab run check live long clean

report: .venv/report.ok  ## run the quickstart on the embedded engine; prints the report's path and verdict
	@$(RUN) nemolab run runbooks/quickstart.yaml

test: .venv/dev.ok  ## all tests: units, faults, reports in replay, one live runbook
	@$(RUN) pytest -n 2 --dist loadfile

live: .venv/dev.ok  ## only the tests that start the embedded engine
	@$(RUN) pytest -m live

long: .venv/report.ok  ## the way to a million tokens on the embedded engine, scaled: up to 131,072
	@$(RUN) nemolab run runbooks/long.yaml

check: .venv/dev.ok  ## ruff, mypy, import-linter, notebook linter
	@$(RUN) tools/check.sh

lab: .venv/lab.ok  ## JupyterLab, opened at the first notebook
	@$(RUN) jupyter lab notebooks/00_start_here.ipynb

run: .venv/report.ok  ## make run RUNBOOK=runbooks/...yaml
	@$(RUN) nemolab run $(RUNBOOK)

.venv/%.ok: $(LOCKED)
	@tools/setup.sh $*

clean:  ## remove the environments; reports stay
	rm -rf .uv .venv
