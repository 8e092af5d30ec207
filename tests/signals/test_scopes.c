/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps by the scopes of a framework, on the machine's own kernel. */
#include "signals/native.h"

#include <sys/mman.h>
#include <unistd.h>
#include "signals/scopes.h"

#define MEMBER_AT 24
#define STEP	  "Optimizer.step#SGD.step"
#define ZERO_GRAD "Optimizer.zero_grad#SGD.zero_grad"
#define LOADER	  "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

static const char *scopes_lib;

static struct kernel *probes_attach(void)
{
	struct kernel *kernel = native_kernel();
	struct library library = native_library(scopes_lib, RUNTIME_TORCH, -1);

	assert_int_equal(library.probes.nr, SCOPE_ENTERS + 1);
	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	return kernel;
}

/* As for the old ABI, nothing but the address of the text can be read. */
static void *enter(u32 form, const char *name)
{
	const char **string = malloc(sizeof(*string));
	void *object;

	*string = name;
	object = scope_enters[form](string, NULL).object;
	free(string);
	return object;
}

static void end(void *object)
{
	scope_leave((char *)object + MEMBER_AT);
}

static void in_scope(u32 form, const char *name)
{
	void *object = enter(form, name);

	end(object);
	end(object); /* by the destructor */
	scope_free();
}

static struct step_state steps_end(struct kernel *kernel, u64 *ret_nr_timed)
{
	struct process_state state = native_state(kernel, getpid());
	struct hist hist = {};

	if (kernel_read_hist(kernel, &state, HIST_STEP, &hist) == 0 && ret_nr_timed)
		*ret_nr_timed = hist.count;
	kernel_free(kernel);
	return state.step;
}

static void every_form_of_the_call_is_a_step(void **state)
{
	struct kernel *kernel = probes_attach();
	struct step_state step;
	u64 nr_timed = 0;

	for (u32 i = 0; i < 10 * SCOPE_ENTERS; i++) {
		in_scope(i % SCOPE_ENTERS, ZERO_GRAD);
		in_scope(i % SCOPE_ENTERS, LOADER);
		in_scope(i % SCOPE_ENTERS, STEP);
	}
	step = steps_end(kernel, &nr_timed);
	assert_int_equal(step.nr_steps, 10 * SCOPE_ENTERS);
	assert_int_equal(nr_timed, 10 * SCOPE_ENTERS - 1);
	assert_int_equal(step.basis, STEP_BASIS_OPTIMIZER);
}

static void a_step_ends_with_the_outermost_scope(void **state)
{
	struct kernel *kernel = probes_attach();
	void *outer, *inner;

	for (u32 i = 0; i < 10; i++) {
		outer = enter(0, STEP);
		inner = enter(0, "Optimizer.step#Adam.step");
		in_scope(0, LOADER);
		end(inner);
		scope_free();
		end(outer);
		scope_free();
	}
	assert_int_equal(steps_end(kernel, NULL).nr_steps, 10);
}

/* Calls can be missed, for example while probes are detached. */
static void a_scope_without_an_end_does_not_hide_the_next_ones(void **state)
{
	struct kernel *kernel = probes_attach();

	enter(0, STEP);
	scope_free();
	for (u32 i = 0; i < 10; i++)
		in_scope(0, STEP);
	assert_int_equal(steps_end(kernel, NULL).nr_steps, 10);
}

static void other_scopes_are_no_steps(void **state)
{
	struct kernel *kernel = probes_attach();
	struct step_state step;

	in_scope(0, ZERO_GRAD);
	in_scope(0, "Optimizer.steps");
	in_scope(0, "");
	step = steps_end(kernel, NULL);
	assert_int_equal(step.nr_steps, 0);
	assert_int_equal(step.basis, STEP_BASIS_NONE);
	assert_int_equal(step.nr_cleared, 1);
}

/* A name at the end of a page is read; a pointer to nothing is no name. */
static void names_are_read_up_to_their_end(void **state)
{
	struct kernel *kernel = probes_attach();
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *last = pages + size - sizeof("Optimizer.step#");

	assert_true(pages != MAP_FAILED);
	assert_int_equal(munmap(pages + size, size), 0);
	memcpy(last, "Optimizer.step#", sizeof("Optimizer.step#"));
	in_scope(2, last);
	in_scope(2, pages + size);
	in_scope(2, NULL);
	assert_int_equal(steps_end(kernel, NULL).nr_steps, 1);
	munmap(pages, size);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_the_call_is_a_step),
		cmocka_unit_test(a_step_ends_with_the_outermost_scope),
		cmocka_unit_test(a_scope_without_an_end_does_not_hide_the_next_ones),
		cmocka_unit_test(other_scopes_are_no_steps),
		cmocka_unit_test(names_are_read_up_to_their_end),
	};

	if (argc != 2)
		return 2;
	scopes_lib = argv[1];
	return cmocka_run_group_tests_name("scopes", tests, NULL, NULL);
}
