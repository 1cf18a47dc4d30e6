"""Schedules and orders: the exact law of what is drawn, by enumeration."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest
import torch

from sabre.processes import ORDERS, Blocks, MaskedDiffusion, Schedule, make_order
from sabre.tape import Tape, all_states, enumerate_outcomes
from sabre.targets import ManyWell, Potts
from small import grid_layout


class SharedTape(Tape):
    """One world of draws that a whole batch shares: the tape has one row, and all axes of a draw belong to it."""

    def __init__(self, world=0):
        super().__init__(torch.tensor([world]))

    def integers(self, high, shape):
        return super().integers(high, (1, *shape))[0]


def law_of(draw):
    """Probability of each outcome of `draw(tape)`, a tuple."""
    probe = SharedTape()
    draw(probe)
    law = Counter()
    for world in range(probe.num_worlds):
        tape = SharedTape(world)
        law[draw(tape)] += float(tape.log_probability.exp())
    return law


def step_by_step(left, k_min, k_max):
    """The law of k_1..k_N from its description: each step takes a uniform number, the last one what is left."""
    if left == 0:
        return Counter({(): Fraction(1)})
    law = Counter()
    for k in range(k_min, k_max + 1):
        for rest, p in step_by_step(left - min(k, left), k_min, k_max).items():
            law[(min(k, left), *rest)] += p / (k_max - k_min + 1)
    return law


def same_law(one, other):
    return one.keys() == other.keys() and all(abs(one[k] - float(other[k])) < 1e-12 for k in one)


def drawn(schedule, num_tokens):
    return law_of(lambda tape: tuple(schedule.draw(num_tokens, tape).tolist()))


@pytest.mark.parametrize(("num_tokens", "k_min", "k_max"), [(5, 1, 3), (6, 1, 2), (7, 2, 4), (3, 2, 5), (1, 1, 3)])
def test_a_random_schedule_has_exactly_its_law(num_tokens, k_min, k_max):
    law = drawn(Schedule(k_min, k_max), num_tokens)
    assert same_law(law, step_by_step(num_tokens, k_min, k_max))
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    if num_tokens > 1:
        assert not same_law(law, step_by_step(num_tokens, k_max, k_max))
        assert not same_law(law, step_by_step(num_tokens, k_min, k_max + 1))


@pytest.mark.parametrize(
    ("num_tokens", "k", "sizes"), [(6, 1, (1,) * 6), (6, 2, (2, 2, 2)), (7, 3, (3, 3, 1)), (2, 4, (2,))]
)
def test_a_fixed_schedule_draws_nothing(num_tokens, k, sizes):
    assert drawn(Schedule(k, k), num_tokens) == {sizes: 1.0}


def orders_of(name, layout):
    """Probability of each order, by enumeration of a draw for a batch of rows."""
    outcomes = enumerate_outcomes(
        lambda x, tape: make_order(name, layout).draw(len(x), tape), all_states(1, 2)[:1], max_worlds=10**4
    )
    law = Counter()
    for order, p in zip(outcomes.value.tolist(), outcomes.probability.tolist(), strict=True):
        law[tuple(order)] += p
    return law


def uniform(*classes):
    """The law of orders in which each class in turn is revealed, uniformly shuffled."""
    orders = [
        tuple(itertools.chain(*parts)) for parts in itertools.product(*[itertools.permutations(c) for c in classes])
    ]
    return Counter(dict.fromkeys(orders, Fraction(1, len(orders))))


GRID = grid_layout(2, 3)
CODE = ManyWell(2, bits=3).layout
LINE = Blocks.boxes(ManyWell(2, bits=4).layout, 2, (1, 2)).layout

ORDER_CASES = [
    ("random", grid_layout(1, 4), uniform(range(4))),
    ("raster", GRID, uniform(*[[i] for i in range(6)])),
    ("checkerboard", GRID, uniform([0, 2, 4], [1, 3, 5])),
    ("checkerboard", grid_layout(3, 2), uniform([0, 3, 4], [1, 2, 5])),
    ("checkerboard", grid_layout(1, 1), uniform([0])),
    ("significance", CODE, uniform([0], [3], [1], [4], [2], [5])),
    ("significance", LINE, uniform([0], [2], [1], [3])),
]


@pytest.mark.parametrize(("name", "layout", "expected"), ORDER_CASES)
def test_an_order_has_exactly_its_law(name, layout, expected):
    assert same_law(orders_of(name, layout), expected)


def test_other_classes_are_noticed_and_every_order_is_in_the_table():
    assert not same_law(orders_of("checkerboard", GRID), uniform([0, 1, 2], [3, 4, 5]))
    assert not same_law(orders_of("checkerboard", GRID), uniform([1, 3, 5], [0, 2, 4]))
    assert {name for name, _, _ in ORDER_CASES} == set(ORDERS)


@pytest.mark.parametrize("name", ["random", "checkerboard"])
def test_a_path_draws_order_and_schedule_independently(name):
    target = Potts(2, 2, 1.0)
    blocks = Blocks.boxes(target.layout, 2, (1, 1))
    process = MaskedDiffusion(blocks, make_order(name, blocks.layout), Schedule(1, 2))

    def draw(tape):
        path = process.draw_path(1, tape)
        return (tuple(path.order[0].tolist()), tuple(path.schedule.tolist()))

    classes = [range(4)] if name == "random" else [[0, 3], [1, 2]]
    sizes = step_by_step(4, 1, 2)
    expected = {(o, k): p * q for o, p in uniform(*classes).items() for k, q in sizes.items()}
    assert same_law(law_of(draw), expected)
