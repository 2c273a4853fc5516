// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of rings, which programs map: as vmalloc_user() gives it, but charged to the control group
 * of the process that opened the file. Page by page, as in kernel/bpf/ringbuf.c, because
 * vmalloc_user() takes no flags, and remap_vmalloc_range() maps only areas with VM_USERMAP.
 */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "canchar.h"

static void canchar_pages_free(struct page **pages, u32 count)
{
	while (count)
		__free_page(pages[--count]);
	kvfree(pages);
}

bool canchar_memory_alloc(struct canchar_memory *memory, size_t bytes)
{
	u32 count = PAGE_ALIGN(bytes) >> PAGE_SHIFT, i;
	struct page **pages;

	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return false;
	for (i = 0; i < count; i++) {
		pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[i])
			goto free_pages;
	}
	memory->start = vmap(pages, count, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	if (!memory->start)
		goto free_pages;
	memory->pages = pages;
	memory->count = count;
	return true;

free_pages:
	canchar_pages_free(pages, i);
	return false;
}

/* Nothing for memory that was never taken. */
void canchar_memory_free(const struct canchar_memory *memory)
{
	if (!memory->start)
		return;
	vunmap(memory->start);
	canchar_pages_free(memory->pages, memory->count);
}
