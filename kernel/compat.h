/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Only the differences between the kernels that the modules support, 6.1 to mainline.
 */
#ifndef CANTER_COMPAT_H
#define CANTER_COMPAT_H

#ifndef CONFIG_64BIT
#error "canter's modules need a 64-bit kernel: programs read 64-bit counters of mapped memory at once"
#endif

#include <linux/can/dev.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#include <net/genetlink.h>

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

/* 6.16 moved the data phase into a structure of its own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define cw_data_bittiming(can)		((can)->fd.data_bittiming)
#define cw_data_bittiming_const(can)	((can)->fd.data_bittiming_const)
#else
#define cw_data_bittiming(can)		((can)->data_bittiming)
#define cw_data_bittiming_const(can)	((can)->data_bittiming_const)
#endif

/* 6.17: three ways of threading instead of yes and no, and a call that logs its failure. */
static inline int cw_set_threaded(struct net_device *dev)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
	netif_threaded_enable(dev);
	return 0;
#else
	return dev_set_threaded(dev, true);
#endif
}

/* 6.19: the core checks the MTU, and time stamping has calls of its own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define CW_NDO_BY_VERSION \
	.ndo_hwtstamp_get = can_hwtstamp_get, \
	.ndo_hwtstamp_set = can_hwtstamp_set,
#else
#define CW_NDO_BY_VERSION \
	.ndo_change_mtu = can_change_mtu, \
	.ndo_eth_ioctl = can_eth_ioctl_hwts,
#endif

/* 6.3: flags of a mapping are changed by calls. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 6.6: a dump's attributes moved. */
static inline struct nlattr **cw_dump_attributes(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return genl_dumpit_info(cb)->info.attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/* Debian's 6.1 for real time has no busy polling. */
static inline u32 cw_napi_id(const struct napi_struct *napi)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	return napi->napi_id;
#else
	return 0;
#endif
}

#endif
