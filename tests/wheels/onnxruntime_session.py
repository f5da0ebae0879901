"""ONNX Runtime: a model of one addition on the device."""
import numpy
import onnxruntime

print(onnxruntime.get_available_providers())
value = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(16 << 20, "float32"), "cuda", 0)
print(value.device_name())
