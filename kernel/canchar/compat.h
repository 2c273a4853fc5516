/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels that canchar is built for, 6.1 to mainline, and nothing else. */
#ifndef CANCHAR_COMPAT_H
#define CANCHAR_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.13 has hrtimer_setup(), 6.15 no longer hrtimer_init(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif
