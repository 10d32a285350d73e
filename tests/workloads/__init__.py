"""Real probe children on the CPU, by this interpreter's TensorFlow and, where named, by a foreign one."""
