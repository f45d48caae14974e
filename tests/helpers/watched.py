"""Runs a command and lists what it looks up, whom it connects to, and what it writes at home.

A shared library in front of the C library's records every look-up and every connection of the
process and its children, native code included, and refuses all but those of this machine.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

RECORDER = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void record(const char *what, const char *name) {
  char line[600];
  int length = snprintf(line, sizeof line, "%s %s\n", what, name ? name : "-");
  int file = open(getenv("WATCHED"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (file >= 0) {
    if (write(file, line, length) < 0) abort();
    close(file);
  }
}

static int foreign_name(const char *name) {
  return name && strcmp(name, "localhost") && strncmp(name, "127.", 4) && strcmp(name, "::1") &&
         strcmp(name, "0.0.0.0");
}

static int foreign_address(const struct sockaddr *to, char *name) {
  if (!to) return 0;
  if (to->sa_family == AF_INET) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)to;
    inet_ntop(AF_INET, &four->sin_addr, name, 64);
    return strncmp(name, "127.", 4) != 0;
  }
  if (to->sa_family == AF_INET6) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)to;
    inet_ntop(AF_INET6, &six->sin6_addr, name, 64);
    return strcmp(name, "::1") && strncmp(name, "::ffff:127.", 11);
  }
  return 0;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
  int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
      dlsym(RTLD_NEXT, "getaddrinfo");
  if (foreign_name(node)) {
    record("getaddrinfo", node);
    return EAI_NONAME;
  }
  return next(node, service, hints, found);
}

struct hostent *gethostbyname(const char *name) {
  record("gethostbyname", name);
  return NULL;
}

struct hostent *gethostbyname2(const char *name, int family) {
  record("gethostbyname2", name);
  return NULL;
}

int gethostbyname_r(const char *name, struct hostent *made, char *buffer, size_t size,
                    struct hostent **found, int *code) {
  record("gethostbyname_r", name);
  *found = NULL;
  *code = HOST_NOT_FOUND;
  return ENOENT;
}

int connect(int socket, const struct sockaddr *to, socklen_t length) {
  int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
  char name[64];
  if (foreign_address(to, name)) {
    record("connect", name);
    errno = ENETUNREACH;
    return -1;
  }
  return next(socket, to, length);
}

ssize_t sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t length) {
  ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
      dlsym(RTLD_NEXT, "sendto");
  char name[64];
  if (foreign_address(to, name)) {
    record("sendto", name);
    errno = ENETUNREACH;
    return -1;
  }
  return next(socket, data, size, flags, to, length);
}
"""


class Watched:
    """The environment of a command with a home of its own, and what it did.

    Attributes:
        home: its home, empty before.
        environment: for `subprocess`.
    """

    def __init__(self, folder: Path):
        self.home, self._record = folder / "home", folder / "looked-up"
        self.home.mkdir(parents=True)
        ours = ("HALO_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLCONFIGDIR")
        named = ("KERAS_HOME", "HF_HOME", "ORT_DISABLE_TELEMETRY", "GRADIO_ANALYTICS_ENABLED")
        hidden = {*ours, *named, "HF_HUB_DISABLE_TELEMETRY", "TF_CPP_MIN_LOG_LEVEL"}
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "LD_PRELOAD": str(_recorder()),
            "WATCHED": str(self._record),
        }

    @property
    def looked_up(self) -> list[str]:
        """What was looked up or connected to, but on this machine."""
        return self._record.read_text().splitlines() if self._record.exists() else []

    @property
    def written(self) -> list[str]:
        """The files at home."""
        files = (path for path in self.home.rglob("*") if not path.is_dir())
        return sorted(str(path.relative_to(self.home)) for path in files)


@functools.cache
def _recorder():
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler, to watch native code")
    folder = Path(tempfile.mkdtemp(prefix="recorder-"))
    source, library = folder / "recorder.c", folder / "recorder.so"
    source.write_text(RECORDER)
    words = [compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(words, check=True)
    return library
