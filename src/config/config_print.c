/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the documentation of the configuration: the shipped file and the manual page. */
#include <string.h>
#include "config/config.h"
#include "config/config_table.h"

#define COMMENT_WIDTH 98

static bool begins_section(size_t i)
{
	return i == 0 || strcmp(config_keys[i].section, config_keys[i - 1].section) != 0;
}

/* Prints a comment in lines that the parser of the file accepts. */
static void print_comment(FILE *out, const char *text)
{
	while (*text) {
		size_t length = strlen(text), end = length;

		if (length > COMMENT_WIDTH)
			for (end = COMMENT_WIDTH; text[end] != ' '; end--)
				;
		fprintf(out, "# %.*s\n", (int)end, text);
		text += end + (text[end] == ' ');
	}
}

void config_print(FILE *out)
{
	char wanted[160];

	fputs("# Configuration of zerneld and zernel serve. See zernel.conf(5).\n"
	      "# The lines that are commented out show the defaults.\n"
	      "# To change a key, write it to a file in zernel.conf.d, then run:\n"
	      "# systemctl reload zerneld\n",
	      out);
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (begins_section(i))
			fprintf(out, "\n[%s]\n", key->section);
		config_describe(key, wanted, sizeof(wanted));
		print_comment(out, key->help);
		fprintf(out, "# Value: %s.", wanted);
		if (key->restart)
			fprintf(out, " A change takes effect when %s restarts.", key->restart);
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
	      "A file consists of sections in brackets. Lines of the form key=value follow\n"
	      "each section. Lines that begin with # or ; are comments. Options of\n"
	      ".BR zerneld (8)\n"
	      "and\n"
	      ".BR zernel-serve (1)\n"
	      "override the files.\n"
	      ".PP\n"
	      "zerneld and zernel serve read one zernel.conf: the first that exists in\n"
	      "/etc/zernel, /run/zernel and /usr/lib/zernel, in this order. Then they read\n"
	      "the drop-ins: the files in the three zernel.conf.d directories, sorted by\n"
	      "file name. When several files set a key, the last file takes effect.\n"
	      ".PP\n"
	      "A file in /etc hides the file of the same name in /run and /usr/lib. A file\n"
	      "in /run hides the file of the same name in /usr/lib. An empty file or a\n"
	      "symbolic link to /dev/null disables the file that it hides. Packages install\n"
	      "files in /usr/lib, administrators in /etc. Files in /run disappear at the\n"
	      "next boot.\n"
	      ".PP\n"
	      "With the option --config FILE, only FILE and FILE.d/*.conf are read.\n"
	      ".PP\n"
	      "On SIGHUP, zerneld reads all files again. If a file contains an error,\n"
	      "zerneld reports the file and the line, and the previous configuration stays\n"
	      "in effect. A file that exists but cannot be read is an error.\n",
	      out);
	for (size_t i = 0; i < config_nr_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (begins_section(i))
			fprintf(out, ".SH [%s]\n", key->section);
		config_describe(key, wanted, sizeof(wanted));
		fprintf(out, ".TP\n.BR %s = %s\n%s\nValue: %s.", key->key,
			*key->value ? key->value : "\"\"", key->help, wanted);
		if (key->restart)
			fprintf(out, " A change takes effect when %s restarts.", key->restart);
		fputc('\n', out);
	}
	fputs(".SH SEE ALSO\n.BR zerneld (8),\n.BR zernel\\-serve (1),\n.BR zernel\\-config (1)\n",
	      out);
}
