"""The phase of the whole process."""

phase = ""


def enter_phase(name):
    global phase
    if name != phase:
        phase = name
        send_phase(name.encode() or None)
