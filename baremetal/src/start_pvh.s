# The note by which QEMU finds the entry: Xen's XEN_ELFNOTE_PHYS32_ENTRY. %ebx is the address of a struct
# hvm_start_info then, paging is off, and the descriptors are flat (xen/include/public/arch-x86/hvm/start_info.h).
.section .note.pvh, "a", @note
.balign 4
	.long 4, 4, 18
	.asciz "Xen"
	.long start32
.section .text.start, "ax"
