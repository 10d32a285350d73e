"""What a line says is what a caller gets."""

from pathlib import Path

import pytest

from tests.support.fakenvml import write_scenario
from tests.unit.fakenvml.asking import CARD, answers, error

_T = "nvmlDeviceGetTemperature(card[0], 0)"


def _one(tmp_path: Path, lines: str, expression: str) -> object:
    return answers(write_scenario(tmp_path / "x.scenario", CARD + lines), expression)[0]


@pytest.mark.parametrize(
    ("line", "expression", "expected"),
    [
        ("card 0 nvmlDeviceGetTemperature 0 = 34", _T, 34),
        ("card 0 nvmlDeviceGetTemperature NVML_TEMPERATURE_GPU = 0x22", _T, 34),
        ("card all nvmlDeviceGetTemperature = 30+4", _T, 34),
        ("card 0 nvmlDeviceGetTemperature = 644245923", _T, 644245923),
        ("card 0 nvmlDeviceGetTemperature = 4294967295", _T, 4294967295),
        ("card 0 nvmlDeviceGetTemperature 1 = 34", _T, error("NOT_SUPPORTED")),
        ("card 0 nvmlDeviceGetTemperature = GPU_IS_LOST", _T, error("GPU_IS_LOST")),
        ("card 0 nvmlDevice*Temperature = RESET_REQUIRED", _T, error("RESET_REQUIRED")),
        ("card 0 nvmlDeviceGetMigMode = 1 0", "nvmlDeviceGetMigMode(card[0])", [1, 0]),
        ('card 0 nvmlDeviceGetSerial = "a b|c #="', "nvmlDeviceGetSerial(card[0])", "a b|c #="),
        ('card 0 nvmlDeviceGetName = "{index+10:03d} {index:x}"', "nvmlDeviceGetName(card[0])", "010 0"),
        ("card 0 nvmlDeviceGetMinorNumber = 7+index", "nvmlDeviceGetMinorNumber(card[0])", 7),
        (
            "card 0 nvmlDeviceGetUtilizationRates = gpu=7 memory=3",
            "nvmlDeviceGetUtilizationRates(card[0])",
            {"gpu": 7, "memory": 3},
        ),
        (
            "card 0 nvmlDeviceGetTotalEnergyConsumption = 18446744073709551615",
            "nvmlDeviceGetTotalEnergyConsumption(card[0])",
            18446744073709551615,
        ),
        (
            "card 0 nvmlDeviceGetSupportedMemoryClocks = 3201 2619",
            "nvmlDeviceGetSupportedMemoryClocks(card[0])",
            [3201, 2619],
        ),
        ("card 0 nvmlDeviceGetRetiredPages 0 = SUCCESS", "nvmlDeviceGetRetiredPages(card[0], 0)", []),
        ("card 0 nvmlDeviceGetMemoryAffinity = 1", "nvmlDeviceGetMemoryAffinity(card[0], 2, 0)", [1, 0]),
        ("card 0 nvmlDeviceGetTemperatureV 0 = temperature=-5", "nvmlDeviceGetTemperatureV(card[0], 0)", -5),
        (
            "card 0 nvmlDeviceGetDynamicPstatesInfo = flags=1 utilization[2].percentage=42",
            "nvmlDeviceGetDynamicPstatesInfo(card[0]).utilization[2].percentage",
            42,
        ),
        ("card 0 nvmlDeviceSetPersistenceMode 1 = SUCCESS", "nvmlDeviceSetPersistenceMode(card[0], 1)", None),
        ('system nvmlSystemGetDriverVersion = "580.1"', "nvmlSystemGetDriverVersion()", "580.1"),
        ("system nvmlDeviceGetCount_v2 = 7", "nvmlDeviceGetCount()", 7),
        ("", "nvmlDeviceGetHandleByIndex(1)", error("INVALID_ARGUMENT")),
        ("", "nvmlDeviceGetIndex(card[0])", 0),
    ],
)
def test_a_line_decides_the_answer(tmp_path: Path, line: str, expression: str, expected: object) -> None:
    """Numbers, constants, texts, structs, lists and errors arrive as they are written."""
    assert _one(tmp_path, line, expression) == expected


def test_the_last_line_that_fits_decides(tmp_path: Path) -> None:
    """A later line overrides, one for other arguments does not, DEFAULT hands back to an earlier one."""
    lines = """
    card 0 nvmlDeviceGetClockInfo = 100
    card 0 nvmlDeviceGetClockInfo NVML_CLOCK_MEM = 3201
    card 0 nvmlDeviceGetClockInfo NVML_CLOCK_SM = 345
    card 0 nvmlDeviceGetClockInfo NVML_CLOCK_MEM = DEFAULT
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)

    found = answers(path, *(f"nvmlDeviceGetClockInfo(card[0], {kind})" for kind in (0, 1, 2)))

    assert found == [100, 345, 3201]


def test_the_version_of_a_struct_is_honoured(tmp_path: Path) -> None:
    """The caller's version chooses the struct's form; an unknown one is refused."""
    line = "card 0 nvmlDeviceGetMemoryInfo_v2 = total=100GiB used=1GiB free=99GiB reserved=0"
    path = write_scenario(tmp_path / "x.scenario", CARD + line)

    good, bad = answers(
        path, "nvmlDeviceGetMemoryInfo(card[0], nvmlMemory_v2).used", "nvmlDeviceGetMemoryInfo(card[0], 0x3000028)"
    )

    assert good == 1 << 30
    assert bad == error("ARGUMENT_VERSION_MISMATCH")


def test_both_versions_of_a_struct_are_served_from_one_line(tmp_path: Path) -> None:
    """What an older struct has no member for is left out."""
    line = 'card 0 nvmlDeviceGetGpuFabricInfoV = state=3 status=0 cliqueId=5 healthSummary=1 clusterUuid="0aff"'
    ask = "(lambda s: (nvmlDeviceGetGpuFabricInfoV(card[0], byref(s)), s.state, s.cliqueId, s.clusterUuid[1])[1:])"
    path = write_scenario(tmp_path / "x.scenario", CARD + line)

    older, newer = answers(path, f"{ask}(c_nvmlGpuFabricInfo_v2_t())", f"{ask}(c_nvmlGpuFabricInfo_v3_t())")

    assert older[:2] == newer[:2] == [3, 5]


def test_field_values_have_their_own_types_and_errors(tmp_path: Path) -> None:
    """A missing field value is one error among good ones."""
    lines = """
    card 0 field NVML_FI_DEV_MEMORY_TEMP = 33 as uint
    card 0 field NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT = -8
    card 0 field NVML_FI_DEV_POWER_INSTANT 1 = 700
    card 0 field NVML_FI_DEV_ENERGY = GPU_IS_LOST
    card 0 field 147 = 0.5 as double
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)
    ids = "NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, (NVML_FI_DEV_POWER_INSTANT, 1),"

    (found,) = answers(path, f"field(card[0], {ids} (NVML_FI_DEV_POWER_INSTANT, 0), NVML_FI_DEV_ENERGY, 147)")

    assert found == [33, -8, 700, error("NOT_SUPPORTED"), error("GPU_IS_LOST"), 0.5]


def test_a_card_is_found_by_what_is_written_on_it(tmp_path: Path) -> None:
    """UUID, serial and bus id (in short or long form) open the right card."""
    lines = """
    cards 2
    card all nvmlDeviceGetUUID = "GPU-{index}"
    card all nvmlDeviceGetSerial = "S{index}"
    card all pci = "0000:{index+27:02x}:00.0" 7 8
    """
    path = write_scenario(tmp_path / "x.scenario", lines)

    found = answers(
        path,
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(b'GPU-1'))",
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleBySerial(b'S1'))",
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId(b'0000:1C:00.0'))",
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId(b'00000000:1c:00.0'))",
        "nvmlDeviceGetHandleByUUID(b'GPU-2')",
        "nvmlDeviceGetPciInfo(card[1])",
    )

    assert found[:4] == [1, 1, 1, 1]
    assert found[4] == error("NOT_FOUND")
    assert found[5]["busId"] == "00000000:1C:00.0"
    assert (found[5]["bus"], found[5]["pciDeviceId"], found[5]["pciSubSystemId"]) == (28, 7, 8)


def test_mig_devices_are_cards_within_a_card(tmp_path: Path) -> None:
    """Lines about `0.1` concern one MIG device, lines about the card do not."""
    lines = """
    mig 0 2
    card all nvmlDeviceGetName = "card"
    card 0.* nvmlDeviceGetName = "slice"
    card 0.1 nvmlDeviceGetGpuInstanceId = 2
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)
    second = "nvmlDeviceGetMigDeviceHandleByIndex(card[0], 1)"

    found = answers(
        path,
        f"nvmlDeviceGetName({second})",
        f"nvmlDeviceGetGpuInstanceId({second})",
        f"nvmlDeviceIsMigDeviceHandle({second})",
        f"nvmlDeviceGetName(nvmlDeviceGetDeviceHandleFromMigDeviceHandle({second}))",
        "nvmlDeviceGetMigDeviceHandleByIndex(card[0], 2)",
        "nvmlDeviceGetName(card[0])",
    )

    assert found == ["slice", 2, 1, "card", error("NOT_FOUND"), "card"]


def test_nothing_is_answered_before_init_or_after_shutdown(tmp_path: Path) -> None:
    """Calls outside init and shutdown are refused as the driver does."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = 34")

    found = answers(path, _T, "nvmlShutdown()", _T, "nvmlShutdown()", "nvmlInit()", _T)

    assert found == [34, None, error("UNINITIALIZED"), error("UNINITIALIZED"), None, 34]
