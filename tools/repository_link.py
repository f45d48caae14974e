"""MkDocs' hook: the header links the repository that the site is built from.

`REPOSITORY_URL`, or what GitHub's runners say, or git's `origin`, or else the checkout on the disk,
since the place where a checkout is published is not written in it.
"""

import os
import re
import subprocess
from pathlib import Path


def on_config(config):
    """Sets what Material's header shows."""
    root = Path(config["config_file_path"]).parent
    config["repo_url"] = repository(os.environ, root)
    config["repo_name"] = "Repository"
    return config


def repository(environment, root):
    """The address of the repository.

    Args:
        environment: variables of the process.
        root: the checkout, a `Path`.
    """
    if environment.get("REPOSITORY_URL"):
        return environment["REPOSITORY_URL"]
    if environment.get("GITHUB_REPOSITORY"):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        return f"{server}/{environment['GITHUB_REPOSITORY']}"
    command = ["git", "-C", str(root), "config", "--get", "remote.origin.url"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        origin = done.stdout.strip()
    except OSError:  # no git
        origin = ""
    origin = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", origin).removesuffix(".git")
    return origin if origin.startswith("https://") else root.resolve().as_uri()
