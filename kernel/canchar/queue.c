// SPDX-License-Identifier: GPL-2.0-only
/* The queues of an open file: preallocated rings and the filters before them. */

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "canchar.h"

static size_t canchar_ring_bytes(u32 slots)
{
	return PAGE_ALIGN(sizeof(struct canchar_ring) + slots * sizeof(struct canchar_frame));
}

static void canchar_ring_init(struct canchar_ring_end *ring, void *memory, u32 slots)
{
	ring->shared = memory;
	ring->slots = memory + sizeof(struct canchar_ring);
	ring->mask = slots - 1;
	ring->head = 0;
	ring->tail = 0;
}

int canchar_rings_alloc(struct canchar_file *file, u32 rx_slots, u32 tx_slots)
{
	size_t rx_bytes = canchar_ring_bytes(rx_slots), tx_bytes = canchar_ring_bytes(tx_slots);
	struct canchar_device *dev = file->dev;
	struct canchar_memory memory, old = file->memory;
	struct canchar_map *map;
	unsigned long flags;

	if (!canchar_memory_alloc(&memory, PAGE_SIZE + rx_bytes + tx_bytes))
		return -ENOMEM;
	map = memory.start;
	map->magic = CANCHAR_MAP_MAGIC;
	map->version = CANCHAR_MAP_VERSION;
	map->slot_size = sizeof(struct canchar_frame);
	map->rx_offset = PAGE_SIZE;
	map->rx_slots = rx_slots;
	map->tx_offset = PAGE_SIZE + rx_bytes;
	map->tx_slots = tx_slots;
	map->bytes = PAGE_SIZE + rx_bytes + tx_bytes;

	raw_spin_lock_irqsave(&dev->lock, flags);
	if (old.start) {
		file->rx_lost += canchar_ring_unread(&file->rx);
		file->tx_lost += canchar_ring_unsent(&file->tx);
	}
	canchar_ring_init(&file->rx, (void *)map + map->rx_offset, rx_slots);
	canchar_ring_init(&file->tx, (void *)map + map->tx_offset, tx_slots);
	list_del_init(&file->sender);
	WRITE_ONCE(file->tx.shared->need_wakeup, 1);
	WRITE_ONCE(file->rx.shared->need_wakeup, dev->masked);
	file->memory = memory;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	canchar_memory_free(&old);
	return 0;
}

void canchar_rings_free(struct canchar_file *file)
{
	canchar_memory_free(&file->memory);
	kvfree(file->filters);
}

/* A filter, normalised as in net/can/af_can.c. */
static void canchar_rule(struct canchar_filter_rule *rule, const struct canchar_filter *filter)
{
	u32 mask = filter->mask;

	if (mask & CAN_ERR_FLAG) {
		/* One for error frames: any class in the mask. */
		rule->mask = mask & (CAN_ERR_FLAG | CAN_ERR_MASK);
		return;
	}
	if ((mask & CAN_EFF_FLAG) && !(filter->id & CAN_EFF_FLAG))
		mask &= CAN_SFF_MASK | CAN_EFF_FLAG | CAN_RTR_FLAG;
	rule->id = filter->id & mask;
	rule->mask = mask;
	rule->different = filter->id & CAN_INV_FILTER;
}

static bool canchar_rule_passes(const struct canchar_filter_rule *rule, u32 can_id)
{
	if (rule->mask & CAN_ERR_FLAG)
		return (can_id & CAN_ERR_FLAG) && (can_id & rule->mask & CAN_ERR_MASK);
	if (can_id & CAN_ERR_FLAG)
		return false;
	return ((can_id & rule->mask) != rule->id) == rule->different;
}

bool canchar_filters_pass(const struct canchar_filter_set *set, u32 can_id)
{
	u32 i, hits = 0;

	if ((can_id & CAN_ERR_FLAG) && (can_id & set->error_mask))
		hits++;
	if (!set->count && !(can_id & CAN_ERR_FLAG))
		hits++;
	for (i = 0; i < set->count && hits < set->needed; i++)
		hits += canchar_rule_passes(&set->rules[i], can_id);
	return hits >= set->needed;
}

/* Matches as the kernel does; NULL: every data frame and no error frame, without a check. */
static struct canchar_filter_set *canchar_filters_of(const struct canchar_filters *from)
{
	struct canchar_filter __user *user = u64_to_user_ptr(from->filters);
	u32 i, errors = from->error_mask & CAN_ERR_MASK;
	struct canchar_filter_set *set;

	if (!from->count && !errors)
		return NULL;
	set = kvzalloc(struct_size(set, rules, from->count), GFP_KERNEL_ACCOUNT);
	if (!set)
		return ERR_PTR(-ENOMEM);
	set->count = from->count;
	set->error_mask = errors;
	set->needed = from->join && from->count ? from->count : 1;
	for (i = 0; i < from->count; i++) {
		struct canchar_filter filter;

		if (copy_from_user(&filter, user + i, sizeof(filter))) {
			kvfree(set);
			return ERR_PTR(-EFAULT);
		}
		canchar_rule(&set->rules[i], &filter);
	}
	return set;
}

int canchar_filters_set(struct canchar_file *file, const struct canchar_filters *from)
{
	struct canchar_device *dev = file->dev;
	struct canchar_filter_set *set, *old;
	unsigned long flags;
	u32 rules;
	bool fits;

	if (from->reserved || from->join > 1 || from->count > CANCHAR_FILTERS_MAX)
		return -EINVAL;
	set = canchar_filters_of(from);
	if (IS_ERR(set))
		return PTR_ERR(set);

	raw_spin_lock_irqsave(&dev->lock, flags);
	old = file->filters;
	rules = dev->rule_count - (old ? old->count : 0) + from->count;
	fits = rules <= CANCHAR_RULES_MAX;
	if (fits) {
		dev->rule_count = rules;
		file->filters = set;
	}
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	kvfree(fits ? old : set);
	return fits ? 0 : -ENOSPC;
}

bool canchar_queue_get_latest(struct canchar_file *file, struct canchar_frame *frame)
{
	u32 lost = 0;

	if (!canchar_ring_get_latest(&file->rx, frame, &lost))
		return false;
	if (unlikely(lost)) {
		unsigned long flags;

		frame->lost = min_t(u32, lost, U16_MAX);
		raw_spin_lock_irqsave(&file->dev->lock, flags);
		file->rx_lost += lost;
		WRITE_ONCE(file->rx.shared->lost, (u32)file->rx_lost);
		raw_spin_unlock_irqrestore(&file->dev->lock, flags);
	}
	return true;
}
