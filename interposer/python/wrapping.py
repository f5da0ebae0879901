"""How a function of ours takes the place of one of PyTorch's: unseen in tracebacks, in `inspect` and by torch.compile."""


def untraced(error):
    """Takes the calling frame, the outermost yet, out of an exception's traceback: a bare `raise` does not add it again."""
    trace = error.__traceback__
    if trace is not None:
        error.__traceback__ = trace.tb_next


def like(function, plain):
    """`function` under the name and the words of what it stands for."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(plain, name))
    function.__wrapped__ = plain
    skip(function, plain)
    return function


def replace(owner, name, function):
    setattr(owner, name, like(function, getattr(owner, name)))


def skip(function, compiled=lambda *arguments: None):
    """Where torch.compile meets a call of a function of ours in what it compiles, it takes `compiled` in its place."""
    function._torchdynamo_inline = compiled


def skip_all():
    """Keeps torch.compile out of all functions of ours: they run as they are, and what they call is compiled."""
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "skip_code"):
        skip_code = eval_frame.skip_code
    else:
        strategy = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT)

        def skip_code(code):
            eval_frame.set_code_exec_strategy(code, strategy)

    todo = [ALL]
    while todo:
        code = todo.pop()
        skip_code(code)
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
