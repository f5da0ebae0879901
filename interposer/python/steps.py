"""Steps of the whole process: which passes and which optimizers belong together.

A step begins with what is done for it: a forward pass that records gradients, a backward pass or an optimizer. What lies between
(evaluation, a checkpoint that is saved) counts to the step that was done. It ends with an optimizer, once all that step in turn
have stepped, or GradScaler has left their step out: a GAN has two. Optimizers that step one after another, without a pass between,
are in one step anyway.
"""

# How many steps have begun, and whether the last one has not ended.
steps, in_step = 0, False
# How many passes have begun, and how often an optimizer has stepped, or has had its turn without.
passes, turns_taken = 0, 0
# Ids of the optimizers that have stepped in the last step, in their order: the passes that had begun by then. And of these the ones
# that stepped first after a pass.
stepped, leaders = {}, []
# Ids of those that step in turn in each step, in their order, and how many steps in succession were without one of them: as many as
# a program may leave out.
in_turn, missed, MOST_MISSED = [], 0, 2
# Ids of optimizers that have not stepped yet, and that a step waits for.
untried = set()
# Of an optimizer: [how many passes had begun when it stepped last, and when it did so before] (0 is never).
turns = Facts()


def begin_step():
    global steps, in_step
    if not in_step:
        in_step = True
        steps += 1
        stepped.clear()
        leaders.clear()
        send_step(steps)


def begin_pass():
    global passes
    passes += 1
    begin_step()


def end_step():
    global in_step
    in_step = False


def missing():
    """Those of which it is the turn in this step, still."""
    if stepped.keys().isdisjoint(in_turn):
        return []
    return [key for key in in_turn if key not in stepped and key in turns.by_id]


def miss():
    """The step ends without some of which it is the turn."""
    global in_turn, missed
    missed += 1
    if missed > MOST_MISSED:
        in_turn, missed = list(leaders), 0


def optimizer_made(optimizer):
    turns.put(optimizer, [0, 0])
    untried.add(id(optimizer))


def optimizer_begins(optimizer):
    global in_step
    key = id(optimizer)
    last = next(reversed(stepped), key)
    if last != key and stepped[last] == passes != stepped.get(key):
        # It follows another one, without a pass between.
        in_step = True
        if key in stepped:
            untried.clear()
    elif in_step and key in stepped:
        # What was waited for is not in this step.
        untried.clear()
        if missing():
            miss()
        end_step()
    begin_step()


def optimizer_ends(optimizer):
    global in_turn, missed, turns_taken
    turns_taken += 1
    key = id(optimizer)
    known = turns.get(optimizer) or turns.put(optimizer, [0, 0])
    last = known[0]
    known[:] = passes, last
    untried.discard(key)
    leads = passes not in stepped.values()
    stepped.pop(key, None)
    stepped[key] = passes
    if leads:
        leaders.append(key)
    rest = missing()
    ends = not rest or in_turn[-1] in stepped
    if not ends or waits_for_untried(optimizer):
        return
    if rest:
        if leads:
            miss()
    elif len(leaders) > 1 or all(other in stepped for other in in_turn if other in turns.by_id):
        in_turn, missed = list(leaders), 0
    elif leads and last:
        # It has no turn. It gets one if each other that has stepped since it did so last has done so once.
        since = sorted((at, other) for other, (_, (at, _)) in turns.by_id.copy().items() if last < at < passes)
        if since and all(turns.by_id[other][1][1] < last for _, other in since):
            in_turn, missed = [other for _, other in since] + [key], 0
    end_step()


def waits_for_untried(optimizer):
    """Whether there are others that have not stepped yet, for parameters of their own."""
    if untried:
        with unobserved():
            mine = trained_by(optimizer)
            for key in list(untried):
                other = turns.by_id[key][0]() if key in turns.by_id else None
                theirs = trained_by(other) if other is not None else set()
                if not theirs or theirs & mine:
                    untried.discard(key)
    return bool(untried)


def trained_by(optimizer):
    return {id(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}


def batch_begins():
    """A batch is fetched: what has not stepped yet, and was waited for alone, is not in this step."""
    global in_turn
    if in_step and stepped and untried and not missing():
        untried.clear()
        in_turn = in_turn or list(leaders)
        end_step()
