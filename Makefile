# heatsoak: `make run` shows this machine, `make test` proves the code; both set up what they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
VENV ?= .venv
PY := $(VENV)/bin/python
EXTRA := $(shell if [ -e /dev/nvidia0 ] || [ -e /proc/driver/nvidia/version ]; then echo gpu; else echo cpu; fi)
PORT ?= 9838
CPUS := $(shell nproc)
# One more than CPUs: many tests wait for other processes part of their time.
WORKERS ?= $(shell expr $(CPUS) + 1)

.PHONY: help run demo test lint test-system fuzz soak faultbench docs clean

help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.installed-$(EXTRA) ## install into .venv and run the agent on this machine, probing every 30 s
	@mkdir -p .build/state
	@echo; echo "  heatsoak is starting; its page: http://localhost:$(PORT)/   metrics: http://localhost:$(PORT)/metrics"; echo
	@HEATSOAK_PROBE_DEVICE=$(EXTRA) HEATSOAK_PROBE_INTERVAL_S=30 HEATSOAK_PROBE_FIRST_DELAY_S=5 \
	  HEATSOAK_PROBE_DUTY_BUDGET=1 HEATSOAK_PROBE_DAILY=false HEATSOAK_WEB_LISTEN=:$(PORT) HEATSOAK_STATE_DIR=.build/state \
	  exec $(VENV)/bin/heatsoak run

demo: $(VENV)/.installed-dev ## agents in replay, Prometheus and Alertmanager: a burn-in with a hot card, a slow card, a starving job
	$(PY) -m deploy.demo

test: $(VENV)/.installed-dev ## install into .venv and run every test a plain user can run
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	HEATSOAK_TF29_PYTHON="$${HEATSOAK_TF29_PYTHON-$$(deploy/foreign-tensorflow.sh $(VENV)-tf29)}" \
	  $(PY) -m pytest -n $(WORKERS) -m "not system"

test-system: $(VENV)/.installed-dev ## boot systemd, build and run the image, check the Kubernetes manifests; needs root
	@deploy/system-tools.sh $(VENV) .build/tools
	PATH="$(abspath .build/tools)/bin:$$PATH" $(PY) -m pytest -n $(CPUS) --dist loadfile -m system

lint: $(VENV)/.installed-dev ## the static checks alone
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

fuzz: $(VENV)/.installed-dev ## feed a million damaged inputs to everything that reads what others write
	$(PY) -m tests.fuzz --inputs 1000000

faultbench: $(VENV)/.installed-dev ## judge labelled scenarios: recall, false alarms, time to detect, beside today's alert rules
	$(PY) -m benchmarks.faultbench

soak: $(VENV)/.installed-dev ## a week of ticks in about an hour: the agent in a storm of troubles, bad probes, bad scrapers
	$(PY) -m benchmarks.soak

docs: $(VENV)/.installed-dev ## regenerate what is generated: metrics page, sample configuration, dashboards, alert pages
	$(PY) -m agent.docs
	$(PY) -m grafana.build

$(PY):
	@deploy/bootstrap-venv.sh $(VENV)

$(VENV)/.installed-cpu $(VENV)/.installed-gpu: $(VENV)/.installed-%: setup.py constraints.txt | $(PY)
	@echo "Installing heatsoak with TensorFlow ($*), about a minute on a fast line (1.5 GB, with CUDA 5 GB) …"
	$(PY) -m pip install --progress-bar on --disable-pip-version-check -c constraints.txt -e ".[$*]"
	@touch $@

$(VENV)/.installed-dev: setup.py constraints.txt requirements-dev.txt deploy/test-tools.sh | $(PY)
	@deploy/test-tools.sh
	$(PY) -m pip install --progress-bar on --disable-pip-version-check -c constraints.txt -e ".[cpu,kubernetes,report]" -r requirements-dev.txt
	@touch $@

clean: ## remove what make made
	rm -rf $(VENV) .build
