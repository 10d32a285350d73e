#!/usr/bin/env bash
# Make a virtual environment with the newest Python from 3.10 to 3.13 found here.
set -euo pipefail
venv=$1
suits='import sys; raise SystemExit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'
for python in python3 python3.13 python3.12 python3.11 python3.10; do
  command -v "$python" >/dev/null && "$python" -c "$suits" 2>/dev/null && break
  python=
done
if [ -z "$python" ]; then
  echo "heatsoak needs Python 3.10 to 3.13; found: $(python3 --version 2>&1 || echo none). Install one, e.g. apt-get install python3 python3-venv" >&2
  exit 2
fi
echo "Making $venv with $($python --version) …"
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  package=python3-venv
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package"
  else
    echo "$python has no venv module; as root: apt-get install $package" >&2
    exit 2
  fi
fi
"$python" -m venv "$venv"
