/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Captures and graphs. A capture collects the calls of its streams in their order; each
 * stream is a lane, and the wait for an event of the capture adds a stream to it. A
 * launch replays the calls: the first lane on the stream of the launch, each further
 * lane on a stream that belongs to the executable graph.
 */
#include "vgpu/engine.h"

#include <stdlib.h>

struct graph_node {
	enum op_kind kind;
	enum truth_work work;
	u32 lane;
	u32 after;   /* OP_WAIT: the node that the lane waits for (from 1); 0: the start */
	bool waited; /* another lane waits for it */
	u64 duration_ns;
	const struct external *external;
	void *arg; /* copied by each launch */
};

struct CUgraph_st {
	u64 id;
	u32 refs;
	u32 nr_lanes;
	u32 nr_nodes, room;
	struct graph_node *nodes;
};

struct CUgraphExec_st {
	struct CUgraph_st *graph;
	struct CUctx_st *ctx; /* of the lanes; NULL before the first launch */
	struct CUstream_st *lanes[];
};

void graph_unref(struct CUgraph_st *graph)
{
	if (!graph || --graph->refs)
		return;
	for (u32 i = 0; i < graph->nr_nodes; i++)
		if (graph->nodes[i].kind == OP_EXTERNAL)
			graph->nodes[i].external->drop(graph->nodes[i].arg);
	free(graph->nodes);
	free(graph);
}

static CUresult node_add(struct CUgraph_st *graph, struct graph_node node)
{
	if (graph->nr_nodes == graph->room) {
		u32 room = graph->room ? graph->room * 2 : 64;
		struct graph_node *nodes = reallocarray(graph->nodes, room, sizeof(*nodes));

		if (!nodes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		graph->nodes = nodes;
		graph->room = room;
	}
	graph->nodes[graph->nr_nodes++] = node;
	return CUDA_SUCCESS;
}

/* The last node of a lane, from 1. */
static u32 lane_end(const struct CUgraph_st *graph, u32 lane)
{
	u32 end = graph->nr_nodes;

	while (end && graph->nodes[end - 1].lane != lane)
		end--;
	return end;
}

CUresult capture_begin(struct CUstream_st *stream)
{
	struct CUgraph_st *graph;

	if (stream == stream->ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	graph = calloc(1, sizeof(*graph));
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->id = ++engine.nr_captures;
	graph->refs = 1;
	graph->nr_lanes = 1;
	stream->capture = graph;
	stream->lane = 0;
	return CUDA_SUCCESS;
}

CUresult capture_add(struct CUstream_st *stream, const struct op *op)
{
	return node_add(stream->capture, (struct graph_node){ .kind = op->kind,
							      .work = op->work,
							      .lane = stream->lane,
							      .duration_ns = op->duration_ns,
							      .external = op->external,
							      .arg = op->arg });
}

void capture_record(const struct CUstream_st *stream, struct CUevent_st *event)
{
	event->capture = stream->capture->id;
	event->capture_node = lane_end(stream->capture, stream->lane);
}

static struct CUgraph_st *capture_find(u64 id)
{
	for (struct object *o = engine.streams; o; o = o->next) {
		struct CUstream_st *stream = (struct CUstream_st *)o;

		if (o->live && stream->capture && stream->capture->id == id)
			return stream->capture;
	}
	return NULL;
}

CUresult capture_wait(struct CUstream_st *stream, const struct CUevent_st *event)
{
	struct CUgraph_st *graph;

	if (!event->capture)
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	graph = capture_find(event->capture);
	if (!graph || stream == stream->ctx->legacy)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (stream->capture && stream->capture != graph)
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	if (!stream->capture) {
		stream->capture = graph;
		stream->lane = graph->nr_lanes++;
	}
	if (event->capture_node)
		graph->nodes[event->capture_node - 1].waited = true;
	return node_add(graph, (struct graph_node){ .kind = OP_WAIT,
						    .lane = stream->lane,
						    .after = event->capture_node });
}

/* All work of the other lanes must come before a wait of another lane. */
static bool is_joined(const struct CUgraph_st *graph)
{
	u32 *open = calloc(graph->nr_lanes, sizeof(*open));
	bool joined = open;

	for (u32 i = 0; open && i < graph->nr_nodes; i++) {
		const struct graph_node *node = &graph->nodes[i];

		if (node->kind != OP_WAIT)
			open[node->lane] = i + 1;
		else if (node->after && open[graph->nodes[node->after - 1].lane] <= node->after)
			open[graph->nodes[node->after - 1].lane] = 0;
	}
	for (u32 lane = 1; open && lane < graph->nr_lanes; lane++)
		joined = joined && !open[lane];
	free(open);
	return joined;
}

CUresult capture_end(struct CUstream_st *stream, struct CUgraph_st **ret)
{
	struct CUgraph_st *graph = stream->capture;

	if (!graph)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (stream->lane)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	for (struct object *o = engine.streams; o; o = o->next) {
		struct CUstream_st *other = (struct CUstream_st *)o;

		if (o->live && other->capture == graph)
			other->capture = NULL;
	}
	if (!is_joined(graph)) {
		graph_unref(graph);
		return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	}
	*ret = graph;
	return CUDA_SUCCESS;
}

CUresult graph_instantiate(struct CUgraph_st *graph, struct CUgraphExec_st **ret)
{
	struct CUgraphExec_st *exec =
		calloc(1, sizeof(*exec) + graph->nr_lanes * sizeof(exec->lanes[0]));

	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->graph = graph;
	graph->refs++;
	*ret = exec;
	return CUDA_SUCCESS;
}

/* The streams of a context that was closed may belong to the program now. */
static bool lane_is_open(const struct CUgraphExec_st *exec, u32 i)
{
	const struct CUstream_st *lane = exec->lanes[i];

	return lane && lane->object.live && lane->owner == (u64)exec;
}

static void lanes_free(struct CUgraphExec_st *exec)
{
	for (u32 i = 1; i < exec->graph->nr_lanes; i++) {
		if (lane_is_open(exec, i))
			stream_free(exec->lanes[i]);
		exec->lanes[i] = NULL;
	}
}

void graph_exec_free(struct CUgraphExec_st *exec)
{
	lanes_free(exec);
	graph_unref(exec->graph);
	free(exec);
}

static CUresult lanes_open(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	CUresult r = CUDA_SUCCESS;

	if (exec->ctx != stream->ctx)
		lanes_free(exec);
	exec->ctx = stream->ctx;
	exec->lanes[0] = stream;
	for (u32 i = 1; i < exec->graph->nr_lanes && r == CUDA_SUCCESS; i++) {
		if (!lane_is_open(exec, i)) {
			exec->lanes[i] = stream_new(stream->ctx, CU_STREAM_NON_BLOCKING);
			if (!exec->lanes[i])
				return CUDA_ERROR_OUT_OF_MEMORY;
			exec->lanes[i]->owner = (u64)exec;
		}
		r = stream_join(exec->lanes[i], stream_target(stream));
	}
	return r;
}

bool graph_has_work(const struct CUgraphExec_st *exec)
{
	for (u32 i = 0; i < exec->graph->nr_nodes; i++) {
		const struct graph_node *node = &exec->graph->nodes[i];

		if (node->kind == OP_WORK || (node->external && node->external->on_device))
			return true;
	}
	return false;
}

/* `ends` has room for the end of each node. */
static CUresult node_replay(struct CUgraphExec_st *exec, u32 i, struct op op, u64 entry_ns,
			    struct target *ends)
{
	const struct graph_node *node = &exec->graph->nodes[i];
	struct CUstream_st *lane = exec->lanes[node->lane];
	CUresult r;

	op.kind = node->kind;
	op.work = node->work;
	op.duration_ns = node->duration_ns;
	op.external = node->external;
	if (node->kind == OP_EXTERNAL) {
		op.arg = node->external->copy(node->arg, entry_ns);
		if (!op.arg)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (node->kind != OP_WAIT)
		r = work_put(lane, op);
	else
		r = node->after ? stream_join(lane, ends[node->after - 1]) : CUDA_SUCCESS;
	if (r == CUDA_SUCCESS && node->waited)
		ends[i] = target_hold(stream_target(lane));
	return r;
}

CUresult graph_replay(struct CUgraphExec_st *exec, struct CUstream_st *stream, u64 seq,
		      u64 entry_ns)
{
	u32 nr = exec->graph->nr_nodes;
	struct target *ends = calloc(nr + 1, sizeof(*ends));
	struct op op = { .stream = stream_id(stream), .seq = seq, .queued_ns = truth_now_ns() };
	CUresult r = ends ? lanes_open(exec, stream) : CUDA_ERROR_OUT_OF_MEMORY;

	for (u32 i = 0; i < nr && r == CUDA_SUCCESS; i++)
		r = node_replay(exec, i, op, entry_ns, ends);
	for (u32 i = 0; ends && i < nr; i++)
		node_unref(ends[i].node);
	free(ends);
	return r;
}
