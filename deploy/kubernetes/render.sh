#!/usr/bin/env bash
# Make the kustomize bases from the chart, the one source of both: render.sh [DIRECTORY]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${1:-$here/kustomize}
mkdir -p "$target/base" "$target/monitoring"
render() { # render OUTPUT TEMPLATE… -- OPTION…
  local output=$1 templates=()
  shift
  while [ "$1" != -- ]; do
    templates+=(--show-only "templates/$1.yaml")
    shift
  done
  {
    echo "# Made from the chart by deploy/kubernetes/render.sh; do not edit."
    helm template heatsoak "$here/chart" --namespace heatsoak "${templates[@]}" "${@:2}" 2>/dev/null |
      grep -vE '^# Source: |^ +(app.kubernetes.io/managed-by|helm.sh/chart): ' | cat -s
  } >"$target/$output"
}
render base/heatsoak.yaml serviceaccount configmap service daemonset --
render monitoring/heatsoak-monitoring.yaml monitor prometheusrule -- \
  --set monitor.kind=ServiceMonitor --set prometheusRule.enabled=true
