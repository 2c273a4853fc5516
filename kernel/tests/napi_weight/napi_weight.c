// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives a network card's NAPI another weight while it is loaded: the packets of one turn. Linux has no
 * setting for it; the driver chooses, usually 64. For the question what Ethernet's turns cost CAN.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

static char *interface = "eth1";
module_param(interface, charp, 0444);
MODULE_PARM_DESC(interface, "the card's interface");

static int weight = 1;
module_param(weight, int, 0444);
MODULE_PARM_DESC(weight, "packets of one turn, 1...64");

static int weight_before;

/* Gives all NAPI instances of the card this weight; returns the one that the last of them had. */
static int set_weight(int frames)
{
	struct net_device *dev;
	struct napi_struct *napi;
	int before = -ENODEV;

	rtnl_lock();
	dev = __dev_get_by_name(&init_net, interface);
	if (dev)
		list_for_each_entry(napi, &dev->napi_list, dev_list) {
			before = napi->weight;
			WRITE_ONCE(napi->weight, frames);
		}
	rtnl_unlock();
	return before;
}

static int __init napi_weight_init(void)
{
	if (weight < 1 || weight > NAPI_POLL_WEIGHT)
		return -EINVAL;
	weight_before = set_weight(weight);
	if (weight_before < 0)
		return weight_before;
	pr_info("napi_weight: %s: %d, before %d\n", interface, weight, weight_before);
	return 0;
}

static void __exit napi_weight_exit(void)
{
	set_weight(weight_before);
}

module_init(napi_weight_init);
module_exit(napi_weight_exit);

MODULE_AUTHOR("The canter developers");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Another weight for a network card's NAPI");
