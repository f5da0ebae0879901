"""TensorFlow: one tensor of 64 MiB on the device."""
import tensorflow as tf

print(tf.config.list_physical_devices("GPU"))
with tf.device("/GPU:0"):
    kept = tf.zeros([16 << 20])
print(kept.device)
