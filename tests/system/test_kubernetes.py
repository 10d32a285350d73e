"""The chart and the kustomize bases: rendered in every way, and held to the schemas of Kubernetes and the operator."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.config.load import load
from agent.probes.memory import needed_mib
from agent.probes.plan import plans
from tests.support.agent import ROOT

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

_KUBERNETES = ROOT / "deploy" / "kubernetes"
_CHART = _KUBERNETES / "chart"
_TOOLS = ROOT / ".build" / "tools" / "bin"
_VERSIONS = ("1.30", "1.37")
_OPERATOR = "monitoring.coreos.com/v1"
_SETS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "idle": ("probes.schedule=idle", "state.kind=emptyDir", "gpuAccess=volumeMounts", "runtimeClassName=nvidia"),
    "burnin_label": ("probes.schedule=burnin-label", "gpuAccess=cdi", "priorityClassName=system-node-critical"),
    "burnin_label_everywhere": ("probes.schedule=burnin-label", "gpuNodeTerms=null"),
    "privileged": ("gpuAccess=privileged", "gpuNodeTerms=null", "tolerations=null", "hostNetwork=true"),
    "contained": ("hostPID=false", "serviceAccount.create=false", "fullnameless=", "resources.limits.memory=1Gi"),
    "attributed": ("podResources.enabled=true", "config.node.rack=r7", "config.agent.tick_s=2"),
    "secured": (
        "web.configSecret=web", "web.scheme=HTTPS", "web.healthHeaders[0].name=Authorization",
        "web.healthHeaders[0].value=Basic YTpi", "networkPolicy.enabled=true",
        "networkPolicy.from[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=monitoring",
    ),
    "client_certificates": (
        "web.configSecret=web", "web.scheme=HTTPS", "web.healthCheck=tcp", "networkPolicy.enabled=true",
    ),
    "labelled": (
        "podLabels.team=a", "podAnnotations.note=b", "nodeSelector.zone=c", "imagePullSecrets[0].name=d",
        "image.tag=e", "extraEnv[0].name=LD_LIBRARY_PATH", "extraEnv[0].value=/x", "serviceAccount.name=f",
    ),
    "service_monitor": (
        "monitor.kind=ServiceMonitor", "monitor.labels.release=a", "monitor.endpoint.scrapeTimeout=10s",
    ),
    "pod_monitor": ("monitor.kind=PodMonitor", "prometheusRule.enabled=true", "prometheusRule.labels.release=a"),
    "dashboards": ("dashboards.enabled=true", "dashboards.annotations.folder=gpu"),
}  # fmt: skip


def _run(*command: str, text: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=100, check=False)
    assert not check or ended.returncode == 0, f"{command}: {ended.stdout[-3000:]}{ended.stderr[-3000:]}"
    return ended


def _render(*values: str, release: str = "heatsoak") -> list[dict[str, Any]]:
    options = [word for value in values if not value.startswith("fullnameless") for word in ("--set", value)]
    text = _run("helm", "template", release, str(_CHART), "--namespace", "gpu", *options).stdout
    return [document for document in yaml.safe_load_all(text) if document]


def _validate(documents: list[dict[str, Any]], folder: Path) -> None:
    """Hold documents to the schemas: Kubernetes' own of two versions, and the operator's."""
    operators = [document for document in documents if document["apiVersion"] == _OPERATOR]
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(document for document in documents if document not in operators))
    for version in _VERSIONS:
        _run("kubernetes-validate", "--strict", "-k", version, str(path))
    told = _run(
        str(_TOOLS / "python"),
        str(ROOT / "tests" / "support" / "custom_resources.py"),
        text=yaml.safe_dump_all(operators),
    ).stdout.split()
    assert told == [document["kind"] for document in operators]


def _agents(documents: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for document in documents:
        if document["kind"] == "DaemonSet":
            pod = document["spec"]["template"]["spec"]
            yield pod, pod["containers"][0]


def _environment(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


def test_helm_finds_nothing_to_complain_of() -> None:
    """`helm lint --strict` passes."""
    _run("helm", "lint", "--strict", str(_CHART))


@pytest.mark.parametrize("name", _SETS)
def test_every_way_to_render_the_chart_gives_valid_objects(name: str, tmp_path: Path) -> None:
    """Each branch of each template, against two versions of Kubernetes and the operator's CRDs."""
    _validate(_render(*_SETS[name], release="x" if name == "contained" else "heatsoak"), tmp_path)


def test_the_sets_reach_every_branch_of_every_template() -> None:
    """Each line of a template that is not control flow shows up in some rendering, by its first word."""
    rendered = "\n".join(
        _run("helm", "template", "heatsoak", str(_CHART), *_words(values)).stdout for values in _SETS.values()
    )
    keys = {line.strip().removeprefix("- ").split(":")[0] for line in rendered.splitlines()}
    for template in (_CHART / "templates").glob("*.yaml"):
        for line in template.read_text(encoding="utf-8").splitlines():
            word = line.strip().removeprefix("- ").split(":")[0]
            if word and ":" in line and word[0] not in "{#" and "{{" not in word:
                assert word in keys, f"{template.name}: {line}"


def _words(values: tuple[str, ...]) -> list[str]:
    return [word for value in values if not value.startswith("fullnameless") for word in ("--set", value)]


@pytest.mark.parametrize(
    "value", ["gpuAcces=env", "gpuAccess=all", "probes.schedule=daily", "web.port=80", "monitor.interval=15"]
)
def test_a_wrong_value_is_refused(value: str) -> None:
    """The values' schema knows every key and every word."""
    assert _run("helm", "template", "heatsoak", str(_CHART), "--set", value, check=False).returncode != 0


def test_by_default_nothing_is_privileged_asked_for_or_probed() -> None:
    """No card requested, no capability, no token, no writable root, no probes, and the host seen read-only."""
    ((pod, container),) = _agents(_render())
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any("gpu" in name for kind in container["resources"].values() for name in kind)
    assert (pod["automountServiceAccountToken"], pod["hostPID"]) == (False, True)
    environment = _environment(container)
    assert environment["HEATSOAK_PROBE_ENABLED"] == "false"
    assert environment["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    host = {volume["name"] for volume in pod["volumes"] if "hostPath" in volume} - {"state"}
    assert host == {"sys"}
    assert all(mount["readOnly"] for mount in container["volumeMounts"] if mount["name"] in host)
    assert not {"Role", "ClusterRole", "RoleBinding"} & {document["kind"] for document in _render()}


def test_without_the_hosts_pids_nothing_of_the_host_is_mounted() -> None:
    """Then the agent sees a container's view and knows it."""
    ((pod, container),) = _agents(_render("hostPID=false", "state.kind=emptyDir"))
    assert not any("hostPath" in volume for volume in pod["volumes"])
    assert "HEATSOAK_HOST_SYS_ROOT" not in _environment(container)


def test_with_the_burn_in_label_each_node_fits_exactly_one_set() -> None:
    """Labelled nodes are probed and the others are not; both sets select by the same labels else."""
    plain, burnin = _agents(_render("probes.schedule=burnin-label"))
    assert [_environment(container)["HEATSOAK_PROBE_ENABLED"] for _, container in (plain, burnin)] == ["false", "true"]

    def terms(pod: dict[str, Any]) -> list[list[dict[str, Any]]]:
        affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return [term["matchExpressions"] for term in affinity["nodeSelectorTerms"]]

    for without, with_label in zip(terms(plain[0]), terms(burnin[0]), strict=True):
        assert without[:-1] == with_label[:-1]
        assert (without[-1]["operator"], with_label[-1]["operator"]) == ("NotIn", "In")


def test_the_memory_limit_leaves_room_for_a_probe() -> None:
    """Where probes run, the agent and what must be free before a child starts fit below the limit."""
    ((_, container),) = _agents(_render("probes.schedule=idle"))
    limit = container["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    every = [request for plan in plans("gpu", daily=True, data_dir="") for request in plan.requests]
    configured_mib = load(None, {}, ROOT / "nothing").probe.host_memory_mib
    assert float(limit.removesuffix("Gi")) * 1024 >= needed_mib(every, "gpu", configured_mib) + 512


def test_the_configuration_of_the_chart_is_one_that_the_agent_takes(tmp_path: Path) -> None:
    """What values.config holds reaches the agent as its settings, and a change rolls the pods."""
    documents = _render("config.node.rack=r7", "config.verdicts.throttle.window_s=60", "podResources.enabled=true")
    path = tmp_path / "heatsoak.toml"
    path.write_text(next(one for one in documents if one["kind"] == "ConfigMap")["data"]["heatsoak.toml"])
    settings = load(str(path), {})
    assert (settings.node.rack, settings.verdicts.throttle.window_s) == ("r7", 60.0)
    assert settings.allocation.pod_resources == "/pod-resources/kubelet.sock"

    def rolled(*values: str) -> str:
        (document,) = (one for one in _render(*values) if one["kind"] == "DaemonSet")
        return str(document["spec"]["template"]["metadata"]["annotations"]["heatsoak.io/config"])

    assert rolled() == rolled()
    assert rolled("config.node.rack=r7") != rolled("config.node.rack=r8")


def test_the_environment_of_the_chart_holds_settings_only() -> None:
    """A misspelt variable would be ignored: each HEATSOAK_ name must be one the agent knows."""
    for values in _SETS.values():
        for _, container in _agents(_render(*values)):
            environment = {
                name: value for name, value in _environment(container).items() if name.startswith("HEATSOAK_")
            }
            load(None, environment, ROOT / "nothing")
            from agent.config.load import unknown_variables

            assert unknown_variables(environment) == ()


def test_rules_and_dashboards_are_those_of_the_repository() -> None:
    """The operator's objects hold exactly what promtool tests and what grafana/ builds."""
    documents = _render("prometheusRule.enabled=true", "dashboards.enabled=true")
    rules = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "PrometheusRule"}
    for name in ("alerts", "recording"):
        source = yaml.safe_load((ROOT / "deploy" / "prometheus" / f"heatsoak-{name}.yaml").read_text(encoding="utf-8"))
        assert rules[f"heatsoak-{name}"] == source
    boards = {
        key: json.loads(text)
        for one in documents
        if one["kind"] == "ConfigMap"
        for key, text in one["data"].items()
        if key.endswith(".json")
    }
    assert boards == {
        path.name: json.loads(path.read_text(encoding="utf-8"))
        for path in (ROOT / "grafana" / "dashboards").glob("*.json")
    }
    assert boards


def test_the_kustomize_bases_are_those_the_chart_renders_today(tmp_path: Path) -> None:
    """Rendering anew changes nothing."""
    _run(str(_KUBERNETES / "render.sh"), str(tmp_path))
    for made in tmp_path.rglob("*.yaml"):
        kept = _KUBERNETES / "kustomize" / made.relative_to(tmp_path)
        assert kept.read_text(encoding="utf-8") == made.read_text(encoding="utf-8"), "run deploy/kubernetes/render.sh"


@pytest.mark.parametrize("folder", ["kustomize/base", "kustomize/monitoring"])
def test_the_kustomize_bases_are_valid(folder: str, tmp_path: Path) -> None:
    """`kubectl kustomize` builds each, and the schemas take what it builds."""
    built = _run("kubectl", "kustomize", str(_KUBERNETES / folder)).stdout
    _validate([document for document in yaml.safe_load_all(built) if document], tmp_path)


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_a_monitor_names_nodes_and_leaves_the_agents_labels_alone(kind: str) -> None:
    """The instance outlives the pod; namespace, pod and container of a card's holder keep their names."""
    (monitor,) = (one for one in _render(f"monitor.kind={kind}") if one["kind"] == kind)
    (endpoint,) = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    assert endpoint["relabelings"] == [
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "instance"},
        {"action": "labeldrop", "regex": "pod"},
    ]


@pytest.mark.parametrize(
    ("access", "asked"),
    [
        ("env", "all"),
        ("volumeMounts", "/var/run/nvidia-container-devices"),
        ("cdi", "nvidia.com/gpu=all"),
        ("privileged", "all"),
    ],
)
def test_only_the_agents_container_asks_for_cards_in_the_way_chosen(access: str, asked: str) -> None:
    """An image made for CUDA would ask for all of them everywhere, and not start where the driver is down."""
    ((pod, container),) = _agents(_render(f"gpuAccess={access}"))
    assert _environment(container)["NVIDIA_VISIBLE_DEVICES"] == asked
    assert [_environment(one)["NVIDIA_VISIBLE_DEVICES"] for one in pod["initContainers"]] == ["void"]


@pytest.mark.parametrize(
    ("version", "recursive"), [("1.30.0", None), ("1.31.0", "IfPossible"), ("1.37.0", "IfPossible")]
)
def test_what_is_mounted_below_the_hosts_sys_is_read_only_too(version: str, recursive: str | None) -> None:
    """A read-only bind holds for the top only; the field that changes it is of Kubernetes 1.31."""
    text = _run("helm", "template", "heatsoak", str(_CHART), "--kube-version", version).stdout
    ((_, container),) = _agents([document for document in yaml.safe_load_all(text) if document])
    (mount,) = (one for one in container["volumeMounts"] if one["name"] == "sys")
    assert (mount["readOnly"], mount.get("recursiveReadOnly")) == (True, recursive)


def test_the_examples_are_valid(tmp_path: Path) -> None:
    """Each example, against the same schemas; a name made by the server is given one first."""
    for path in (_KUBERNETES / "examples").glob("*.yaml"):
        documents = [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]
        for document in documents:
            document["metadata"].setdefault("name", document["metadata"].pop("generateName", "") + "1")
        _validate(documents, tmp_path)


def test_yaml_is_well_kept() -> None:
    """`yamllint` finds nothing in what people edit."""
    rules = (
        "{extends: default, rules: {line-length: {max: 120}, document-start: disable, braces: {max-spaces-inside: 0}}}"
    )
    paths = [_CHART / "values.yaml", _CHART / "Chart.yaml", _KUBERNETES / "examples"]
    paths += (_KUBERNETES / "kustomize").rglob("kustomization.yaml")
    _run("yamllint", "--strict", "-d", rules, *map(str, paths))
