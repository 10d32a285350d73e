"""Names for what comes without types: TensorFlow's, numpy's and JSON's values."""

from typing import Any

Array = Any
"""A numpy array."""
DataType = Any
"""A TensorFlow data type."""
Dataset = Any
"""A ``tf.data.Dataset``."""
Graph = Any
"""A traced graph."""
Json = Any
"""A decoded JSON value."""
Model = Any
"""A Keras model."""
Operation = Any
"""An operation of a graph."""
PhysicalDevice = Any
"""A ``tf.config.PhysicalDevice``."""
Tensor = Any
"""A TensorFlow tensor."""
TensorFlow = Any
"""The module ``tensorflow``."""
Variable = Any
"""A TensorFlow variable."""
