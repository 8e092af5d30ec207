/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration for people: the file that is shipped, and its manual page. */
#include <string.h>
#include "config/config.h"
#include "config/config_table.h"

static bool begins_section(size_t i)
{
	return i == 0 || strcmp(config_keys[i].section, config_keys[i - 1].section) != 0;
}

void config_print(FILE *out)
{
	char wanted[160];

	fputs("# Configuration of zerneld and zernel serve, see zernel.conf(5). What is commented "
	      "out is the "
	      "default.\n"
	      "# Put changes into a file of zernel.conf.d, then: systemctl reload zerneld\n",
	      out);
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (begins_section(i))
			fprintf(out, "\n[%s]\n", key->section);
		config_describe(key, wanted, sizeof(wanted));
		fprintf(out, "# %s\n# It is %s.", key->help, wanted);
		if (key->restart)
			fprintf(out, " Takes effect when %s restarts.", key->restart);
		fprintf(out, "\n#%s=%s\n", key->key, key->value);
	}
}

void config_print_manual(FILE *out)
{
	char wanted[160];

	fputs(".TH ZERNEL.CONF 5 \"\" \"zernel\" \"zernel.conf\"\n"
	      ".SH NAME\nzernel.conf \\- configuration of zerneld and zernel serve\n"
	      ".SH SYNOPSIS\n.nf\n/etc/zernel/zernel.conf\n/run/zernel/zernel.conf\n"
	      "/usr/lib/zernel/zernel.conf\n/etc/zernel/zernel.conf.d/*.conf\n"
	      "/run/zernel/zernel.conf.d/*.conf\n/usr/lib/zernel/zernel.conf.d/*.conf\n.fi\n"
	      ".SH DESCRIPTION\n"
	      "A file consists of sections in brackets, with lines of the form key=value below "
	      "them.\n"
	      "Lines that begin with # or ; are comments. Options of\n.BR zerneld (8)\nand\n.BR "
	      "zernel-serve (1)\noverride "
	      "the files.\n.PP\n"
	      "The first zernel.conf that exists is read: in /etc/zernel, in /run/zernel, in\n"
	      "/usr/lib/zernel. The files of the three zernel.conf.d folders are read after it, "
	      "all of\n"
	      "them in the order of their names. When several files set a key, the last one "
	      "counts. A\n"
	      "file in /etc hides the file of the same name in /run and in /usr/lib, and a file in "
	      "/run\n"
	      "hides the one in /usr/lib; an empty file, or a symbolic link to /dev/null, disables "
	      "it.\n"
	      "Packages install files in /usr/lib, administrators in /etc. Files in /run are gone "
	      "after\n"
	      "the next boot.\n.PP\n"
	      "Where an option --config FILE is given, only FILE and FILE.d/*.conf are read.\n.PP\n"
	      "On SIGHUP zerneld reads all of it again. If anything is wrong, it is reported with "
	      "file "
	      "and\n"
	      "line, and everything stays as it was. A file that exists and cannot be read is an "
	      "error.\n",
	      out);
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (begins_section(i))
			fprintf(out, ".SH [%s]\n", key->section);
		config_describe(key, wanted, sizeof(wanted));
		fprintf(out, ".TP\n.BR %s = %s\n%s\nIt is %s.", key->key,
			*key->value ? key->value : "\"\"", key->help, wanted);
		if (key->restart)
			fprintf(out, " A change takes effect when %s restarts.", key->restart);
		fputc('\n', out);
	}
	fputs(".SH SEE ALSO\n.BR zerneld (8),\n.BR zernel\\-serve (1),\n.BR zernel\\-config (1)\n",
	      out);
}
