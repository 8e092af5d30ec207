/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints zernel.conf(5) from the table of keys that zerneld uses. */
#include "config/config.h"

int main(void)
{
	config_print_manual(stdout);
	return 0;
}
