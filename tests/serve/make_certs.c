/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Writes certificates for a test to a directory: ca, server and client signed by ca, and
 * stranger, which is self-signed. Each has NAME.pem and NAME.key.
 */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/macros.h"

#define REQUIRE(what) ((what) ? (void)0 : (perror(#what), exit(EXIT_FAILURE)))

struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;

	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);

	REQUIRE(extension && X509_add_ext(certificate, extension, -1));
	X509_EXTENSION_free(extension);
}

static FILE *create(const char *folder, const char *name, const char *suffix)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
	file = fopen(path, "w");
	REQUIRE(file);
	return file;
}

static void save(const struct identity *who, const char *folder, const char *name)
{
	FILE *file = create(folder, name, "pem");

	REQUIRE(PEM_write_X509(file, who->certificate));
	fclose(file);
	file = create(folder, name, "key");
	REQUIRE(PEM_write_PrivateKey(file, who->key, NULL, NULL, 0, NULL, NULL));
	fclose(file);
}

/* Signed by `issuer`, or self-signed when `issuer` is NULL. */
static struct identity make(const char *folder, const char *name, const struct identity *issuer)
{
	struct identity who = { EVP_EC_gen("P-256"), X509_new() };
	X509 *certificate = who.certificate, *signer;
	X509_NAME *subject = X509_get_subject_name(certificate);

	REQUIRE(who.key && certificate && X509_set_version(certificate, X509_VERSION_3));
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), getpid());
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600);
	X509_set_pubkey(certificate, who.key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
				   0);
	X509_set_issuer_name(certificate,
			     issuer ? X509_get_subject_name(issuer->certificate) : subject);
	signer = issuer ? issuer->certificate : certificate;
	add_extension(certificate, signer, NID_basic_constraints,
		      issuer ? "CA:FALSE" : "critical,CA:TRUE");
	add_extension(certificate, signer, NID_subject_key_identifier, "hash");
	add_extension(certificate, signer, NID_authority_key_identifier, "keyid");
	if (issuer)
		add_extension(certificate, signer, NID_subject_alt_name,
			      "DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1");
	else
		add_extension(certificate, signer, NID_key_usage, "critical,keyCertSign,cRLSign");
	REQUIRE(X509_sign(certificate, issuer ? issuer->key : who.key, EVP_sha256()));
	save(&who, folder, name);
	return who;
}

static void done(struct identity *who)
{
	X509_free(who->certificate);
	EVP_PKEY_free(who->key);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "server", "client" };
	struct identity ca, other;

	if (argc != 2)
		return EXIT_FAILURE;
	ca = make(argv[1], "ca", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		other = make(argv[1], names[i], &ca);
		done(&other);
	}
	other = make(argv[1], "stranger", NULL);
	done(&other);
	done(&ca);
	return EXIT_SUCCESS;
}
