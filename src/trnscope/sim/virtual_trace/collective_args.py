"""The args of a collective's rows, in the words that Kineto has for NCCL."""

from __future__ import annotations

from trnscope.sim.virtual_trace.recording import Launch, Message


def collective_args(launch: Launch) -> dict[str, object]:
    """Of the device's row; empty for other work."""
    if launch.message is not None:
        return message_args(launch.message)
    info = launch.collective
    if info is None:
        return {}
    return {"Collective name": info.name, "Group size": info.group_size, "dtype": info.dtype}


def message_args(message: Message) -> dict[str, object]:
    """Of the host's row ``record_param_comms``, and of the device's."""
    optional = {
        "Seq": message.sequence_number,
        "Src Rank": message.source,
        "Dst Rank": message.destination,
    }
    return {
        "Collective name": message.call,
        "In msg nelems": message.in_elements,
        "Out msg nelems": message.out_elements,
        "In split size": str(list(message.in_splits)),
        "Out split size": str(list(message.out_splits)),
        "Group size": len(message.ranks),
        "dtype": message.dtype,
        "Process Group Name": message.group_name,
        "Process Group Description": message.group_description,
        "Process Group Ranks": str(list(message.ranks)),
        "Rank": message.rank,
        **{key: value for key, value in optional.items() if value is not None},
    }
