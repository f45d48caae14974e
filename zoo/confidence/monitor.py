"""An alarm on labelled answers that may be looked at after every one of them."""

import dataclasses

import numpy as np

from zoo.confidence import checks

LEVEL = 0.05  # probability of an alarm, ever, while the promise is kept
_BOLDEST = 0.5  # share of the most that can be bet


@dataclasses.dataclass(frozen=True)
class Alarm:
    """What a monitor says of a stream of answers.

    ```python
    print(zoo.confidence.Alarm(100, 12, 20.0, 0.4, None).sentence)
    ```

    Attributes:
        answers: how many there were.
        wrong: how many of them were wrong.
        promised: how many were promised to be wrong at most.
        wealth: what bets against the promise have won, 1 before the first answer.
        at: the number of answers at which the alarm was raised, or None.
    """

    answers: int
    wrong: int
    promised: float
    wealth: float
    at: int | None

    @property
    def sentence(self) -> str:
        """The same for a reader."""
        counts = (
            f"{self.wrong:,} of {self.answers:,} answers are wrong, {self.promised:.1f} promised"
        )
        if self.at is None:
            return f"{counts}; no alarm."
        return f"{counts}; alarm at answer {self.at:,}: errors are more frequent than promised."


def monitored(wrong, promised, level=LEVEL) -> Alarm:
    """Bets against a promise of at most so many errors, answer by answer.

    ```python
    wrong = np.arange(400) % 2 == 0  # every other one
    zoo.confidence.monitored(wrong, 0.2).at  # an alarm after some dozens
    ```

    Proof. Under the promise answer t is wrong with a probability of at most m_t given all before.
    Wealth is multiplied by 1 + λ_t (x_t − m_t) with λ_t ≥ 0 chosen before x_t is seen and below
    1/m_t, so it is a nonnegative supermartingale, and by Ville's inequality it ever reaches 1/level
    with a probability of at most `level`: the stream may be looked at after every answer. So is a
    mixture of such wealths. One starts at each of the answers 1, 5, 17, 65 …, with the weight
    1 / (j (j + 1)), so that a change after a long good time is noticed.

    Args:
        wrong: `(T,)` booleans in the order of the answers.
        promised: m, how likely an answer may be wrong at most: a number, or `(T,)`, as one less the
            probability that was said.
        level: in (0, 1), of a false alarm, ever.

    Raises:
        ValueError: if shapes or ranges do not fit.

    Reference: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
        JRSS B 2024, whose aGRAPA chooses λ; Podkopaev and Ramdas, "Tracking the risk of a deployed
        model and detecting harmful distribution shifts", ICLR 2022.
    """
    wrong = checks.truths(wrong, "wrong", len(wrong))
    promised = np.broadcast_to(np.asarray(promised, np.float64), wrong.shape)
    if ((promised < 0) | (promised > 1) | np.isnan(promised)).any():
        raise ValueError("`promised` must be in [0, 1]")
    path = wealth(wrong[None], promised[None])[0]
    reached = np.flatnonzero(path >= 1 / checks.share(level, "level"))
    return Alarm(
        len(wrong),
        int(wrong.sum()),
        float(promised.sum()),
        float(path[-1]),
        int(reached[0]) + 1 if len(reached) else None,
    )


def wealth(wrong, promised):
    """The wealth after every answer of some streams, `(streams, T)`; arguments of that shape."""
    streams, length = wrong.shape
    starts = [0, *(4**j for j in range(1, length.bit_length()) if 4**j < length)]
    weights = np.array([1 / (j * (j + 1)) for j in range(1, len(starts) + 1)])
    weights[-1] += 1 - weights.sum()
    gains, total, squares = (np.zeros((len(starts), streams)) for _ in range(3))
    excess, limits = wrong - promised, _BOLDEST / np.maximum(promised, 1e-3)
    found = np.empty((streams, length))
    for t in range(length):
        now, begun = excess[:, t], sum(start <= t for start in starts)
        sums, spread = total[:begun], squares[:begun]
        # The spread as if half an answer of each kind had come before.
        bet = np.clip(sums / (spread + 0.25), 0.0, limits[:, t])
        gains[:begun] += np.log1p(bet * now)
        sums += now
        spread += now**2
        found[:, t] = weights @ np.exp(np.minimum(gains, 600.0))
    return found
