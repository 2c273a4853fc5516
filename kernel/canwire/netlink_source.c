// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands for the traffic source: its schedule, start and stop.
 */
#include <linux/slab.h>

#include "../compat.h"
#include "netlink.h"

#define CW_BITRATE_MAX		8000000

int cw_cmd_source_load(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *attribute = info->attrs[CANWIRE_A_SCHEDULE];
	struct canwire_schedule_entry *entries;
	u32 count, i;
	struct cw_bus *bus;
	int err;

	if (!cw_has(info, SCHEDULE))
		return -EINVAL;
	count = nla_len(attribute) / sizeof(*entries);
	if (!count || nla_len(attribute) % sizeof(*entries)) {
		NL_SET_ERR_MSG(info->extack, "a schedule is entries of 80 bytes, one at least");
		return -EINVAL;
	}
	entries = kvmalloc_array(count, sizeof(*entries), GFP_KERNEL);
	if (!entries)
		return -ENOMEM;
	nla_memcpy(entries, attribute, count * sizeof(*entries));
	for (i = 0; i < count; i++) {
		if (cw_frame_is_valid(&entries[i].frame))
			continue;
		NL_SET_ERR_MSG(info->extack, "the schedule has a frame that cannot be sent");
		kvfree(entries);
		return -EINVAL;
	}
	mutex_lock(&cw_mutex);
	bus = cw_bus_of(info);
	err = PTR_ERR_OR_ZERO(bus);
	if (!err) {
		err = cw_source_load(&bus->source, entries, count,
				     nla_get_flag(info->attrs[CANWIRE_A_RESET]));
		if (err == -EINVAL)
			NL_SET_ERR_MSG(info->extack, "the schedule's times go backwards");
		else if (err == -ERANGE)
			NL_SET_ERR_MSG(info->extack, "the schedule has a time of 2^61 ns or more");
		else if (err == -EBUSY)
			NL_SET_ERR_MSG(info->extack, "the source runs; stop it first");
		else if (err == -E2BIG)
			NL_SET_ERR_MSG(info->extack, "a schedule has up to 1000000 frames");
	}
	mutex_unlock(&cw_mutex);
	kvfree(entries);
	return err;
}

/* Ticks of a bit; 0 when it is not asked for, and U32_MAX when no whole number of ticks is near. */
static u32 cw_ticks(u32 bitrate)
{
	u32 ticks, rest;

	if (!bitrate)
		return 0;
	if (bitrate > CW_BITRATE_MAX)
		return U32_MAX;
	ticks = DIV_ROUND_CLOSEST(CANWIRE_CLOCK_HZ, bitrate);
	rest = abs((int)(CANWIRE_CLOCK_HZ - ticks * bitrate));
	return rest > CANWIRE_CLOCK_HZ / 200 ? U32_MAX : ticks;
}

static int cw_plan_of(struct genl_info *info, struct cw_source_plan *plan)
{
	bool scheduled, counted = info->attrs[CANWIRE_A_COUNT];

	plan->flags = cw_u32(info, CANWIRE_A_SOURCE_FLAGS, 0);
	plan->period_ns = cw_u64(info, CANWIRE_A_PERIOD_NS, 0);
	plan->load = cw_u32(info, CANWIRE_A_LOAD, 0);
	plan->jitter_ns = cw_u64(info, CANWIRE_A_JITTER_NS, 0);
	plan->burst = cw_u32(info, CANWIRE_A_BURST, 1);
	plan->seed = cw_u64(info, CANWIRE_A_SEED, 1);
	plan->start_ns = cw_u64(info, CANWIRE_A_START_NS, 0);
	plan->bit = cw_ticks(cw_u32(info, CANWIRE_A_BITRATE, 0));
	plan->data_bit = cw_ticks(cw_u32(info, CANWIRE_A_DATA_BITRATE, 0));
	scheduled = plan->flags & CANWIRE_SOURCE_SCHEDULE;
	plan->count = cw_u32(info, CANWIRE_A_COUNT, 1);
	plan->endless = scheduled ? counted && !plan->count : !counted;

	if (plan->bit == U32_MAX || plan->data_bit == U32_MAX) {
		NL_SET_ERR_MSG(info->extack, "no bit rate of an 80 MHz clock");
		return -EINVAL;
	}
	if (plan->start_ns > CW_START_NS_MAX) {
		NL_SET_ERR_MSG(info->extack, "a start is less than 2^62 ns of CLOCK_MONOTONIC");
		return -ERANGE;
	}
	if (plan->period_ns && plan->load) {
		NL_SET_ERR_MSG(info->extack, "a period or a load, not both");
		return -EINVAL;
	}
	if (plan->period_ns > CW_PERIOD_NS_MAX ||
	    (!scheduled && plan->period_ns && plan->period_ns < CW_PERIOD_NS_MIN)) {
		NL_SET_ERR_MSG(info->extack, "a period is 1 us to 1 h");
		return -EINVAL;
	}
	if (plan->jitter_ns && plan->jitter_ns >= plan->period_ns) {
		NL_SET_ERR_MSG(info->extack, "jitter is less than the period");
		return -EINVAL;
	}
	if (scheduled)
		return 0;
	if (!cw_has(info, FRAME))
		return -EINVAL;
	nla_memcpy(&plan->frame, info->attrs[CANWIRE_A_FRAME], sizeof(plan->frame));
	if (!cw_frame_is_valid(&plan->frame)) {
		NL_SET_ERR_MSG(info->extack, "not a frame that can be sent");
		return -EINVAL;
	}
	if (plan->flags & CANWIRE_SOURCE_NUMBER && plan->frame.len < 2 &&
	    !(plan->flags & CANWIRE_SOURCE_RANDOM_LEN)) {
		NL_SET_ERR_MSG(info->extack, "a numbered frame has two bytes or more");
		return -EINVAL;
	}
	return 0;
}

int cw_cmd_source_start(struct sk_buff *skb, struct genl_info *info)
{
	struct cw_source_plan plan = {};
	struct cw_bus *bus;
	int err;

	err = cw_plan_of(info, &plan);
	if (err)
		return err;
	mutex_lock(&cw_mutex);
	bus = cw_bus_of(info);
	err = PTR_ERR_OR_ZERO(bus);
	if (!err) {
		err = cw_source_start(&bus->source, &plan);
		if (err == -EBUSY)
			NL_SET_ERR_MSG(info->extack, "the source runs; stop it first");
		else if (err == -ENETDOWN)
			NL_SET_ERR_MSG(info->extack,
				       "no node is up that says the bit rate; give one or set a node up");
		else if (err == -ENODATA)
			NL_SET_ERR_MSG(info->extack, "no schedule is loaded");
	}
	mutex_unlock(&cw_mutex);
	return err;
}

int cw_cmd_source_stop(struct sk_buff *skb, struct genl_info *info)
{
	struct cw_bus *bus;

	mutex_lock(&cw_mutex);
	bus = cw_bus_of(info);
	if (!IS_ERR(bus))
		cw_source_stop(&bus->source);
	mutex_unlock(&cw_mutex);
	return PTR_ERR_OR_ZERO(bus);
}
