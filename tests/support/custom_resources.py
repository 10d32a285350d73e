"""Checks objects of the Prometheus operator against the models of its CRDs; a script, YAML on standard input."""

import sys

import yaml
from cloudcoil.models.prometheus_operator import v1

_KINDS = {"ServiceMonitor": v1.ServiceMonitor, "PodMonitor": v1.PodMonitor, "PrometheusRule": v1.PrometheusRule}


def main() -> None:
    """Fail on what a model does not take, and on keys that it does not know: those would be dropped in silence."""
    documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
    for document in documents:
        model = _KINDS[document["kind"]].model_validate(document)
        taken = model.model_dump(by_alias=True, exclude_unset=True, mode="json")
        if taken["spec"] != document["spec"]:
            raise SystemExit(
                f"{document['kind']} {document['metadata']['name']}: {document['spec']} became {taken['spec']}"
            )
    print(" ".join(document["kind"] for document in documents))


if __name__ == "__main__":
    main()
