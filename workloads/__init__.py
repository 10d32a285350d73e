"""TensorFlow probe workloads: one child process, one card, one JSON document in, JSON lines out.

Started as ``PYTHON -I workloads.pyz RESULT_FD`` or ``PYTHON -m workloads RESULT_FD``. The specification is read from
standard input; results go to the descriptor RESULT_FD, so that TensorFlow may write what it likes to its own output.
Only TensorFlow, numpy (which TensorFlow brings) and the standard library are imported, in Python 3.8 syntax and the
TensorFlow 2.9 interface; Keras is kept from being imported, unless a request asks for the article's way of training.
"""
