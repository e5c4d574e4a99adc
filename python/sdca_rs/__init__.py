from sdca_rs import _core
