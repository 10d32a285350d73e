"""Multiplies with XLA and prints whether it was compiled and whether the product is right."""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

if __name__ == "__main__":
    multiply = tf.function(lambda left, right: left @ right, jit_compile=True)
    whole = [tf.random.stateless_uniform((512, 512), (seed, 2), -1, 2, tf.int32) for seed in (1, 3)]
    left, right = (tf.cast(matrix, tf.float32) for matrix in whole)
    same = tf.reduce_all(tf.cast(multiply(left, right), tf.int32) == tf.linalg.matmul(*whole))
    compiled = "HloModule" in multiply.experimental_get_compiler_ir(left, right)(stage="optimized_hlo")
    print("MATMUL " + json.dumps({"compiled": compiled, "right": bool(same)}))
