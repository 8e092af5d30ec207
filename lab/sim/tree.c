// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tree of a queue by virtual time: a treap, whose depth is near that of the kernel's tree. An
 * insertion takes as many steps as the tree is deep.
 */
#include "sim/model.h"

static bool is_before(const struct task *a, const struct task *b)
{
	s64 distance = (s64)(a->p.scx.dsq_vtime - b->p.scx.dsq_vtime);

	return distance ? distance < 0 : a->seq < b->seq;
}

static struct task *insert(struct task *root, struct task *task, u64 *steps)
{
	struct task *child;

	++*steps;
	if (!root)
		return task;
	if (is_before(task, root)) {
		child = root->left = insert(root->left, task, steps);
		if (child->priority <= root->priority)
			return root;
		root->left = child->right;
		child->right = root;
	} else {
		child = root->right = insert(root->right, task, steps);
		if (child->priority <= root->priority)
			return root;
		root->right = child->left;
		child->left = root;
	}
	return child;
}

u64 tree_insert(struct task **root, struct task *task)
{
	u64 steps = 0;

	task->left = task->right = NULL;
	task->priority = (u32)(task->seq * 2654435761U ^ (u32)task->p.pid * 40503U);
	*root = insert(*root, task, &steps);
	return steps;
}

static struct task *join(struct task *left, struct task *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->priority > right->priority) {
		left->right = join(left->right, right);
		return left;
	}
	right->left = join(left, right->left);
	return right;
}

void tree_remove(struct task **root, struct task *task)
{
	while (*root && *root != task)
		root = is_before(task, *root) ? &(*root)->left : &(*root)->right;
	if (!*root)
		die("task %d is not in the tree of its queue", task->p.pid);
	*root = join(task->left, task->right);
}

struct task *tree_before(struct task *root, const struct task *task)
{
	struct task *found = NULL;

	while (root) {
		bool is_left = is_before(task, root);

		found = is_left ? found : root;
		root = is_left ? root->left : root->right;
	}
	return found;
}
