#!/bin/sh
# Within the image's build: make the agent's environment in /opt/heatsoak, and a list of what is in it (CycloneDX).
set -eu
python=$1
# pip of the image may be older than its option --python (22.3), as Ubuntu 22.04's is: a newer one for this build only.
if ! "$python" -m pip --help | grep -e --python >/dev/null; then
  "$python" -m pip install --no-cache-dir --target /tmp/pip pip
  export PYTHONPATH=/tmp/pip
fi
"$python" -m venv --without-pip /opt/heatsoak
"$python" -m pip --python /opt/heatsoak/bin/python install --no-cache-dir --constraint /src/constraints.txt '/src[kubernetes]'
"$python" -m venv --without-pip /tmp/sbom
"$python" -m pip --python /tmp/sbom/bin/python install --no-cache-dir cyclonedx-bom
unset PYTHONPATH
/tmp/sbom/bin/cyclonedx-py environment --output-format JSON --output-file /opt/heatsoak/sbom.json /opt/heatsoak/bin/python
rm -rf /tmp/sbom
