# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads Perfetto traces with the protobuf package. The field numbers are repeated here, independent of the source."""
import collections

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
NUMBERS = {"u64": FIELD.TYPE_UINT64, "u32": FIELD.TYPE_UINT32, "i32": FIELD.TYPE_INT32, "i64": FIELD.TYPE_INT64,
           "str": FIELD.TYPE_STRING, "f64": FIELD.TYPE_DOUBLE}
# As in perfetto.protos; a type with a star is repeated.
MESSAGES = {
    "Clock": {"clock_id": (1, "u32"), "timestamp": (2, "u64")},
    "ClockSnapshot": {"clocks": (1, "Clock*"), "primary_trace_clock": (2, "i32")},
    "ProcessDescriptor": {"pid": (1, "i32"), "process_name": (6, "str")},
    "ThreadDescriptor": {"pid": (1, "i32"), "tid": (2, "i64"), "thread_name": (5, "str")},
    "CounterDescriptor": {"unit_name": (6, "str")},
    "TrackDescriptor": {"uuid": (1, "u64"), "name": (2, "str"), "process": (3, "ProcessDescriptor"),
                        "thread": (4, "ThreadDescriptor"), "parent_uuid": (5, "u64"),
                        "counter": (8, "CounterDescriptor")},
    "TrackEvent": {"type": (9, "i32"), "track_uuid": (11, "u64"), "name": (23, "str"),
                   "double_counter_value": (44, "f64")},
    "Frame": {"function_name": (1, "str"), "source_file": (2, "str"), "line_number": (3, "u32")},
    "InlineCallstack": {"frames": (1, "Frame*")},
    "CounterName": {"name": (2, "str"), "unit": (3, "i32"), "description": (6, "str")},
    "StackSampleDefaults": {"source": (1, "str"), "primary_descriptor": (2, "CounterName")},
    "TaskContext": {"pid": (2, "u32")},
    "StackSample": {"task_context": (1, "TaskContext"), "callstack": (5, "InlineCallstack"), "primary_weight": (11, "u64")},
    "TracePacketDefaults": {"stack_sample_defaults": (100, "StackSampleDefaults")},
    "TracePacket": {"clock_snapshot": (6, "ClockSnapshot"), "timestamp": (8, "u64"),
                    "trusted_packet_sequence_id": (10, "u32"), "track_event": (11, "TrackEvent"),
                    "sequence_flags": (13, "u32"), "timestamp_clock_id": (58, "u32"),
                    "trace_packet_defaults": (59, "TracePacketDefaults"),
                    "track_descriptor": (60, "TrackDescriptor"), "stack_sample": (135, "StackSample")},
    "Trace": {"packet": (1, "TracePacket*")},
}
BEGIN, END, COUNTER = 1, 2, 4
NANOSECONDS = 1
MONOTONIC = 3


def _trace_class():
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = FIELD.LABEL_REPEATED if kind.endswith("*") else FIELD.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            if kind in NUMBERS:
                message.field.add(name=field, number=number, label=label, type=NUMBERS[kind])
            else:
                message.field.add(name=field, number=number, label=label, type=FIELD.TYPE_MESSAGE, type_name=kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("Trace"))


class Trace:
    """Tracks by uuid, with their slices and counters. Invalid data fails an assertion."""

    def __init__(self, data):
        trace = _trace_class()()
        trace.ParseFromString(data)
        assert not trace.UnknownFields(), "unknown field in the trace"
        self.tracks = {}
        self.slices = collections.defaultdict(list)    # uuid -> (begin, end, name)
        self.counters = collections.defaultdict(list)  # uuid -> (time, value)
        self.stacks = []  # (time, pid, frames, ns); a frame is (function, file, line), the outermost first
        opened = {}
        first = trace.packet[0]
        assert first.sequence_flags == 1 and first.clock_snapshot.primary_trace_clock == MONOTONIC
        self.clocks = {clock.clock_id: clock.timestamp for clock in first.clock_snapshot.clocks}
        assert first.trace_packet_defaults.stack_sample_defaults.primary_descriptor.unit == NANOSECONDS
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id and packet.timestamp_clock_id == MONOTONIC
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert track.uuid not in self.tracks and (not track.parent_uuid or track.parent_uuid in self.tracks)
                self.tracks[track.uuid] = track
            if packet.HasField("stack_sample"):
                sample = packet.stack_sample
                frames = [(frame.function_name, frame.source_file, frame.line_number) for frame in sample.callstack.frames]
                self.stacks.append((packet.timestamp, sample.task_context.pid, frames, sample.primary_weight))
        # A viewer sorts by time and keeps the order of packets with the same time.
        for packet in sorted(trace.packet, key=lambda each: each.timestamp):
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            assert event.track_uuid in self.tracks
            if event.type == COUNTER:
                self.counters[event.track_uuid].append((packet.timestamp, event.double_counter_value))
            elif event.type == BEGIN:
                assert event.track_uuid not in opened, "slices must not nest"
                opened[event.track_uuid] = (packet.timestamp, event.name)
            else:
                begin, name = opened.pop(event.track_uuid)
                self.slices[event.track_uuid].append((begin, packet.timestamp, name))
        assert not opened

    def processes(self):
        """uuid by pid; the last one when several processes had the same pid."""
        return {track.process.pid: uuid for uuid, track in self.tracks.items() if track.HasField("process")}

    def threads(self):
        return {track.thread.tid: uuid for uuid, track in self.tracks.items() if track.HasField("thread")}

    def below(self, parent, name):
        """The track with this name below `parent`."""
        found, = [uuid for uuid, track in self.tracks.items() if (track.parent_uuid, track.name) == (parent, name)]
        return found
