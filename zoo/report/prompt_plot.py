"""Zero-shot accuracy by how many prompts are kept: PCME++'s figure C.1."""

import numpy as np

from zoo.report.style import GREY, MARKERS, PALETTE, new_figure, styled


@styled
def prompts_plot(accuracy, best_of_class):
    """Accuracy with the K most certain prompts of every class, and the best K of each class.

    ```python
    figure = prompts_plot([8.0, 9.5, 9.3], [1, 3, 3, 2])
    ```

    Args:
        accuracy: `(prompts,)`, top-1 in percent for K = 1, 2, ….
        best_of_class: `(classes,)`, the K that each class keeps.

    Returns:
        A matplotlib figure.

    Reference: PCME++ (Chun, ICLR 2024), figure C.1.
    """
    prompts = len(accuracy)
    figure = new_figure(9.0, 3.4)
    same, classes = figure.subplots(1, 2)
    best = int(np.argmax(accuracy))
    same.plot(np.arange(1, prompts + 1), accuracy, color=PALETTE[0])
    same.plot(best + 1, accuracy[best], marker=MARKERS[0], color=PALETTE[0])
    same.axhline(accuracy[-1], color=GREY, linestyle="--", label="all prompts")
    same.set(title=f"The same K: best {best + 1}", xlabel="K most certain prompts")
    same.set_ylabel("top-1 (%)")
    same.legend()
    classes.hist(best_of_class, bins=np.arange(0.5, prompts + 1), color=PALETTE[1])
    classes.set(title="Each class by its best K", xlabel="K", ylabel="classes")
    return figure
