/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel: the command line. commands.c has the commands. */
#include "cli/command.h"

int main(int argc, char **argv)
{
	return command_run(&command_zernel, argc, argv);
}
