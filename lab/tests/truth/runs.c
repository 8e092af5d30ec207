/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int place_make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	char shm[80];

	strcpy(place->dir, "/tmp/lab-test-XXXXXX");
	if (!mkdtemp(place->dir))
		return -1;
	snprintf(place->truth, sizeof(place->truth), "%s/truth", place->dir);
	snprintf(place->output, sizeof(place->output), "%s/output", place->dir);
	snprintf(shm, sizeof(shm), "%s/vgpu", place->dir);
	setenv("VGPU_SHM", shm, 1);
	setenv("VGPU_DEVICES", "2", 1);
	*state = place;
	return 0;
}

void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

int place_remove(void **state)
{
	struct place *place = *state;

	remove_all(place->truth);
	remove_all(place->dir);
	free(place);
	return 0;
}

pid_t run_start(const struct place *place, char *const argv[])
{
	pid_t parent = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(place->output, O_CREAT | O_TRUNC | O_WRONLY, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || getppid() != parent)
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int run_finish(pid_t pid)
{
	int status;
	pid_t ended = 0;

	for (int i = 0; i < HANG_SECONDS * 200 && ended == 0; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == 0)
			usleep(5000);
	}
	if (ended == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		fail_msg("still running after %d s", HANG_SECONDS);
	}
	assert_int_equal(ended, pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

double output_number(const struct place *place, const char *key)
{
	char text[8192] = "", pattern[64];
	FILE *stream = fopen(place->output, "r");
	const char *at;

	assert_non_null(stream);
	assert_true(fread(text, 1, sizeof(text) - 1, stream) > 0);
	fclose(stream);
	snprintf(pattern, sizeof(pattern), "\"%s\":", key);
	at = strstr(text, pattern);
	if (!at)
		fail_msg("no %s in %s", key, text);
	return strtod(at + strlen(pattern), NULL);
}
