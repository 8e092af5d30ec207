/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/gpu_identity.h"
#include <stdint.h>
#include <string.h>

#define UUID_DASHED_LEN 36
#define UNIQUE_ID_LEN	16

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The dashes are after 8, 12, 16 and 20 digits. */
static bool parse_dashed(const char *text, struct gpu_uuid *ret)
{
	struct gpu_uuid uuid = {};
	u32 nr = 0;

	for (u32 i = 0; i < UUID_DASHED_LEN; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
		int value = digit(text[i]);

		if (is_dash ? text[i] != '-' : value < 0)
			return false;
		if (is_dash)
			continue;
		uuid.bytes[nr / 2] = (u8)(uuid.bytes[nr / 2] << 4 | value);
		nr++;
	}
	*ret = uuid;
	return true;
}

bool gpu_uuid_parse(const char *text, struct gpu_uuid *ret)
{
	size_t length;

	if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0)
		return false;
	text += 4;
	length = strlen(text);
	if (length == UUID_DASHED_LEN)
		return parse_dashed(text, ret);
	if (length != UNIQUE_ID_LEN || strspn(text, "0123456789abcdef") != length)
		return false;
	memcpy(ret->bytes, text, sizeof(ret->bytes));
	return true;
}

/* Reads hexadecimal digits up to `end`. False: none, more than `max`, or not followed by `end`. */
static bool parse_part(const char **text, size_t *size, size_t max, char end, u64 *ret)
{
	size_t nr = 0;
	u64 value = 0;

	while (nr < *size && digit((*text)[nr]) >= 0)
		value = value << 4 | (u64)digit((*text)[nr++]);
	if (!nr || nr > max || (nr < *size ? (*text)[nr] != end : end != 0))
		return false;
	*text += nr + 1;
	*size -= nr < *size ? nr + 1 : nr;
	*ret = value;
	return true;
}

bool gpu_pci_parse(const char *text, size_t size, u64 *ret)
{
	u64 domain, bus, device, function;

	if (!parse_part(&text, &size, 8, ':', &domain) || !parse_part(&text, &size, 2, ':', &bus) ||
	    !parse_part(&text, &size, 2, '.', &device) ||
	    !parse_part(&text, &size, 1, '\0', &function))
		return false;
	*ret = domain << 24 | bus << 16 | device << 8 | function;
	return true;
}

static bool is_same(const struct gpu_place *a, const struct gpu_place *b)
{
	return a->gpu_instance == b->gpu_instance && a->compute_instance == b->compute_instance;
}

/* The list of a divided GPU may not tell the part, which the list of the part does. */
void gpu_facts_add_place(struct gpu_facts *facts, const struct gpu_place *place)
{
	for (u32 i = 0; i < facts->nr_places && i < GPU_PLACES_MAX; i++) {
		struct gpu_place *known = &facts->places[i];

		if (known->gpu != place->gpu)
			continue;
		if (known->gpu_instance == GPU_NO_INSTANCE)
			*known = *place;
		if (place->gpu_instance == GPU_NO_INSTANCE || is_same(known, place))
			return;
	}
	if (facts->nr_places >= GPU_PLACES_MAX)
		gpu_facts_lose_places(facts);
	else
		facts->places[facts->nr_places++] = *place;
}

void gpu_facts_lose_places(struct gpu_facts *facts)
{
	facts->nr_places = GPU_PLACES_MAX + 1;
}

/* What is found out about a device of a process. */
struct answer {
	bool is_told; /* the runtime told something, right or wrong */
	bool is_wrong;
	bool is_known;
	struct gpu_place place;
};

static void answer_add(struct answer *answer, const struct gpu_place *place)
{
	struct gpu_place *known = &answer->place;

	if (!answer->is_known) {
		answer->is_known = true;
		*known = *place;
		return;
	}
	if (known->gpu != place->gpu)
		answer->is_wrong = true;
	if (place->gpu_instance == GPU_NO_INSTANCE)
		return;
	if (known->gpu_instance != GPU_NO_INSTANCE && !is_same(known, place))
		answer->is_wrong = true;
	*known = *place;
}

static bool find_uuid(const struct gpu_node *node, const void *bytes, struct gpu_place *ret)
{
	for (u32 i = 0; i < node->nr_devices; i++) {
		const struct gpu_node_device *device = &node->devices[i];

		if (!device->has_uuid || memcmp(&device->uuid, bytes, sizeof(device->uuid)) != 0)
			continue;
		*ret = (struct gpu_place){ device->gpu, GPU_NO_INSTANCE, GPU_NO_INSTANCE };
		return true;
	}
	for (u32 i = 0; i < node->nr_slices; i++) {
		const struct gpu_node_slice *slice = &node->slices[i];

		if (memcmp(&slice->uuid, bytes, sizeof(slice->uuid)) != 0)
			continue;
		*ret = (struct gpu_place){ slice->gpu, slice->gpu_instance,
					   slice->compute_instance };
		return true;
	}
	return false;
}

static bool find_pci(const struct gpu_node *node, const void *text, struct gpu_place *ret)
{
	u64 pci;

	if (!gpu_pci_parse(text, GPU_CLAIM_BYTES, &pci))
		return false;
	for (u32 i = 0; i < node->nr_devices; i++) {
		if (!node->devices[i].has_pci || node->devices[i].pci != pci)
			continue;
		*ret = (struct gpu_place){ node->devices[i].gpu, GPU_NO_INSTANCE, GPU_NO_INSTANCE };
		return true;
	}
	return false;
}

/* A GPU without a UUID has zeros, or "XX" in HIP. */
static bool is_empty(const void *bytes)
{
	static const char none[2][GPU_CLAIM_BYTES] = { "", "XX" };

	return memcmp(bytes, none[0], GPU_CLAIM_BYTES) == 0 ||
	       memcmp(bytes, none[1], GPU_CLAIM_BYTES) == 0;
}

static struct answer ask_runtime(const struct gpu_node *node, const struct gpu_claims *claims,
				 u32 device)
{
	struct answer answer = {};
	struct gpu_place place;

	for (u32 claim = 0; claim < GPU_CLAIM_NR; claim++) {
		const void *bytes = claims->value[device][claim];
		bool found;

		if (!(claims->told & GPU_CLAIM_BIT(device, claim)) || is_empty(bytes))
			continue;
		answer.is_told = true;
		found = claim == GPU_CLAIM_PCI ? find_pci(node, bytes, &place)
					       : find_uuid(node, bytes, &place);
		if (found)
			answer_add(&answer, &place);
		else
			answer.is_wrong = true;
	}
	answer.is_wrong |= claims->mixed >> device & 1;
	return answer;
}

/* The place of the process on a GPU, or on any GPU if `gpu` is NULL. False: none, or several. */
static bool only_place(const struct gpu_facts *facts, const u32 *gpu, struct gpu_place *ret)
{
	u32 nr = 0;

	if (facts->nr_places > GPU_PLACES_MAX)
		return false;
	for (u32 i = 0; i < facts->nr_places; i++)
		if (!gpu || facts->places[i].gpu == *gpu) {
			*ret = facts->places[i];
			nr++;
		}
	return nr == 1;
}

static bool is_listed(const struct gpu_facts *facts, const struct gpu_place *place)
{
	if (!facts->nr_places || facts->nr_places > GPU_PLACES_MAX)
		return true;
	for (u32 i = 0; i < facts->nr_places; i++) {
		const struct gpu_place *listed = &facts->places[i];

		if (listed->gpu == place->gpu && (place->gpu_instance == GPU_NO_INSTANCE ||
						  listed->gpu_instance == GPU_NO_INSTANCE ||
						  listed->gpu_instance == place->gpu_instance))
			return true;
	}
	return false;
}

/* False: the process has opened the files of no GPU or of several GPUs. */
static bool only_file(const struct gpu_node *node, const struct gpu_opened *opened,
		      struct gpu_place *ret)
{
	u32 nr = 0;

	for (u32 kind = GPU_FILE_OTHER + 1; kind < GPU_FILE_NR; kind++)
		nr += (u32)__builtin_popcountll(opened->files[kind]);
	if (nr != 1)
		return false;
	for (u32 i = 0; i < node->nr_devices; i++)
		for (u32 kind = GPU_FILE_OTHER + 1; kind < GPU_FILE_NR; kind++)
			if (node->devices[i].files[kind] & opened->files[kind]) {
				*ret = (struct gpu_place){ node->devices[i].gpu, GPU_NO_INSTANCE,
							   GPU_NO_INSTANCE };
				return true;
			}
	return false;
}

static u8 plus_one(u32 value)
{
	return value < UINT8_MAX ? (u8)(value + 1) : 0;
}

static void set(struct gpu_numbers *numbers, u32 device, enum gpu_basis basis,
		const struct gpu_place *place)
{
	if (place->gpu >= GPU_MAX)
		return;
	numbers->basis[device] = (u8)basis;
	numbers->of[device] = (u8)(place->gpu + 1);
	numbers->gpu_instance[device] = plus_one(place->gpu_instance);
	numbers->compute_instance[device] = plus_one(place->compute_instance);
}

static void identify_told(const struct gpu_facts *facts, u32 device, const struct answer *answer,
			  struct gpu_numbers *ret)
{
	struct gpu_place place = answer->place, listed;

	if (answer->is_wrong)
		return;
	if (facts->holds >> device & 1 && !is_listed(facts, &place)) {
		ret->basis[device] = GPU_BASIS_CONFLICT;
		return;
	}
	/* The driver also knows the part if the runtime only told the GPU. */
	if (place.gpu_instance == GPU_NO_INSTANCE && only_place(facts, &place.gpu, &listed))
		place = listed;
	set(ret, device, GPU_BASIS_RUNTIME, &place);
}

void gpu_identify(const struct gpu_node *node, const struct gpu_facts *facts,
		  struct gpu_numbers *ret)
{
	struct gpu_place place;

	*ret = (struct gpu_numbers){};
	for (u32 device = 0; device < GPU_MAX; device++) {
		struct answer answer = ask_runtime(node, &facts->claims, device);

		if (answer.is_told)
			identify_told(facts, device, &answer, ret);
		else if (facts->claims.used != 1ULL << device)
			continue;
		else if (facts->nr_places && only_place(facts, NULL, &place))
			set(ret, device, GPU_BASIS_DRIVER, &place);
		else if (!facts->nr_places && only_file(node, &facts->opened, &place))
			set(ret, device, GPU_BASIS_FILE, &place);
	}
}
