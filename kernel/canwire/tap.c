// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring of a tap and its device. The wire writes a record in two steps, because the frame's
 * result is known only after its buffer has been returned; readers see it when the head moves.
 *
 * Barriers, by the letters that canter-io's tap/ring.rs has, too:
 *
 * E orders a record's bytes before the head that publishes them (release); a reader loads the head
 * with acquire and then finds whole records below it.
 *
 * F orders the head before the bytes of the next record, and before the look for waiters. Why a
 * reader never takes a record for whole that is being overwritten: the writer stores head = h, F,
 * then bytes of record h over those of record h - records. A reader that has copied one of these
 * bytes executes an acquire fence and loads the head again: by F and that fence (message passing
 * with a write and a read barrier) it sees h or more. The old record's number is h - records, so
 * head - number >= records, and the reader discards the copy.
 */
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../compat.h"
#include "bus.h"
#include "tap.h"

/* The ring's header has a page of its own. */
#define CW_TAP_HEADER_BYTES	4096

struct cw_tap {
	struct canwire_ring *ring;
	struct canwire_record *records;
	u32 mask;
	u64 busy;			/* half ns */
	struct miscdevice misc;
	char device_name[CANWIRE_BUS_NAME_SIZE + 8];
	wait_queue_head_t readers;
	struct irq_work wake;		/* wake-ups are illegal in a hard timer on PREEMPT_RT */
	bool exposed;			/* the device exists; cw_mutex */
	bool gone;
	struct kref users;		/* the bus, and each open file */
};

struct cw_tap_file {
	struct cw_tap *tap;
	u64 seen;			/* head at the poll that last answered readable */
};

void cw_tap_begin(struct cw_tap *tap, const struct cw_attempt *a, u64 now_ns)
{
	struct canwire_record *r = &tap->records[tap->ring->head & tap->mask];
	const struct canfd_frame *frame = &a->buffer->frame;
	u64 end_ns = cw_to_ns(a->end);

	r->sof_ns = cw_to_ns(a->sof);
	r->end_ns = end_ns;
	r->pending = a->pending;
	r->late_ns = min_t(u64, now_ns - end_ns, U32_MAX);
	r->id = frame->can_id;
	r->sender = a->ifindex;
	r->nominal_bits = a->nominal;
	r->data_bits = a->data;
	r->len = frame->len;
	r->dlc = cw_dlc(frame);
	r->flags = frame->flags;
	r->error = a->error;
	r->error_bit = a->error_bit;
	r->slot = a->slot;
	r->marks = a->marks;
	if (frame->flags & CANFD_FDF) {
		memcpy(r->data, frame->data, frame->len);
		memset(r->data + frame->len, 0, sizeof(r->data) - frame->len);
	} else {
		memcpy(r->data, frame->data, CAN_MAX_DLEN);
		memset(r->data + CAN_MAX_DLEN, 0, sizeof(r->data) - CAN_MAX_DLEN);
	}
}

void cw_tap_end(struct cw_tap *tap, const struct cw_attempt *a, const struct cw_tap_masks *masks,
		u64 slip_ns)
{
	struct canwire_record *r = &tap->records[tap->ring->head & tap->mask];
	struct canwire_bus_stats *stats = &tap->ring->stats;

	r->received = masks->received;
	r->overrun = masks->overrun;
	if (likely(!a->error))
		stats->frames++;
	else
		stats->errors++;
	tap->busy += a->end - a->sof;
	stats->busy_ns = tap->busy >> 1;
	stats->bits += a->nominal + a->data;
	stats->late_ns_sum += r->late_ns;
	if (r->late_ns > stats->late_ns_max)
		stats->late_ns_max = r->late_ns;
	if (unlikely(masks->overrun))
		stats->overruns += hweight64(masks->overrun);
	if (unlikely(slip_ns)) {
		stats->slips++;
		stats->slip_ns += slip_ns;
	}
	if (unlikely(!stats->first_sof_ns))
		stats->first_sof_ns = r->sof_ns;
	/* E */
	smp_store_release(&tap->ring->head, tap->ring->head + 1);
	smp_mb();	/* F */
	/* After the barrier F. */
	if (waitqueue_active(&tap->readers))
		irq_work_queue(&tap->wake);
}

void cw_tap_account(struct cw_tap *tap, u64 callback_ns)
{
	tap->ring->stats.callbacks++;
	tap->ring->stats.callback_ns += callback_ns;
}

u32 cw_tap_size(const struct cw_tap *tap)
{
	return CW_TAP_HEADER_BYTES + (tap->mask + 1) * sizeof(struct canwire_record);
}

const struct canwire_bus_stats *cw_tap_stats(const struct cw_tap *tap)
{
	return &tap->ring->stats;
}

static void cw_tap_wake(struct irq_work *work)
{
	wake_up_interruptible(&container_of(work, struct cw_tap, wake)->readers);
}

static void cw_tap_free(struct kref *users)
{
	struct cw_tap *tap = container_of(users, struct cw_tap, users);

	irq_work_sync(&tap->wake);
	vfree(tap->ring);	/* pages that are still mapped stay until they are not */
	kfree(tap);
}

/*
 * Under misc_mtx, and so never beside misc_deregister(). Its permissions let everybody open it, so
 * that a node in the own namespace is enough; the frames of others are CAP_NET_ADMIN's.
 */
static int cw_tap_open(struct inode *inode, struct file *file)
{
	struct cw_tap *tap = container_of(file->private_data, struct cw_tap, misc);
	struct cw_tap_file *reader;

	if (file->f_mode & FMODE_WRITE)
		return -EPERM;
	if (!capable(CAP_NET_ADMIN) && !cw_bus_is_visible(tap, current->nsproxy->net_ns))
		return -EACCES;
	reader = kzalloc(sizeof(*reader), GFP_KERNEL);
	if (!reader)
		return -ENOMEM;
	kref_get(&tap->users);
	reader->tap = tap;
	reader->seen = READ_ONCE(tap->ring->head);
	file->private_data = reader;
	return 0;
}

static int cw_tap_release(struct inode *inode, struct file *file)
{
	struct cw_tap_file *reader = file->private_data;

	kref_put(&reader->tap->users, cw_tap_free);
	kfree(reader);
	return 0;
}

static __poll_t cw_tap_poll(struct file *file, poll_table *wait)
{
	struct cw_tap_file *reader = file->private_data;
	struct cw_tap *tap = reader->tap;
	__poll_t answer = 0;
	u64 head;

	poll_wait(file, &tap->readers, wait);
	smp_mb();	/* F */
	head = smp_load_acquire(&tap->ring->head);
	if (head != READ_ONCE(reader->seen)) {
		WRITE_ONCE(reader->seen, head);
		answer |= EPOLLIN | EPOLLRDNORM;
	}
	if (READ_ONCE(tap->gone))
		answer |= EPOLLHUP;
	return answer;
}

static int cw_tap_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct cw_tap_file *reader = file->private_data;

	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYWRITE);
	return remap_vmalloc_range(vma, reader->tap->ring, vma->vm_pgoff);
}

static const struct file_operations cw_tap_fops = {
	.owner = THIS_MODULE,
	.open = cw_tap_open,
	.release = cw_tap_release,
	.poll = cw_tap_poll,
	.mmap = cw_tap_mmap,
	.llseek = noop_llseek,
};

struct cw_tap *cw_tap_make(const char *name, u32 records)
{
	struct cw_tap *tap;

	tap = kzalloc(sizeof(*tap), GFP_KERNEL);
	if (!tap)
		return ERR_PTR(-ENOMEM);
	tap->mask = records - 1;
	tap->ring = vmalloc_user(PAGE_ALIGN(cw_tap_size(tap)));
	if (!tap->ring) {
		kfree(tap);
		return ERR_PTR(-ENOMEM);
	}
	tap->records = (void *)tap->ring + CW_TAP_HEADER_BYTES;
	tap->ring->magic = CANWIRE_RING_MAGIC;
	tap->ring->version = CANWIRE_GENL_VERSION;
	tap->ring->record_size = sizeof(struct canwire_record);
	tap->ring->record_offset = CW_TAP_HEADER_BYTES;
	tap->ring->records = records;
	strscpy(tap->ring->bus, name, sizeof(tap->ring->bus));
	init_waitqueue_head(&tap->readers);
	init_irq_work(&tap->wake, cw_tap_wake);
	kref_init(&tap->users);

	snprintf(tap->device_name, sizeof(tap->device_name), "canwire-%s", name);
	tap->misc.minor = MISC_DYNAMIC_MINOR;
	tap->misc.name = tap->device_name;
	tap->misc.fops = &cw_tap_fops;
	tap->misc.mode = 0444;
	return tap;
}

int cw_tap_expose(struct cw_tap *tap)
{
	int err = misc_register(&tap->misc);

	tap->exposed = !err;
	return err;
}

void cw_tap_destroy(struct cw_tap *tap)
{
	if (tap->exposed)
		misc_deregister(&tap->misc);
	WRITE_ONCE(tap->gone, true);
	wake_up_interruptible(&tap->readers);
	kref_put(&tap->users, cw_tap_free);
}
