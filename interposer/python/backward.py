"""Backward passes."""


def follow_backward():
    autograd = torch.autograd
    holders = [module for module in (autograd.graph, autograd) if hasattr(module, "_engine_run_backward")]
    if holders:
        running = in_backward(holders[0]._engine_run_backward)
        for module in holders:
            module._engine_run_backward = running
    else:
        # PyTorch 2.1 and 2.2
        autograd.backward = in_backward(autograd.backward)
        autograd.grad = in_backward(autograd.grad)


def in_backward(plain):
    def run(*args, **kwargs):
        global backwards
        before, phase_before = place(), phase
        me, stack_before = threading.get_ident(), 0
        try:
            # Whatever interrupts this, what is undone below was done.
            backward_threads.append(me)
            stack_before = begin_backward_stack()
            backwards = len(backward_threads)
            if backwards == 1:
                begin_pass()
            leave(None)
            enter_phase("backward")
            return plain(*args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        finally:
            backward_threads.remove(me)
            end_backward_stack(stack_before)
            backwards = len(backward_threads)
            if shards.by_id and not backwards:
                tell_shards()
            leave(before)
            between = "optimizer" if optimizing else ""
            enter_phase("backward" if backwards else between if before is None else phase_before)

    return like(run, plain)
