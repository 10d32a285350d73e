"""The search for the largest batch, on cards whose memory ends anywhere."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.bench.search import RESOLUTION, Outcome, doublings, find_largest


class FakeCard:
    """Holds ``capacity`` images in a fresh child and, after its first batch, less by ``lost`` of them."""

    def __init__(self, capacity: int, lost: int = 0, broken_from: int = 1 << 30) -> None:
        self.capacity, self.lost, self.broken_from = capacity, lost, broken_from
        self.children: list[tuple[int, ...]] = []
        self.ends: list[Outcome] = []

    def attempt(self, batches: tuple[int, ...]) -> list[Outcome]:
        """Try batches until one is not good."""
        self.children.append(batches)
        outcomes: list[Outcome] = []
        for at, batch in enumerate(batches):
            room = self.capacity - (self.lost if at else 0)
            outcome: Outcome = "failed" if batch >= self.broken_from else "fits" if batch <= room else "oom"
            outcomes.append(outcome)
            if outcome != "fits":
                break
        self.ends.append(outcomes[-1])
        return outcomes


@settings(max_examples=300, deadline=None)
@given(capacity=st.integers(0, 5000), lost=st.integers(0, 5000), first=st.integers(1, 64), most=st.integers(1, 4096))
def test_largest_batch_is_found_wherever_memory_ends(capacity: int, lost: int, first: int, most: int) -> None:
    """It fits, and what is an eighth larger does not, however fragmented a used child is; in a bounded time."""
    card = FakeCard(capacity, lost)
    found = find_largest(card.attempt, first, most)
    true = min(capacity, most)
    assert found <= true
    assert true - found < max(1, found // RESOLUTION)
    assert len(card.children) <= 40


@given(broken=st.integers(1, 3000), capacity=st.integers(1, 3000))
def test_another_failure_ends_the_search(broken: int, capacity: int) -> None:
    """What was good before stands, and no child is started after the failure."""
    card = FakeCard(capacity, broken_from=broken)
    found = find_largest(card.attempt, 16, 2048)
    assert found <= min(capacity, broken - 1)
    assert "failed" not in card.ends[:-1]


def test_one_child_doubles_and_each_further_one_halves_the_gap() -> None:
    """Batches of 16 upwards in one child; 512 twice, since a used child may be fragmented; then between."""
    card = FakeCard(330)
    assert find_largest(card.attempt, 16, 1024) == 320
    assert card.children == [(16, 32, 64, 128, 256, 512, 1024), (512, 1024), (384,), (320,), (352,)]


def test_a_good_expectation_saves_children() -> None:
    """What a used child could not hold is believed where it was not expected to fit; then one below, one above."""
    card = FakeCard(330)
    assert find_largest(card.attempt, 16, 1024, lambda: 335.0) == 324
    assert card.children == [(16, 32, 64, 128, 256, 512, 1024), (324,), (364,)]


@settings(max_examples=300, deadline=None)
@given(
    capacity=st.integers(0, 5000), lost=st.integers(0, 5000), most=st.integers(1, 4096), expected=st.floats(0.0, 1e4)
)
def test_a_wrong_expectation_never_misleads(capacity: int, lost: int, most: int, expected: float) -> None:
    """However far off, the largest batch is found all the same, and its bound was seen in a fresh child."""
    card = FakeCard(capacity, lost)
    found = find_largest(card.attempt, 16, most, lambda: expected)
    true = min(capacity, most)
    assert found <= true
    assert true - found < max(1, found // RESOLUTION)
    assert len(card.children) <= 60


def test_batches_double_up_to_the_most() -> None:
    """Both ends included."""
    assert doublings(3, 24) == (3, 6, 12, 24)
    assert doublings(16, 8) == ()
