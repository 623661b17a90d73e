# Each target calls `nemolab` or one tool; uv lives in a venv of its own and never touches the system.
SHELL := /bin/bash
UV := .uv/bin/uv
RUN := $(UV) run --locked --no-sync
export UV_PYTHON_DOWNLOADS ?= never

.PHONY: report test lab run check live lock clean
.DEFAULT_GOAL := report

report: .venv/report.ok
	$(RUN) nemolab run runbooks/quickstart.yaml

test: .venv/dev.ok
	$(RUN) bash tests/run.sh

check: .venv/dev.ok
	$(RUN) bash tests/check.sh

lab: .venv/lab.ok
	$(RUN) jupyter lab notebooks/00_start_here.ipynb

# make run RUNBOOK=runbooks/quickstart.yaml
run: .venv/report.ok
	$(RUN) nemolab run $(RUNBOOK)

$(UV): | .uv/preflight.ok
	python3 -m venv .uv && .uv/bin/pip install -q --disable-pip-version-check uv==0.13.9

