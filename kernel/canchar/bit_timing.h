/* SPDX-License-Identifier: GPL-2.0-only */
/* Bit timing for a controller with these limits. It uses no canchar device. */
#ifndef CANCHAR_BIT_TIMING_H
#define CANCHAR_BIT_TIMING_H

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "../uapi/canchar.h"

/**
 * struct canchar_timing_limits - what a controller's registers can have
 * @clock_hz: clock of the bit timing
 * @brp_max: its divisor
 * @tseg1_min: quanta before the sample point, without the first
 * @tseg1_max: likewise
 * @tseg2_min: quanta after it
 * @tseg2_max: likewise
 * @sjw_max: quanta of a resynchronization
 */
struct canchar_timing_limits {
	u32 clock_hz;
	u32 brp_max;
	u32 tseg1_min, tseg1_max;
	u32 tseg2_min, tseg2_max;
	u32 sjw_max;
};

/* CiA 301: later sample points for slower buses. */
static inline u32 canchar_usual_sample_point(u32 bitrate)
{
	return bitrate > 800000 ? 750 : bitrate > 500000 ? 800 : 875;
}

static inline bool canchar_timing_possible(const struct canchar_timing_limits *limits,
					   const struct canchar_timing *timing)
{
	return timing->brp >= 1 && timing->brp <= limits->brp_max &&
	       timing->tseg1 >= limits->tseg1_min && timing->tseg1 <= limits->tseg1_max &&
	       timing->tseg2 >= limits->tseg2_min && timing->tseg2 <= limits->tseg2_max &&
	       timing->sjw >= 1 && timing->sjw <= limits->sjw_max && timing->sjw <= timing->tseg2;
}

/* The exact divisor with the best sample point, of those the longest bit; -EINVAL: none. */
static inline int canchar_calculate_timing(const struct canchar_timing_limits *limits,
					   struct canchar_timing *timing)
{
	u32 best = U32_MAX, quanta, wish = timing->sample_point;

	timing->sjw = timing->sjw ?: 1;
	if (timing->brp) {
		if (!canchar_timing_possible(limits, timing))
			return -EINVAL;
		quanta = 1 + timing->tseg1 + timing->tseg2;
		timing->bitrate = limits->clock_hz / (timing->brp * quanta);
		timing->sample_point = 1000 * (1 + timing->tseg1) / quanta;
		return 0;
	}
	if (!timing->bitrate || timing->bitrate > 1000000)
		return -EINVAL;
	wish = wish ?: canchar_usual_sample_point(timing->bitrate);
	for (quanta = 1 + limits->tseg1_max + limits->tseg2_max;
	     quanta > limits->tseg1_min + limits->tseg2_min; quanta--) {
		struct canchar_timing trial = *timing;
		u32 distance;

		trial.brp = limits->clock_hz / (timing->bitrate * quanta);
		if (!trial.brp || trial.brp * quanta * timing->bitrate != limits->clock_hz)
			continue;
		trial.tseg2 = clamp_t(u32, quanta - quanta * wish / 1000, limits->tseg2_min,
				      limits->tseg2_max);
		trial.tseg1 = quanta - 1 - trial.tseg2;
		trial.sample_point = 1000 * (1 + trial.tseg1) / quanta;
		distance = max(trial.sample_point, wish) - min(trial.sample_point, wish);
		if (canchar_timing_possible(limits, &trial) && distance < best) {
			best = distance;
			*timing = trial;
		}
	}
	return best == U32_MAX ? -EINVAL : 0;
}

#endif
