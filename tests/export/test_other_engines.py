"""The export gives the same numbers without Python, and in an engine that is not TensorFlow."""

import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf

# A program is compiled for ten seconds, which reads what test_layout.py and test_requests.py ask.
pytestmark = pytest.mark.very_slow
SOURCE = pathlib.Path(__file__).parent / "serve_once.cc"


@pytest.fixture(scope="module")
def serve_once(tmp_path_factory):
    """Our C++ program, compiled against the library of the TensorFlow wheel."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler on this machine")
    library = pathlib.Path(tf.sysconfig.get_lib())
    program = tmp_path_factory.mktemp("cpp") / "serve_once"
    names = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
    if not all((library / name).is_file() for name in names):
        pytest.skip("this TensorFlow wheel has no libtensorflow_cc.so.2")
    command = [
        compiler,
        SOURCE,
        *("-O0", "-std=c++17", "-w", f"-I{library / 'include'}", f"-L{library}"),
        *(flag for flag in tf.sysconfig.get_compile_flags() if flag.startswith("-D")),
        "-Wl,--no-as-needed",  # operations and kernels register themselves when it is loaded
        *(f"-l:{name}" for name in names),
        f"-Wl,-rpath,{library}",
        *("-o", program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return program


def run(program, folder, signature, files):
    done = subprocess.run(
        [program, folder, signature, *files], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = (line.split(" ") for line in done.stdout.splitlines())
    return {name: np.array(numbers, np.float32) for name, *numbers in rows}


def test_a_cpp_program_gets_the_same_images(serve_once, pcme, birds):
    found = run(serve_once, pcme.folder, "encode_images", birds.paths[:5])
    loaded = tf.saved_model.load(str(pcme.folder))
    fed = loaded.signatures["encode_images"](images=tf.constant(birds.files[:5]))
    assert set(found) == {"mean", "log_variance", "uncertainty"}
    for name, values in found.items():
        np.testing.assert_allclose(values, fed[name].numpy().ravel(), rtol=1e-5, atol=1e-5)


def test_a_cpp_program_gets_the_same_captions(serve_once, pcme, birds, tmp_path):
    files = []
    for row, text in enumerate(birds.captions[:5]):
        files.append(tmp_path / str(row))
        files[-1].write_bytes(text.encode())
    found = run(serve_once, pcme.folder, "encode_captions", files)
    expected = pcme.model.encode_captions(birds.captions[:5])
    np.testing.assert_allclose(found["mean"].reshape(5, -1), expected.mean(), atol=1e-5)
    np.testing.assert_allclose(
        found["log_variance"], np.ravel(2 * np.log(expected.stddev())), rtol=1e-5, atol=1e-5
    )


def test_a_cpp_program_is_told_of_a_bad_request(serve_once, pcme, tmp_path):
    (tmp_path / "text").write_text("not a picture")
    done = subprocess.run(
        [serve_once, pcme.folder, "encode_images", tmp_path / "text"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "INVALID_ARGUMENT" in done.stderr
    assert "JPEG or PNG" in done.stderr
