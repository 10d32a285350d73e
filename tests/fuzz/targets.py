"""What is fuzzed, and what must hold of every input: our own error or a value within its bounds."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client.core import GaugeMetricFamily

from agent.bench.store import load as load_result
from agent.compare.comparison import compare
from agent.compare.model import Comparison
from agent.compare.prices import PricedCard, PriceList, load_prices
from agent.compare.published import published
from agent.compare.ranking import rankings
from agent.compare.render import as_json
from agent.compare.render_html import page
from agent.config.listen import parse_listen
from agent.config.load import load
from agent.config.sample import render
from agent.config.settings import Settings
from agent.errors import ConfigError
from agent.model.plain import plain
from agent.model.probe import ChildEvent, ProbeResult
from agent.model.quantities import BY_KEY, QUANTITIES
from agent.model.text import clean_label
from agent.nvml import protocol
from agent.nvml.store import believable
from agent.probes.decode import BadResultError, EventDecoder
from exporters.errors import WebConfigError
from exporters.exposition import Encoder
from exporters.web.schema import decode_document

CORPUS = Path(__file__).parent / "corpus"
Check = Callable[[bytes], bool]
"""Returns whether the input was accepted; fails with AssertionError where a promise is broken."""


class Target(NamedTuple):
    """One reader: its own words, its share of all inputs, and how a check is made, given a folder to work in."""

    name: str
    words: Sequence[bytes]
    share: float
    make: Callable[[Path], Check]

    def corpus(self) -> list[bytes]:
        """Return the inputs to begin with, in the order of their files."""
        return [path.read_bytes() for path in sorted((CORPUS / self.name).iterdir())]


def _probe_results(_folder: Path) -> Check:
    def check(data: bytes) -> bool:
        whole = _events(data, len(data) or 1)
        assert whole == _events(data, 7), "the result depends on how the bytes arrive"
        for event in whole or ():
            again = list(EventDecoder().feed(msgspec.json.encode(event, enc_hook=plain) + b"\n"))
            assert again == [event], "an accepted event does not survive its own form"
            if isinstance(event, ProbeResult) and event.value is not None:
                assert event.status == "ok"
                assert 0 < event.value < math.inf
        return bool(whole)

    return check


def _events(data: bytes, piece_bytes: int) -> list[ChildEvent] | None:
    """Return the events of ``data`` fed in pieces; None where it was refused at some point."""
    decoder, found = EventDecoder(), list[ChildEvent]()
    try:
        for start in range(0, len(data), piece_bytes):
            found += decoder.feed(data[start : start + piece_bytes])
    except BadResultError:
        return None
    return found


def _reader_lines(_folder: Path) -> Check:
    def check(data: bytes) -> bool:
        try:
            lines = protocol.LineBuffer().feed(data + b"\n")
            messages = [protocol.decode_event(line) for line in lines]
        except protocol.ProtocolError:
            return False
        for message in messages:
            assert protocol.decode_event(protocol.encode(message).rstrip()) == message
            if isinstance(message, protocol.Values):
                served, dropped = believable(message.values)
                assert all(BY_KEY[key].low <= value <= BY_KEY[key].high for key, value in served.items())
                assert not set(served) & set(dropped)
        return True

    return check


def _configuration(folder: Path) -> Check:
    path = folder / "heatsoak.toml"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        text = data[:200].decode("utf-8", "replace").replace("\0", "")
        _check_listen(text)
        _loaded(path, {"HEATSOAK_NODE_RACK": text, "HEATSOAK_AGENT_TICK_S": text[:8]})
        settings = _loaded(path, {})
        if isinstance(settings, list):
            assert all(fault.startswith(str(path)) for fault in settings), settings
            return False
        path.write_text(render(settings))
        assert _loaded(path, {}) == settings, "what `config show` prints is another configuration"
        return True

    return check


def _loaded(path: Path, environ: Mapping[str, str]) -> Settings | list[str]:
    """Return the settings, or every fault; each is one line that can be printed."""
    try:
        return load(str(path), environ)
    except ConfigError as error:
        faults = list(error.faults)
    assert faults
    assert all(fault and fault.isprintable() for fault in faults), faults
    return faults


def _check_listen(text: str) -> None:
    try:
        address = parse_listen(text)
    except ConfigError:
        return
    assert parse_listen(str(address)) == address


def _web_configuration(_folder: Path) -> Check:
    def check(data: bytes) -> bool:
        try:
            document = decode_document(data, "web.yaml")
        except WebConfigError as error:
            faults = list(error.faults)
        else:
            document.rate_limit.interval_s()
            headers: Mapping[str, str] = dict(document.http_server_config.headers.items())
            assert not [value for value in headers.values() if "\n" in value or "\r" in value]
            return True
        assert faults
        assert all(fault.startswith("web.yaml") for fault in faults), faults
        return False

    return check


_SAMPLE = re.compile(r'm\{label="((?:[^"\\\n]|\\["\\n])*)"\} 1\.0\n')
_ESCAPES = {r"\"": '"', r"\\": "\\", r"\n": "\n"}


def _labels(_folder: Path) -> Check:
    encoder = Encoder()

    def check(data: bytes) -> bool:
        text = data.decode("utf-8", "surrogateescape")  # as Python decodes what the kernel names
        label = clean_label(text)
        assert len(label) <= 128
        assert label.isprintable()
        label.encode("utf-8")
        assert clean_label(label) == label
        assert label == text or not text.isprintable() or len(text) > 128
        family = GaugeMetricFamily("m", "Help.", labels=["label"])
        family.add_metric([label], 1)
        (block,) = encoder.write([family])
        written = _SAMPLE.fullmatch(block.samples)
        assert written, block.samples
        assert re.sub(r'\\["\\n]', lambda found: _ESCAPES[found[0]], written[1]) == label
        return label == text

    return check


def _results(folder: Path) -> Check:
    path = folder / "result.json"
    prices = PriceList(currency="EUR", years=1.0, utilisation=1.0, card=(PricedCard(name="x", price=1.0),))

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        try:
            result = load_result(path)
        except ConfigError as error:
            return _refused(path, error.faults)
        compared = compare([result, result], prices, published())
        for ranking in compared.rankings:
            assert all(math.isfinite(row.value) for row in ranking.rows)
        assert msgspec.json.decode(as_json(compared), type=Comparison) == compared
        assert "<script" not in page(compared, ())
        return True

    return check


def _refused(path: Path, faults: Sequence[str]) -> bool:
    assert faults
    assert all(fault.startswith(str(path)) and fault.isprintable() for fault in faults), faults
    return False


def _price_lists(folder: Path) -> Check:
    path = folder / "prices.toml"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        try:
            prices = load_prices(path)
        except ConfigError as error:
            return _refused(path, error.faults)
        for ranking in rankings((), prices):
            values = [row.value for row in ranking.rows]
            assert values == sorted(values, reverse=ranking.higher_is_better)
            assert all(math.isfinite(value) for value in values)
        return True

    return check


TARGETS = (
    Target(
        "probe_results",
        (b'"status":"ok"', b'"value":null', b"result", b"byte/s", b"wrong_answer"),
        0.28,
        _probe_results,
    ),
    Target("reader_protocol", tuple(f'"{row.key}":'.encode() for row in QUANTITIES[:20]), 0.30, _reader_lines),
    Target("labels", (b"\xcc\x81" * 20, b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf"), 0.27, _labels),
    Target(
        "configuration",
        (b"[probe]", b"tick_s = ", b'listen = "', b"rules.", b"1979-05-27", b'"""'),
        0.05,
        _configuration,
    ),
    Target(
        "bench_results", (b'"shape":"1x1x1x3"', b'"value":0', b"1e308", b'"figures":{}', b"<script>"), 0.01, _results
    ),
    Target("price_lists", (b"[[card]]", b"price = 1e308", b"nan", b"years = 1e-300", b"watts = "), 0.02, _price_lists),
    Target("web_configuration", (b"TLS12", b"cert: |", b"- ", b"? ", b"<<: ", b"$2y$31$"), 0.07, _web_configuration),
)
"""All readers of what others write; their shares add up to 1."""
