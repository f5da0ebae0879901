"""The phase and the step, of the whole process."""

phase = ""


def enter_phase(name):
    global phase
    if name != phase:
        phase = name
        send_phase(name.encode() or None)


# How many steps have begun, and whether the last one has not ended.
steps, in_step = 0, False
# Ids of the optimizers that have stepped in this step, and in the one before.
stepped, expected = set(), set()


def begin_step():
    """A step begins with what is done for it: a forward pass that records gradients, a backward pass or an optimizer.

    What lies between (evaluation, a checkpoint that is saved) counts to the step that was done.
    """
    global steps, in_step
    if not in_step:
        in_step = True
        steps += 1
        send_step(steps)


def end_step():
    global expected, in_step
    expected = set(stepped)
    stepped.clear()
    in_step = False


def optimizer_stepped(optimizer):
    """A step ends when every optimizer of the step before that is still there has stepped: a GAN has two."""
    stepped.add(id(optimizer))
    if stepped >= expected & optimizers.by_id.keys():
        end_step()
