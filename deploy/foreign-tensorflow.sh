#!/usr/bin/env bash
# Make an environment with TensorFlow 2.9 where a Python that it supports is found; print its interpreter, or nothing.
set -euo pipefail
venv=$1
if [ ! -x "$venv/bin/python" ] || [ ! -e "$venv/.complete" ]; then
  suits='import sys, ensurepip; raise SystemExit(not (3, 8) <= sys.version_info[:2] <= (3, 10))'
  for python in python3.10 python3.9 python3.8 "$HOME"/.pyenv/versions/3.{10,9,8}.*/bin/python; do
    "$python" -c "$suits" 2>/dev/null && break
    python=
  done
  [ -n "$python" ] || exit 0
  echo "Making $venv with TensorFlow 2.9 on $("$python" --version) …" >&2
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check 'tensorflow-cpu==2.9.0' 'numpy<2' 'protobuf<3.21' >&2
  touch "$venv/.complete"
fi
echo "$venv/bin/python"
