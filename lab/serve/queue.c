/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/queue.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	u64 nr_pushed, nr_popped;
	bool closed;
	struct request *requests[];
};

struct queue *queue_new(u64 room)
{
	struct queue *queue = calloc(1, sizeof(*queue) + room * sizeof(struct request *));

	if (queue) {
		pthread_mutex_init(&queue->lock, NULL);
		pthread_cond_init(&queue->changed, NULL);
	}
	return queue;
}

struct queue *queue_free(struct queue *queue)
{
	if (queue) {
		pthread_mutex_destroy(&queue->lock);
		pthread_cond_destroy(&queue->changed);
		free(queue);
	}
	return NULL;
}

void queue_push(struct queue *queue, struct request *request)
{
	pthread_mutex_lock(&queue->lock);
	queue->requests[queue->nr_pushed++] = request;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

void queue_close(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

static struct request *pop_locked(struct queue *queue)
{
	return queue->nr_popped < queue->nr_pushed ? queue->requests[queue->nr_popped++] : NULL;
}

struct request *queue_try_pop(struct queue *queue)
{
	struct request *request;

	pthread_mutex_lock(&queue->lock);
	request = pop_locked(queue);
	pthread_mutex_unlock(&queue->lock);
	return request;
}

struct request *queue_pop(struct queue *queue)
{
	struct request *request;

	pthread_mutex_lock(&queue->lock);
	while (!(request = pop_locked(queue)) && !queue->closed)
		pthread_cond_wait(&queue->changed, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
	return request;
}
