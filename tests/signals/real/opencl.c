/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An OpenCL program that counts its own calls: buffers of known sizes, writes, launches
 * and reads, one clFinish() per round. Checks its results, so that only a correct run
 * counts, and prints its own counts as one line of JSON.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS		   5
#define LAUNCHES_PER_ROUND 7
#define ELEMENTS	   1024
#define BUFFERS		   3

/* One buffer is released earlier, so that current and peak differ. */
static const size_t buffer_bytes[BUFFERS] = { ELEMENTS * sizeof(float), ELEMENTS * sizeof(float),
					      1 << 20 };

static const char *const source = "kernel void add(global float *to, global const float *from)"
				  "{ size_t i = get_global_id(0); to[i] += from[i]; }";

struct counts {
	unsigned int launches, syncs, copies, allocs, frees;
};

struct session {
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	cl_mem buffer[BUFFERS];
	struct counts counts;
};

static void check(cl_int err, const char *what)
{
	if (err == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl: %s: error %d\n", what, err);
	exit(1);
}

static void open_device(struct session *s)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int err;

	check(clGetPlatformIDs(1, &platform, NULL), "no platform found");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no device found");
	s->context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	check(err, "context");
	s->queue = clCreateCommandQueue(s->context, device, 0, &err);
	check(err, "queue");
	s->program = clCreateProgramWithSource(s->context, 1, (const char **)&source, NULL, &err);
	check(err, "program");
	check(clBuildProgram(s->program, 1, &device, "", NULL, NULL), "build");
	s->kernel = clCreateKernel(s->program, "add", &err);
	check(err, "kernel");
}

static void make_buffers(struct session *s)
{
	cl_int err;

	for (int i = 0; i < BUFFERS; i++) {
		s->buffer[i] =
			clCreateBuffer(s->context, CL_MEM_READ_WRITE, buffer_bytes[i], NULL, &err);
		check(err, "buffer");
		s->counts.allocs++;
	}
	/* A failed call must not be counted. */
	if (clCreateBuffer(s->context, CL_MEM_READ_WRITE, 0, NULL, &err) || err == CL_SUCCESS)
		check(CL_INVALID_BUFFER_SIZE, "a buffer without size");
	for (int i = 0; i < 2; i++)
		check(clSetKernelArg(s->kernel, (cl_uint)i, sizeof(cl_mem), &s->buffer[i]), "arg");
}

static void release_buffer(struct session *s, int i)
{
	/* A retain and a release leave the buffer allocated: this is not a free. */
	check(clRetainMemObject(s->buffer[i]), "retain");
	check(clReleaseMemObject(s->buffer[i]), "release");
	check(clReleaseMemObject(s->buffer[i]), "release");
	s->counts.frees++;
}

static void finish(struct session *s)
{
	check(clFinish(s->queue), "finish");
	s->counts.syncs++;
}

static void run_round(struct session *s, float *values)
{
	const size_t size = ELEMENTS;

	check(clEnqueueWriteBuffer(s->queue, s->buffer[0], CL_FALSE, 0, buffer_bytes[0], values, 0,
				   NULL, NULL),
	      "write");
	s->counts.copies++;
	for (int i = 0; i < LAUNCHES_PER_ROUND; i++) {
		check(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &size, NULL, 0, NULL,
					     NULL),
		      "launch");
		s->counts.launches++;
	}
	check(clEnqueueReadBuffer(s->queue, s->buffer[0], CL_FALSE, 0, buffer_bytes[0], values, 0,
				  NULL, NULL),
	      "read");
	s->counts.copies++;
	finish(s);
}

static void close_device(struct session *s)
{
	clReleaseKernel(s->kernel);
	clReleaseProgram(s->program);
	clReleaseCommandQueue(s->queue);
	clReleaseContext(s->context);
}

int main(void)
{
	static float values[ELEMENTS], ones[ELEMENTS];
	struct session s = {};

	for (int i = 0; i < ELEMENTS; i++) {
		values[i] = (float)i;
		ones[i] = 1;
	}
	open_device(&s);
	make_buffers(&s);
	check(clEnqueueWriteBuffer(s.queue, s.buffer[1], CL_FALSE, 0, buffer_bytes[1], ones, 0,
				   NULL, NULL),
	      "write");
	s.counts.copies++;
	finish(&s);
	release_buffer(&s, 2);
	for (int round = 0; round < ROUNDS; round++)
		run_round(&s, values);
	for (int i = 0; i < ELEMENTS; i++)
		if (values[i] != (float)(i + ROUNDS * LAUNCHES_PER_ROUND))
			check(CL_INVALID_VALUE, "wrong result");
	release_buffer(&s, 1);
	release_buffer(&s, 0);
	close_device(&s);
	printf("{\"pid\": %d, \"launches\": %u, \"syncs\": %u, \"copies\": %u, \"allocs\": %u, "
	       "\"frees\": %u, \"peak_bytes\": %zu, \"current_bytes\": 0}\n",
	       getpid(), s.counts.launches, s.counts.syncs, s.counts.copies, s.counts.allocs,
	       s.counts.frees, buffer_bytes[0] + buffer_bytes[1] + buffer_bytes[2]);
	return 0;
}
