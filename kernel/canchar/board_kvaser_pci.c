// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kvaser PCIcan: up to four SJA1000 behind an AMCC S5920 and a Xilinx. It binds only to cards with
 * this driver_override, so that the kernel's driver keeps the others:
 *
 *	echo canchar_kvaser_pci > /sys/bus/pci/devices/ADDRESS/driver_override
 *	echo ADDRESS > /sys/bus/pci/devices/ADDRESS/driver/unbind
 *	echo ADDRESS > /sys/bus/pci/drivers_probe
 *
 * and returns them by the same steps with an empty line as driver_override.
 */

#include <linux/module.h>
#include <linux/pci.h>

#include "canchar.h"
#include "board_kvaser_pci.h"

static unsigned int bitrate;
module_param(bitrate, uint, 0444);
MODULE_PARM_DESC(bitrate, "bit/s with which cards go on the bus at once (default 0: they wait to be started)");

struct kvaser {
	unsigned long s5920;
	unsigned int channels;
	struct sja1000 chips[KVASER_CHANNELS_MAX];
	struct canchar_device *devs[KVASER_CHANNELS_MAX];
};

/*
 * In the hard handler on every kernel; on a line that another driver has without
 * IRQF_NO_THREAD older kernels with PREEMPT_RT refuse that, and it is threaded.
 */
static int canchar_kvaser_take_interrupt(struct pci_dev *pdev, struct canchar_device *dev)
{
	int err = request_irq(pdev->irq, canchar_interrupt, IRQF_SHARED | IRQF_NO_THREAD,
			      dev_name(&dev->dev), dev);

	if (err != -EBUSY)
		return err;
	dev_warn(&pdev->dev, "interrupt %u is shared: threaded handler\n", pdev->irq);
	return request_irq(pdev->irq, canchar_interrupt, IRQF_SHARED, dev_name(&dev->dev), dev);
}

static int canchar_kvaser_add_channel(struct pci_dev *pdev, struct kvaser *kvaser, const char *name,
				      struct sja1000 *chip)
{
	struct canchar_timing timing = { .bitrate = bitrate };
	struct canchar_device *dev;
	int err;

	dev = canchar_alloc(&pdev->dev, name, &canchar_sja1000_ops, chip);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = canchar_kvaser_take_interrupt(pdev, dev);
	if (err)
		goto put;
	err = canchar_register(dev);
	if (err)
		goto free;
	kvaser->devs[kvaser->channels++] = dev;
	dev_info(&pdev->dev, "%s: SJA1000 at ports %#lx, interrupt %u\n", dev_name(&dev->dev),
		 chip->port, pdev->irq);
	if (bitrate && (canchar_set_timing(dev, &timing) || canchar_start(dev)))
		dev_warn(&dev->dev, "cannot start with %u bit/s\n", bitrate);
	return 0;

free:
	free_irq(pdev->irq, dev);
put:
	put_device(&dev->dev);
	return err;
}

static void canchar_kvaser_drop_channels(struct pci_dev *pdev, struct kvaser *kvaser)
{
	while (kvaser->channels--) {
		struct canchar_device *dev = kvaser->devs[kvaser->channels];

		/* Open files keep the device, but not the chip or the line. */
		get_device(&dev->dev);
		canchar_unregister(dev);
		free_irq(pdev->irq, dev);
		put_device(&dev->dev);
	}
}

static int canchar_kvaser_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	const struct kvaser_card *card = kvaser_find_card(pdev);
	unsigned int i, chips;
	struct kvaser *kvaser;
	int err;

	if (!card)
		return -ENODEV;
	kvaser = devm_kzalloc(&pdev->dev, sizeof(*kvaser), GFP_KERNEL);
	if (!kvaser)
		return -ENOMEM;
	err = kvaser_take_card(pdev, "canchar", &kvaser->s5920);
	if (err)
		return err;
	pci_set_drvdata(pdev, kvaser);
	/* A chip that another driver has left on the bus must not interrupt without a handler. */
	kvaser_allow_interrupts(kvaser->s5920, false);
	for (chips = 0; chips < KVASER_CHANNELS_MAX; chips++) {
		if (!kvaser_find_chip(pdev, card, chips, &kvaser->chips[chips]))
			break;
		canchar_sja1000_quiet(&kvaser->chips[chips]);
	}
	for (i = 0; i < chips; i++) {
		err = canchar_kvaser_add_channel(pdev, kvaser, card->name, &kvaser->chips[i]);
		if (err)
			goto drop;
	}
	if (!kvaser->channels) {
		err = -ENODEV;
		goto drop;
	}
	kvaser_allow_interrupts(kvaser->s5920, true);
	return 0;

drop:
	canchar_kvaser_drop_channels(pdev, kvaser);
	kvaser_release_card(pdev);
	return err;
}

static void canchar_kvaser_remove(struct pci_dev *pdev)
{
	struct kvaser *kvaser = pci_get_drvdata(pdev);

	canchar_kvaser_drop_channels(pdev, kvaser);
	kvaser_allow_interrupts(kvaser->s5920, false);
	kvaser_release_card(pdev);
}

/* No table of ids: only driver_override leads here. */
static struct pci_driver kvaser_driver = {
	.name = "canchar_kvaser_pci",
	.probe = canchar_kvaser_probe,
	.remove = canchar_kvaser_remove,
};

int canchar_kvaser_init(void)
{
	return pci_register_driver(&kvaser_driver);
}

void canchar_kvaser_exit(void)
{
	pci_unregister_driver(&kvaser_driver);
}
