/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/perfetto_packets.h"
#include <pb_encode.h>
#include "record/perfetto.pb.h"

/* Clock numbers of Perfetto. */
#define CLOCK_ID_REALTIME  1
#define CLOCK_ID_MONOTONIC 3

/* All packets belong to one sequence. The first packet marks its start. */
#define SEQUENCE_ID	  1
#define SEQUENCE_IS_FRESH 1

static bool put_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t nr)
{
	return fwrite(bytes, 1, nr, stream->state) == nr;
}

static void put_packet(struct perfetto *trace, TracePacket *packet)
{
	pb_ostream_t out = { .callback = put_bytes, .state = trace->out, .max_size = SIZE_MAX };

	packet->trusted_packet_sequence_id = SEQUENCE_ID;
	packet->timestamp_clock_id = CLOCK_ID_MONOTONIC;
	/* Only the stream can fail, and ferror() reports it later. */
	if (pb_encode_tag(&out, PB_WT_STRING, PerfettoTrace_packet_tag))
		pb_encode_submessage(&out, TracePacket_fields, packet);
}

void perfetto_begin(struct perfetto *trace, u64 time_ms, u64 monotonic_ns)
{
	TraceClock clocks[] = {
		{ CLOCK_ID_REALTIME, time_ms * NSEC_PER_MSEC },
		{ CLOCK_ID_MONOTONIC, monotonic_ns },
	};
	ClockSnapshot snapshot = {
		.clocks = clocks,
		.clocks_count = 2,
		.primary_trace_clock = CLOCK_ID_MONOTONIC,
	};
	TracePacketDefaults defaults = {
		.stack_sample_defaults = {
			.source = (char *)"zernel",
			.primary_descriptor = {
				.name = (char *)"GPU idle",
				.unit = StackUnit_NANOSECONDS,
				.description = (char *)"time in which the GPU was idle or may have been",
			},
		},
	};
	TracePacket packet = {
		.timestamp = monotonic_ns,
		.clock_snapshot = &snapshot,
		.trace_packet_defaults = &defaults,
		.has_sequence_flags = true,
		.sequence_flags = SEQUENCE_IS_FRESH,
	};

	trace->now_ns = monotonic_ns;
	put_packet(trace, &packet);
}

static void put_track(struct perfetto *trace, TrackDescriptor *track)
{
	TracePacket packet = { .timestamp = trace->now_ns, .track_descriptor = track };

	put_packet(trace, &packet);
}

/* The messages are used for decoding too, so their pointers are not const. */
void perfetto_process(struct perfetto *trace, u64 uuid, u32 pid, const char *name)
{
	ProcessDescriptor process = { .pid = (int32_t)pid, .process_name = (char *)name };
	TrackDescriptor track = { .uuid = uuid, .process = &process };

	put_track(trace, &track);
}

void perfetto_thread(struct perfetto *trace, u64 uuid, u32 pid, u32 tid, const char *name)
{
	ThreadDescriptor thread = {
		.pid = (int32_t)pid,
		.tid = (int32_t)tid,
		.thread_name = (char *)name,
	};
	TrackDescriptor track = { .uuid = uuid, .thread = &thread };

	put_track(trace, &track);
}

void perfetto_lane(struct perfetto *trace, u64 uuid, u64 parent, const char *name)
{
	TrackDescriptor track = {
		.uuid = uuid,
		.name = (char *)name,
		.has_parent_uuid = true,
		.parent_uuid = parent,
	};

	put_track(trace, &track);
}

void perfetto_counter(struct perfetto *trace, u64 uuid, u64 parent, const char *name,
		      const char *unit)
{
	CounterDescriptor counter = { .unit_name = (char *)unit };
	TrackDescriptor track = {
		.uuid = uuid,
		.name = (char *)name,
		.has_parent_uuid = parent,
		.parent_uuid = parent,
		.counter = &counter,
	};

	put_track(trace, &track);
}

static void put_event(struct perfetto *trace, u64 time_ns, TrackEvent *event)
{
	TracePacket packet = { .timestamp = time_ns, .track_event = event };

	put_packet(trace, &packet);
}

void perfetto_slice(struct perfetto *trace, u64 uuid, const char *name, u64 begin_ns, u64 end_ns)
{
	TrackEvent begin = {
		.type = TrackEventType_SLICE_BEGIN,
		.track_uuid = uuid,
		.name = (char *)name,
	};
	TrackEvent end = { .type = TrackEventType_SLICE_END, .track_uuid = uuid };

	put_event(trace, begin_ns, &begin);
	put_event(trace, end_ns, &end);
}

void perfetto_value(struct perfetto *trace, u64 uuid, u64 time_ns, double value)
{
	TrackEvent event = {
		.type = TrackEventType_COUNTER_VALUE,
		.track_uuid = uuid,
		.has_double_counter_value = true,
		.double_counter_value = value,
	};

	put_event(trace, time_ns, &event);
}

void perfetto_stack(struct perfetto *trace, u64 time_ns, u32 pid,
		    const struct perfetto_frame *frames, u32 nr, u64 ns)
{
	InlineFrame list[PERFETTO_FRAMES_MAX];
	StackSample sample = {
		.task_context = { .pid = pid },
		.callstack = { .frames = list, .frames_count = (pb_size_t)nr },
		.primary_weight = ns,
	};
	TracePacket packet = { .timestamp = time_ns, .stack_sample = &sample };

	for (u32 i = 0; i < nr; i++)
		list[i] = (InlineFrame){
			.function_name = (char *)frames[i].function,
			.source_file = (char *)frames[i].file,
			.has_line_number = frames[i].line,
			.line_number = frames[i].line,
		};
	put_packet(trace, &packet);
}
