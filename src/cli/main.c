/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command-line tool zernel. commands.c lists its commands. */
#include "cli/command.h"

int main(int argc, char **argv)
{
	return command_run(&command_zernel, argc, argv);
}
