"""One phase of training: Keras' `fit`, from where the run stopped if it did."""

from zoo.training.history import HistoryFile
from zoo.training.resume import Resume


def fit_phase(run, model, phase, stream, epochs, steps, callbacks=(), also=None):
    """Fits a compiled model for some epochs, with a checkpoint and a row of history after each.

    Args:
        run: the `RunFolder`.
        model: built and compiled for this phase.
        phase: its name, letters, digits and `_`. Each phase has checkpoints of its own.
        stream: function from the number of the first step to an endless `tf.data.Dataset` of
            batches from that step on.
        epochs: of this phase; 0 leaves it out.
        steps: batches an epoch.
        callbacks: further ones; what they add to the logs is in the history.
        also: callbacks by name whose state goes into the checkpoints, see `Resume`; they are
            called before it.
    """
    if not epochs:
        return
    resume = Resume(run.checkpoints, phase, also=also)
    done = resume.restore(model)
    if done:
        print(f"{phase}: {done} of {epochs} epochs are done already")
    model.fit(
        stream(done * steps),
        epochs=epochs,
        initial_epoch=done,
        steps_per_epoch=steps,
        shuffle=False,  # the stream is shuffled already
        callbacks=[
            *callbacks,
            HistoryFile(run.history_path, phase),
            *(also or {}).values(),
            resume,
        ],
    )
