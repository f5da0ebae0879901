"""Batches of a DataLoader."""

# Phases in which no model and no optimizer runs.
BETWEEN = ("", "data", "loss")


def follow_data():
    Iterator = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
    plain = Iterator.__next__

    def __next__(self):
        before = phase
        try:
            batch_begins()
        except Exception as error:
            failed("steps", error)
        try:
            enter_phase("data")
            batch = plain(self)
        except BaseException as error:
            enter_phase("" if before in BETWEEN else before)
            untraced(error)
            raise
        # What is done with a batch before the model is called (moving it, augmenting it) makes inputs.
        if before not in BETWEEN:
            enter_phase(before)
        try:
            with unobserved():
                for tensor in tensors_in(batch):
                    tag(tensor, INPUTS)
        except Exception as error:
            failed("batches", error)
        return batch

    replace(Iterator, "__next__", __next__)
