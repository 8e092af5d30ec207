/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "roles/crew.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "work/process.h"

#define CREW_CHANNELS 80
#define CREW_MEMBERS  (MEMBERS_MAX + 8)
#define TRUTH_RECORDS (1U << 20)

struct slot {
	struct member member;
	pid_t pid; /* of a child of the process that started it */
	pthread_t thread;
	struct truth *truth; /* of a thread */
	struct crew *crew;   /* of a thread */
};

struct crew {
	int fd;
	struct burn burn;
	u64 seed;
	char truth[PATH_MAX]; /* directory; empty: no truth logs */
	pid_t server;
	u32 nr_channels, nr_members;
	u32 nr_started;
	struct channel channels[CREW_CHANNELS];
	struct slot slots[CREW_MEMBERS];
};

static struct crew *crew_map(int fd)
{
	struct crew *crew = mmap(NULL, sizeof(*crew), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return crew == MAP_FAILED ? NULL : crew;
}

struct crew *crew_new(const struct framework_config *config)
{
	int fd = memfd_create("crew", 0);
	struct crew *crew = NULL;

	if (fd >= 0 && ftruncate(fd, sizeof(*crew)) == 0)
		crew = crew_map(fd);
	if (!crew) {
		fprintf(stderr, "%s: cannot allocate shared memory: %s\n", config->program,
			strerror(errno));
		return NULL;
	}
	crew->fd = fd;
	crew->burn = config->work.burn;
	crew->seed = config->work.seed;
	if (config->work.truth)
		snprintf(crew->truth, sizeof(crew->truth), "%s", config->work.truth);
	return crew;
}

u32 crew_add_channels(struct crew *crew, enum channel_kind kind, u64 nr)
{
	u32 first = crew->nr_channels;

	for (u64 i = 0; i < nr; i++)
		if (channel_init(&crew->channels[crew->nr_channels++], kind) < 0)
			fprintf(stderr, "crew: cannot open a channel: %s\n", strerror(errno));
	return first;
}

void crew_add_members(struct crew *crew, struct member member, u64 nr)
{
	for (u64 i = 0; i < nr; i++)
		crew->slots[crew->nr_members++] = (struct slot){ .member = member };
}

struct channel *crew_channel(struct crew *crew, u32 index)
{
	return &crew->channels[index];
}

/* A member that fails stops its readers, so that no task waits for it. */
static int pass_on(struct crew *crew, const struct member *member, u64 number)
{
	int r = 0;

	for (u32 i = 0; i < member->nr_outs && r == 0; i++)
		r = channel_put(&crew->channels[member->out + i], number);
	if (r < 0)
		fprintf(stderr, "crew: a member cannot pass on its work: %s\n", strerror(-r));
	for (u32 i = 0; i < member->nr_outs && r < 0; i++)
		channel_put_stop(&crew->channels[member->out + i]);
	return r;
}

static int member_work(struct crew *crew, u32 index, struct truth *truth)
{
	const struct member *member = &crew->slots[index].member;
	bool is_feeder = member->role == TRUTH_ROLE_FEEDER_PATH, has_worked = false;
	u64 seed = random_at(crew->seed, member->in), number; /* any member of a pool */
	struct did did;
	int r = 0;

	prctl(PR_SET_NAME, is_feeder ? "feeder" : "loader");
	did_begin(&did, truth, TRUTH_DID_COMPUTE);
	while (r == 0 && channel_take(&crew->channels[member->in], &did, TRUTH_DID_PEER, &number)) {
		/* Nothing waits for it before its first work. */
		if (is_feeder && !has_worked)
			did_role_ends(&did, TRUTH_ROLE_OTHER);
		has_worked = true;
		burn_ns(&crew->burn, random_around(member->cpu_ns, seed, number));
		r = pass_on(crew, member, number);
	}
	did_end(&did, is_feeder && !has_worked ? TRUTH_ROLE_OTHER : member->role);
	return r;
}

static int truth_begin(const struct crew *crew, const char *writer, struct truth **ret)
{
	int r = crew->truth[0] ? truth_open(crew->truth, writer, TRUTH_RECORDS, ret) : 0;

	if (r < 0)
		fprintf(stderr, "crew: truth in %s: %s\n", crew->truth, strerror(-r));
	return r;
}

static int member_process(struct crew *crew, u32 index)
{
	struct truth *truth = NULL;
	int r = truth_begin(crew, "member", &truth);

	if (r == 0)
		r = member_work(crew, index, truth);
	truth_free(truth);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void *member_thread(void *arg)
{
	struct slot *slot = arg;
	struct crew *crew = slot->crew;

	member_work(crew, (u32)(slot - crew->slots), slot->truth);
	return NULL;
}

/* Waits for the processes among the members of this kind. */
static int wait_for(struct crew *crew, enum member_kind kind)
{
	int r = 0;

	for (u32 i = 0; i < crew->nr_members; i++) {
		int status = 0;

		if (crew->slots[i].member.kind != kind || crew->slots[i].pid <= 0)
			continue;
		if (waitpid(crew->slots[i].pid, &status, 0) < 0 || status != 0)
			r = -ECHILD;
	}
	return r;
}

static int start_process(struct crew *crew, u32 index)
{
	pid_t pid = fork_tied();

	if (pid == 0)
		_exit(member_process(crew, index));
	crew->slots[index].pid = pid;
	return pid < 0 ? -errno : 0;
}

static int server_process(struct crew *crew)
{
	struct truth *truth = NULL;
	int r = truth_begin(crew, "server", &truth);
	struct did did;

	did_begin(&did, truth, TRUTH_DID_COMPUTE);
	for (u32 i = 0; i < crew->nr_members && r == 0; i++)
		if (crew->slots[i].member.kind == MEMBER_SERVED)
			r = start_process(crew, i);
	if (wait_for(crew, MEMBER_SERVED) < 0)
		r = -ECHILD;
	did_end(&did, TRUTH_ROLE_OTHER);
	truth_free(truth);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Forks and executes this program again: as the member `index`, or as the fork server. */
static pid_t start_program(const struct crew *crew, const char *what, u32 index)
{
	char fd_text[16], index_text[16];
	pid_t pid;

	snprintf(fd_text, sizeof(fd_text), "%d", crew->fd);
	snprintf(index_text, sizeof(index_text), "%u", index);
	pid = fork_tied();
	if (pid == 0) {
		execl("/proc/self/exe", "roles", what, fd_text, index_text, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int start_one(struct crew *crew, u32 index, struct truth *truth)
{
	struct slot *slot = &crew->slots[index];

	switch (slot->member.kind) {
	case MEMBER_THREAD:
		slot->truth = truth;
		slot->crew = crew;
		return -pthread_create(&slot->thread, NULL, member_thread, slot);
	case MEMBER_FORK: return start_process(crew, index);
	case MEMBER_EXEC:
		slot->pid = start_program(crew, "member", index);
		return slot->pid < 0 ? -errno : 0;
	case MEMBER_SERVED:
		if (!crew->server)
			crew->server = start_program(crew, "server", 0);
		return crew->server < 0 ? -errno : 0;
	}
	return -EINVAL;
}

int crew_start(struct crew *crew, struct truth *truth)
{
	int r = 0;

	while (crew->nr_started < crew->nr_members && r == 0) {
		r = start_one(crew, crew->nr_started, truth);
		crew->nr_started += r == 0;
	}
	if (r < 0)
		fprintf(stderr, "crew: cannot start a member: %s\n", strerror(-r));
	return r;
}

int crew_stop(struct crew *crew)
{
	int r = 0, status = 0;

	for (u32 i = 0; i < crew->nr_started && r == 0; i++)
		r = channel_put_stop(&crew->channels[crew->slots[i].member.in]);
	for (u32 i = 0; i < crew->nr_started && r == 0; i++)
		if (crew->slots[i].member.kind == MEMBER_THREAD)
			pthread_join(crew->slots[i].thread, NULL);
	if (r == 0 && (wait_for(crew, MEMBER_FORK) < 0 || wait_for(crew, MEMBER_EXEC) < 0))
		r = -ECHILD;
	if (crew->server > 0 && (waitpid(crew->server, &status, 0) < 0 || status != 0))
		r = -ECHILD;
	for (u32 i = 0; i < crew->nr_channels; i++)
		channel_done(&crew->channels[i]);
	close(crew->fd);
	munmap(crew, sizeof(*crew));
	return r;
}

int crew_main(int argc, char **argv)
{
	bool is_server = argc == 4 && strcmp(argv[1], "server") == 0;
	struct crew *crew;
	u32 index;

	if (argc != 4 || (!is_server && strcmp(argv[1], "member") != 0))
		return -EINVAL;
	crew = crew_map(atoi(argv[2]));
	index = (u32)atoi(argv[3]);
	if (!crew || index >= CREW_MEMBERS)
		return EXIT_FAILURE;
	return is_server ? server_process(crew) : member_process(crew, index);
}
