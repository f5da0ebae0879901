"""Hides all devices before PyTorch looks."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
from figures import say
import torch

say(available=torch.cuda.is_available(), count=torch.cuda.device_count())
