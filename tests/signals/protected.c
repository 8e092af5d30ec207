/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A launch as vendors compile it: a landing pad (endbr64), then a push of a register that
 * must survive a call. The other name is for linking.
 */
int cudaLaunchKernel(int stream);
int protected_launch(int stream);

static int work(int stream)
{
	return stream;
}

/* Volatile, so that the compiler cannot know the callee. */
static int (*volatile driver)(int stream) = work;

int cudaLaunchKernel(int stream)
{
	return driver(stream) + driver(stream);
}

int protected_launch(int stream) __attribute__((alias("cudaLaunchKernel")));
