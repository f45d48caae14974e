"""The one exception for input that a person can mend."""


class InputError(ValueError):
    """Bad input: a file, a folder, a flag or an array that is not what it has to be.

    The message says the argument or file, what was expected and what was received. Command lines
    (`zoo.cli.run`) print it as one line and exit with code 2; everything else that
    is raised is a defect of ours and keeps its traceback.
    """
