"""Runs a package like the interpreter would, then fails if any module of Keras was loaded on the way."""

import runpy
import sys

package, descriptor = sys.argv[1:]
sys.argv = [package, descriptor]
runpy.run_path(package, run_name="__main__")
loaded = sorted(name for name in sys.modules if name.partition(".")[0] in ("keras", "tf_keras"))
assert loaded == ["keras"], loaded
assert sys.modules["keras"] is None
